#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// A term of a sum that is zero but for `x`, from `low` on along one axis.
/// It may be seen through a reshape.
struct Segment {
  Value x;
  int64_t axis, low, end;
  RankedTensorType whole;
};

std::optional<Segment> findSegment(Value term) {
  if (auto reshape = getSingleUse<ReshapeOp>(term))
    term = reshape.getX();
  auto pad = getSingleUse<PadOp>(term);
  auto isZero = [](int64_t value) { return value == 0; };
  if (!pad || pad.getMode() != PadMode::constant ||
      getSplat(pad.getValue()) != 0.0 ||
      !llvm::all_of(pad.getInterior(), isZero))
    return std::nullopt;
  std::optional<Segment> segment;
  for (auto [axis, low] : llvm::enumerate(pad.getLow())) {
    int64_t high = pad.getHigh()[axis];
    if (low == 0 && high == 0)
      continue;
    auto extent = getConstant(getExtent(pad.getX(), axis));
    if (segment || low < 0 || high < 0 || !extent)
      return std::nullopt;
    segment = {pad.getX(), int64_t(axis), low, low + *extent,
               getTensorType(pad)};
  }
  return segment;
}

bool isFollowedBy(const Segment &first, const Segment &second) {
  return first.axis == second.axis && first.whole == second.whole &&
         first.end == second.low;
}

/// The terms of a sum whose partial sums have no other use, in order; of long
/// ones some terms are partial sums.
SmallVector<Value> collectTerms(AddOp sum) {
  constexpr size_t kMaxTerms = 64;
  SmallVector<Value> terms, rest(llvm::reverse(sum->getOperands()));
  while (!rest.empty()) {
    Value term = rest.pop_back_val();
    auto add = getSingleUse<AddOp>(term);
    if (add && terms.size() + rest.size() < kMaxTerms)
      llvm::append_range(rest, llvm::reverse(add->getOperands()));
    else
      terms.push_back(term);
  }
  return terms;
}

/// Both, between what is left of the zeros, in the shape of the terms.
Value join(OpBuilder &builder, Location loc, const Segment &first,
           const Segment &second, RankedTensorType type) {
  Value x =
      builder.create<ConcatOp>(loc, ValueRange{first.x, second.x}, first.axis);
  SmallVector<int64_t> low(first.whole.getRank(), 0), high = low, none = low;
  low[first.axis] = first.low;
  high[first.axis] =
      *getConstant(getExtents(first.whole)[first.axis]) - second.end;
  Value zero = makeSplat(builder, loc,
                         RankedTensorType::get({}, type.getElementType()), 0.0);
  x = builder.create<PadOp>(loc, x, zero, low, high, none);
  return first.whole == type ? x : builder.create<ReshapeOp>(loc, type, x);
}

/// pad(x) + pad(y) = concat(x, y), padded where they leave zeros, but for the
/// sign of a zero: gradients of slices meet in sums.
struct JoinSegments : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    if (hasOneLocalUse(op) && isa<AddOp>(*op->user_begin()))
      return rewriter.notifyMatchFailure(op, "part of a larger sum");
    SmallVector<Value> terms = collectTerms(op);
    auto segments = llvm::map_to_vector(terms, findSegment);
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = 0; j < terms.size(); ++j)
        if (segments[i] && segments[j] &&
            isFollowedBy(*segments[i], *segments[j])) {
          terms[std::min(i, j)] = join(rewriter, op.getLoc(), *segments[i],
                                       *segments[j], op.getType());
          terms.erase(terms.begin() + std::max(i, j));
          return replaceBySum(op, terms, rewriter);
        }
    return rewriter.notifyMatchFailure(op, "no terms lie side by side");
  }

  static LogicalResult replaceBySum(AddOp op, ArrayRef<Value> terms,
                                    PatternRewriter &rewriter) {
    Value sum = terms.front();
    for (Value term : terms.drop_front())
      sum = rewriter.create<AddOp>(op.getLoc(), sum, term);
    rewriter.replaceOp(op, sum);
    return success();
  }
};

/// The extents that an operand of a concatenation has behind the reshape `op`,
/// and the axis that they follow each other along.
struct RegroupedConcat {
  Extents extents;
  size_t axis;
  int64_t part; // elements of the concatenation's axis, and those within, in
                // one of the new axis; a fraction is refused
  int64_t inner;

  static std::optional<RegroupedConcat> find(ReshapeOp op, ConcatOp concat);
  Type getType(Value operand, int64_t axis) const;
};

std::optional<RegroupedConcat> RegroupedConcat::find(ReshapeOp op,
                                                     ConcatOp concat) {
  Extents from = getExtents(concat.getResult());
  RegroupedConcat found{getExtents(op.getResult()), 0, 1, 1};
  size_t cut = concat.getAxis();
  for (const AxisGroup &group : groupAxes(from, found.extents)) {
    if (cut < group.fromBegin || cut >= group.fromEnd)
      continue;
    for (size_t axis = group.fromBegin; axis < cut; ++axis)
      if (getConstant(from[axis]) != 1)
        return std::nullopt;
    for (size_t axis = cut + 1; axis < group.fromEnd; ++axis)
      found.inner *= getConstant(from[axis]).value_or(0);
    found.axis = group.toBegin;
    while (found.axis + 1 < group.toEnd &&
           getConstant(found.extents[found.axis]) == 1)
      ++found.axis;
    for (size_t axis = found.axis + 1; axis < group.toEnd; ++axis)
      found.part *= getConstant(found.extents[axis]).value_or(0);
  }
  bool isWhole = found.part > 0 && found.inner > 0;
  for (Value operand : concat.getOperands()) {
    auto extent = getConstant(getExtent(operand, cut));
    isWhole = isWhole && extent && *extent * found.inner % found.part == 0;
  }
  return isWhole ? std::optional(found) : std::nullopt;
}

Type RegroupedConcat::getType(Value operand, int64_t cut) const {
  Extents own = extents;
  int64_t extent = *getConstant(getExtent(operand, cut)) * inner / part;
  own[axis] = getAffineConstantExpr(extent, operand.getContext());
  return makeTensorType(own, getElementTypeOrSelf(operand));
}

/// reshape(concat(x, y)) = concat(reshape(x), reshape(y)): reshapes of what
/// kernels make cost nothing.
struct ReshapeBeforeConcat : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = getSingleUse<ConcatOp>(op.getX());
    if (!concat)
      return rewriter.notifyMatchFailure(op, "not of a concat");
    auto regrouped = RegroupedConcat::find(op, concat);
    if (!regrouped)
      return rewriter.notifyMatchFailure(op, "tears operands apart");
    SmallVector<Value> operands;
    for (Value operand : concat.getOperands())
      operands.push_back(rewriter.create<ReshapeOp>(
          op.getLoc(), regrouped->getType(operand, concat.getAxis()), operand));
    rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), operands,
                                          regrouped->axis);
    return success();
  }
};

/// concat(a, concat(b, c)) = concat(a, b, c)
struct FlattenConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Value> operands;
    bool changed = false;
    for (Value operand : op.getOperands()) {
      auto inner = getSingleUse<ConcatOp>(operand);
      auto extent = getConstant(getExtent(operand, op.getAxis()));
      if (inner && inner.getAxis() == op.getAxis())
        llvm::append_range(operands, inner.getOperands());
      else if (extent != 0)
        operands.push_back(operand);
      changed |= operands.empty() || operands.back() != operand;
    }
    if (!changed || operands.empty())
      return rewriter.notifyMatchFailure(op, "no operand is a concat or empty");
    rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), operands,
                                          op.getAxis());
    return success();
  }
};

/// The axis along which `slice` takes a part, of neighbours, if it is one axis.
std::optional<int64_t> getCutAxis(SliceOp slice) {
  std::optional<int64_t> cut;
  for (auto [axis, step] : llvm::enumerate(slice.getSteps())) {
    if (step != 1)
      return std::nullopt;
    if (isEqual(getExtent(slice.getX(), axis),
                getExtent(slice.getResult(), axis)))
      continue;
    if (cut)
      return std::nullopt;
    cut = axis;
  }
  return cut;
}

/// concat(slice(x), slice(x)) = x where these are all of x, one after another.
/// All may be seen through reshapes that keep what lies before the cut.
struct ConcatOfSlices : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    Value x;
    std::optional<int64_t> axis;
    AffineExpr end = rewriter.getAffineConstantExpr(0);
    for (Value operand : op.getOperands()) {
      if (auto reshape = operand.getDefiningOp<ReshapeOp>())
        operand = reshape.getX();
      auto slice = operand.getDefiningOp<SliceOp>();
      if (!slice || (x && slice.getX() != x))
        return rewriter.notifyMatchFailure(op, "not of slices of one tensor");
      std::optional<int64_t> cut = getCutAxis(slice);
      if (!cut || (axis && axis != cut) ||
          !isEqual(slice.getStarts().getResult(*cut), end))
        return rewriter.notifyMatchFailure(op, "not in order along one axis");
      x = slice.getX();
      axis = cut;
      end = end + getExtent(operand, *cut);
    }
    Extents from = getExtents(x), to = getExtents(op.getResult());
    auto count = [&](const Extents &extents, int64_t axes) {
      return getNumElements(ArrayRef(extents).take_front(axes),
                            op.getContext());
    };
    if (!isEqual(end, from[*axis]) ||
        !isEqual(count(from, *axis), count(to, op.getAxis())))
      return rewriter.notifyMatchFailure(op, "not all, or other rows");
    if (x.getType() != op.getType())
      x = rewriter.create<ReshapeOp>(op.getLoc(), op.getType(), x);
    rewriter.replaceOp(op, x);
    return success();
  }
};

} // namespace

void addConcatPatterns(RewritePatternSet &patterns) {
  patterns
      .add<JoinSegments, ReshapeBeforeConcat, FlattenConcat, ConcatOfSlices>(
          patterns.getContext());
}

} // namespace tcc

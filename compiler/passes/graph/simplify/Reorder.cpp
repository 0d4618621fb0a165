#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

#include <map>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// The one element that `tensor` repeats, null if it does not.
Value getRepeatedElement(Value tensor) {
  auto broadcast = tensor.getDefiningOp<BroadcastOp>();
  bool isOne = broadcast && llvm::all_of(getExtents(broadcast.getX()),
                                         [](AffineExpr extent) {
                                           return getConstant(extent) == 1;
                                         });
  return isOne ? broadcast.getX() : Value();
}

/// The operand of `op` that does not repeat one element, if only one does not.
std::optional<unsigned> getOnlyTensor(Operation *op) {
  std::optional<unsigned> only;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (getRepeatedElement(operand))
      continue;
    if (only)
      return std::nullopt;
    only = i;
  }
  return only;
}

/// `tensor`, which repeats one element, in the shape of `like`.
Value repeatLike(OpBuilder &builder, Value tensor, Value like) {
  Location loc = tensor.getLoc();
  Type elementType = getElementTypeOrSelf(tensor);
  Value scalar = reshapeTo(builder, loc, getRepeatedElement(tensor),
                           RankedTensorType::get({}, elementType));
  return builder.create<BroadcastOp>(
      loc, withElementType(getTensorType(like), elementType), scalar);
}

/// f(move(x), scalar) = move(f(x, scalar)) for reshapes and transposes: f fuses
/// with what makes x, and the move with what reads it.
struct PointwiseBeforeMove : RewritePattern {
  explicit PointwiseBeforeMove(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<PointwiseOpInterface>(op))
      return failure();
    auto getWidth = [](Value x) {
      return getElementTypeOrSelf(x).getIntOrFloatBitWidth();
    };
    auto tensor = getOnlyTensor(op);
    if (tensor &&
        getWidth(op->getResult(0)) > getWidth(op->getOperand(*tensor)))
      return rewriter.notifyMatchFailure(op, "more bytes would move");
    Operation *move =
        tensor ? op->getOperand(*tensor).getDefiningOp() : nullptr;
    if (!isa_and_present<ReshapeOp, TransposeOp>(move) ||
        !hasOneLocalUse(move->getResult(0)))
      return rewriter.notifyMatchFailure(op, "not of one moved tensor");
    Value x = move->getOperand(0);
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(i == *tensor ? x : repeatLike(rewriter, operand, x));
    Type elementType = getElementTypeOrSelf(op->getResult(0));
    OperationState state(op->getLoc(), op->getName(), operands,
                         {withElementType(getTensorType(x), elementType)},
                         op->getAttrs());
    Value result = rewriter.create(state)->getResult(0);
    OperationState moved(move->getLoc(), move->getName(), result,
                         op->getResultTypes(), move->getAttrs());
    rewriter.replaceOp(op, rewriter.create(moved));
    return success();
  }
};

/// The groups of a reshape of a transpose in the order that their axes have
/// before the transpose; nullopt if those of one group are not adjacent there.
std::optional<SmallVector<AxisGroup>> orderGroups(ArrayRef<AxisGroup> groups,
                                                  TransposeOp transpose) {
  SmallVector<int64_t> sources = getLongAxes(transpose.getX());
  std::multimap<int64_t, AxisGroup> placed; // in their order, of one place
  for (const AxisGroup &group : groups) {
    int64_t first = -1, next = -1;
    for (size_t axis = group.fromBegin; axis < group.fromEnd; ++axis) {
      auto source = llvm::find(sources, transpose.getPermutation()[axis]);
      if (source == sources.end())
        continue; // of extent 1
      int64_t place = source - sources.begin();
      if (first >= 0 && place != next)
        return std::nullopt;
      first = first >= 0 ? first : place;
      next = place + 1;
    }
    placed.emplace(first, group);
  }
  return llvm::to_vector(llvm::make_second_range(placed));
}

/// reshape(transpose(x)) = transpose(reshape(x)) where the reshape splits axes,
/// or joins such that are adjacent in x: transposes meet, and products that
/// take them in.
struct ReshapeBeforeTranspose : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = getSingleUse<TransposeOp>(op.getX());
    if (!transpose)
      return rewriter.notifyMatchFailure(op, "not of a transpose");
    Extents to = getExtents(op.getResult());
    auto groups = orderGroups(groupAxes(getExtents(op.getX()), to), transpose);
    if (!groups)
      return rewriter.notifyMatchFailure(op, "joins what lies apart");
    // Axes of extent 1 keep their places, the others take turns.
    SmallVector<int64_t> places = getLongAxes(op.getResult()), ordered;
    for (const AxisGroup &group : *groups)
      for (int64_t place : places)
        if (place >= int64_t(group.toBegin) && place < int64_t(group.toEnd))
          ordered.push_back(place);
    SmallVector<int64_t> permutation =
        llvm::to_vector(llvm::seq<int64_t>(0, to.size()));
    Extents extents = to;
    for (auto [place, axis] : llvm::zip_equal(places, ordered)) {
      permutation[axis] = place;
      extents[place] = to[axis];
    }
    Type elementType = op.getType().getElementType();
    Value x = rewriter.create<ReshapeOp>(
        op.getLoc(), makeTensorType(extents, elementType), transpose.getX());
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), x, permutation);
    return success();
  }
};

/// A slice while its axes are regrouped by a reshape behind it.
struct RegroupedSlice {
  Extents extents; // of what is sliced
  SmallVector<AffineExpr> starts;
  SmallVector<int64_t> steps;

  RegroupedSlice(Extents to, MLIRContext *context)
      : extents(std::move(to)),
        starts(extents.size(), getAffineConstantExpr(0, context)),
        steps(extents.size(), 1) {}
  bool add(SliceOp op, const AxisGroup &group);
};

/// Whether the slice leaves out some of an axis' elements.
bool isCut(SliceOp op, size_t axis) {
  return !isEqual(getExtent(op.getX(), axis), getExtent(op, axis)) ||
         getConstant(op.getStarts().getResult(axis)) != 0 ||
         op.getSteps()[axis] != 1;
}

/// Takes over what `op` cuts of the axes of `group`; false if the reshape tears
/// it apart: only one axis may be cut, into whole parts where it is split.
bool RegroupedSlice::add(SliceOp op, const AxisGroup &group) {
  Extents from = getExtents(op.getX());
  ArrayRef<AffineExpr> allStarts = op.getStarts().getResults();
  std::optional<size_t> cut;
  for (size_t axis = group.fromBegin; axis < group.fromEnd; ++axis) {
    if (!isCut(op, axis))
      continue;
    if (cut)
      return false;
    cut = axis;
  }
  if (!cut)
    return true;
  for (size_t axis = group.fromBegin; axis < group.fromEnd; ++axis)
    if (axis != *cut && getConstant(from[axis]) != 1)
      return false;
  size_t outer = group.toBegin;
  while (outer + 1 < group.toEnd && getConstant(extents[outer]) == 1)
    ++outer;
  if (outer >= group.toEnd)
    return false;
  int64_t part = 1;
  for (size_t axis = outer + 1; axis < group.toEnd; ++axis)
    part *= getConstant(extents[axis]).value_or(0);
  std::optional<int64_t> whole = getConstant(from[*cut]);
  std::optional<int64_t> start = getConstant(allStarts[*cut]);
  int64_t step = op.getSteps()[*cut];
  if (!whole || !start || part == 0 || *whole % part || *start % part ||
      (step != 1 && part != 1))
    return false;
  MLIRContext *context = op.getContext();
  extents[outer] = getAffineConstantExpr(*whole / part, context);
  starts[outer] = getAffineConstantExpr(*start / part, context);
  steps[outer] = step;
  return true;
}

/// The extents `to` that a reshape gives a slice. Where it joins axes of which
/// the slice took one index to others behind them, those extents without axes
/// of 1 but for such ones.
Extents keepCutAxes(SliceOp op, ArrayRef<AffineExpr> to) {
  Extents from = getExtents(op.getResult()), kept;
  bool joinsCut = false;
  for (const AxisGroup &group : groupAxes(from, to)) {
    for (size_t axis = group.fromBegin; axis + 1 < group.fromEnd; ++axis) {
      if (getConstant(from[axis]) != 1 || !isCut(op, axis))
        break;
      kept.push_back(from[axis]);
      joinsCut = true;
    }
    for (size_t axis = group.toBegin; axis < group.toEnd; ++axis)
      if (getConstant(to[axis]) != 1)
        kept.push_back(to[axis]);
  }
  return joinsCut ? kept : llvm::to_vector(to);
}

/// reshape(slice(x)) = slice(reshape(x)): a reshape of what a kernel makes
/// costs nothing, and the slice meets what reads it. A reshape that drops an
/// axis besides, of which the slice took one index, leaves that behind it.
struct ReshapeBeforeSlice : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto slice = getSingleUse<SliceOp>(op.getX());
    if (!slice)
      return rewriter.notifyMatchFailure(op, "not of a slice");
    Extents kept = keepCutAxes(slice, getExtents(op.getResult()));
    Type elementType = op.getType().getElementType();
    RankedTensorType type = makeTensorType(kept, elementType);
    if (type == slice.getType())
      return rewriter.notifyMatchFailure(op, "only moves axes of extent 1");
    RegroupedSlice regrouped(kept, op.getContext());
    for (const AxisGroup &group : groupAxes(getExtents(op.getX()), kept))
      if (!regrouped.add(slice, group))
        return rewriter.notifyMatchFailure(op, "tears the slice apart");
    Value x = rewriter.create<ReshapeOp>(
        op.getLoc(), makeTensorType(regrouped.extents, elementType),
        slice.getX());
    Value part = rewriter.create<SliceOp>(
        op.getLoc(), type, x, makeSizeMap(regrouped.starts, op.getContext()),
        regrouped.steps);
    rewriter.replaceOp(op,
                       reshapeTo(rewriter, op.getLoc(), part, op.getType()));
    return success();
  }
};

} // namespace

void addReorderPatterns(RewritePatternSet &patterns) {
  patterns.add<PointwiseBeforeMove, ReshapeBeforeSlice, ReshapeBeforeTranspose>(
      patterns.getContext());
}

} // namespace tcc

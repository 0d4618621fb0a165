#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tcc::graph;
using arith::CmpIPredicate;

static RankedTensorType getType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

static LogicalResult verifyElementTypes(Operation *op, Value x) {
  Type expected = getElementTypeOrSelf(x);
  Type found = getElementTypeOrSelf(op->getResult(0));
  if (expected == found)
    return success();
  return op->emitOpError("expected element type ")
         << expected << ", found " << found;
}

/// One parallel loop an axis of the result.
static SmallVector<utils::IteratorType> getResultLoops(Value result) {
  return SmallVector<utils::IteratorType>(getType(result).getRank(),
                                          utils::IteratorType::parallel);
}
static AffineMap getIdentityMap(Value result) {
  return AffineMap::getMultiDimIdentityMap(getType(result).getRank(),
                                           result.getContext());
}

// --- reshape

LogicalResult ReshapeOp::verify() {
  if (failed(verifyElementTypes(*this, getX())))
    return failure();
  MLIRContext *context = getContext();
  AffineExpr from = getNumElements(getExtents(getX()), context);
  AffineExpr to = getNumElements(getExtents(getResult()), context);
  if (isEqual(from, to))
    return success();
  // A run checks the elements of computed sizes: graph.read_size.
  SmallVector<SymbolAttr> symbols =
      getSymbols(getOperation()->getParentOfType<ModuleOp>());
  if (isComputed(from - to, symbols))
    return success();
  return emitOpError("expected as many elements in ")
         << getX().getType() << " as in " << getType();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
}

namespace {
/// reshape(reshape(x)) = reshape(x)
struct ComposeReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<ReshapeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "not a reshape of a reshape");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getX());
    return success();
  }
};
} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<ComposeReshapes>(context);
}

/// The row-major number of the element at `indices`.
static Value linearize(const ScalarEmitter &emitter, ValueRange indices,
                       ArrayRef<Value> sizes) {
  Value linear = indices.front();
  for (size_t i = 1; i < indices.size(); ++i)
    linear = emitter.emit<arith::AddIOp>(
        emitter.emit<arith::MulIOp>(linear, sizes[i]), indices[i]);
  return linear;
}

/// Splits `linear` over axes of `sizes`; the first size is not needed.
static void delinearize(const ScalarEmitter &emitter, Value linear,
                        ArrayRef<Value> sizes, MutableArrayRef<Value> indices) {
  for (size_t i = sizes.size() - 1; i > 0; --i) {
    indices[i] = emitter.emit<arith::RemUIOp>(linear, sizes[i]);
    linear = emitter.emit<arith::DivUIOp>(linear, sizes[i]);
  }
  indices[0] = linear;
}

Value ReshapeOp::emitElement(OpBuilder &builder, Location loc,
                             ValueRange indices, ElementSource &source) {
  ScalarEmitter emitter(builder, loc);
  Value zero = emitter.constant(builder.getIndexType(), 0);
  Extents from, to;
  SmallVector<Value> outer;
  for (int64_t axis : getLongAxes(getResult())) {
    from.push_back(getExtent(getResult(), axis));
    outer.push_back(indices[axis]);
  }
  SmallVector<int64_t> toAxes = getLongAxes(getX());
  for (int64_t axis : toAxes)
    to.push_back(getExtent(getX(), axis));
  SmallVector<Value> inner(to.size(), zero);
  auto getSizes = [&](ArrayRef<AffineExpr> extents) {
    return llvm::map_to_vector(extents, [&](AffineExpr extent) {
      return source.size(builder, loc, extent);
    });
  };
  // Axes that stay as they are form groups of their own and need no arithmetic.
  for (const AxisGroup &group : groupAxes(from, to)) {
    size_t fromCount = group.fromEnd - group.fromBegin;
    size_t toCount = group.toEnd - group.toBegin;
    if (fromCount == 0 || toCount == 0)
      continue; // axes left over have one element
    auto fromExtents = ArrayRef(from).slice(group.fromBegin, fromCount);
    auto toExtents = ArrayRef(to).slice(group.toBegin, toCount);
    Value linear =
        linearize(emitter, ArrayRef(outer).slice(group.fromBegin, fromCount),
                  getSizes(fromExtents));
    delinearize(emitter, linear, getSizes(toExtents),
                MutableArrayRef(inner).slice(group.toBegin, toCount));
  }
  SmallVector<Value> all(getX().getType().getRank(), zero);
  for (auto [axis, index] : llvm::zip_equal(toAxes, inner))
    all[axis] = index;
  return source.element(builder, loc, getX(), all);
}

// --- broadcast

LogicalResult BroadcastOp::verify() {
  if (failed(verifyElementTypes(*this, getX())))
    return failure();
  Extents from = getExtents(getX()), to = getExtents(getResult());
  if (from.size() > to.size())
    return emitOpError("expected a result of rank ")
           << from.size() << " or more, found " << to.size();
  for (auto [i, extent] : llvm::enumerate(from))
    if (getConstant(extent) != 1 &&
        !isEqual(extent, to[to.size() - from.size() + i]))
      return emitOpError("axis ") << i << " of " << getX().getType()
                                  << " does not broadcast to " << getType();
  return success();
}

SmallVector<utils::IteratorType> BroadcastOp::getLoopKinds() {
  return getResultLoops(getResult());
}
AffineMap BroadcastOp::getOperandMap(unsigned) {
  Extents extents = getExtents(getX());
  int64_t missing = getType().getRank() - extents.size();
  SmallVector<AffineExpr> indices;
  for (auto [axis, extent] : llvm::enumerate(extents))
    indices.push_back(getConstant(extent) == 1
                          ? getAffineConstantExpr(0, getContext())
                          : getAffineDimExpr(axis + missing, getContext()));
  return AffineMap::get(getType().getRank(), 0, indices, getContext());
}
AffineMap BroadcastOp::getResultMap(unsigned) {
  return getIdentityMap(getResult());
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
}

namespace {
/// broadcast(broadcast(x)) = broadcast(x)
struct ComposeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<BroadcastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "not a broadcast of a broadcast");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getX());
    return success();
  }
};
} // namespace

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<ComposeBroadcasts>(context);
}

Value BroadcastOp::emitElement(OpBuilder &builder, Location loc,
                               ValueRange indices, ElementSource &source) {
  Extents from = getExtents(getX());
  SmallVector<Value> inner(indices.take_back(from.size()));
  for (auto [index, extent] : llvm::zip_equal(inner, from))
    if (getConstant(extent) == 1)
      index = builder.create<arith::ConstantIndexOp>(loc, 0);
  return source.element(builder, loc, getX(), inner);
}

// --- transpose

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (int64_t(permutation.size()) != type.getRank() ||
      !isPermutationVector(permutation))
    return emitOptionalError(loc, "expected a permutation of ", type.getRank(),
                             " axes");
  Extents from = getExtents(type), to;
  for (int64_t axis : permutation)
    to.push_back(from[axis]);
  types.push_back(makeTensorType(to, type.getElementType()));
  return success();
}

SmallVector<utils::IteratorType> TransposeOp::getLoopKinds() {
  return getResultLoops(getResult());
}
AffineMap TransposeOp::getOperandMap(unsigned) {
  return inversePermutation(
      AffineMap::getPermutationMap(getPermutation(), getContext()));
}
AffineMap TransposeOp::getResultMap(unsigned) {
  return getIdentityMap(getResult());
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    if (int64_t(i) != axis)
      return {};
  return getX();
}

namespace {
/// transpose(transpose(x, p), q) = transpose(x, p[q])
struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<TransposeOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "not a transpose of a transpose");
    SmallVector<int64_t> permutation;
    for (int64_t axis : op.getPermutation())
      permutation.push_back(inner.getPermutation()[axis]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getX(),
                                             permutation);
    return success();
  }
};
} // namespace

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<ComposeTransposes>(context);
}

Value TransposeOp::emitElement(OpBuilder &builder, Location loc,
                               ValueRange indices, ElementSource &source) {
  SmallVector<Value> inner(indices.size());
  for (auto [i, axis] : llvm::enumerate(getPermutation()))
    inner[axis] = indices[i];
  return source.element(builder, loc, getX(), inner);
}

// --- slice

LogicalResult SliceOp::verify() {
  int64_t rank = ::getType(getX()).getRank();
  if (failed(verifyElementTypes(*this, getX())))
    return failure();
  if (::getType(getResult()).getRank() != rank)
    return emitOpError("expected a result of rank ") << rank;
  if (int64_t(getStarts().getNumResults()) != rank ||
      int64_t(getSteps().size()) != rank)
    return emitOpError("expected ") << rank << " starts and steps";
  Extents from = getExtents(getX()), to = getExtents(getResult());
  for (int64_t i = 0; i < rank; ++i) {
    int64_t step = getSteps()[i];
    if (step == 0)
      return emitOpError("step of axis ") << i << " is 0";
    auto start = getConstant(getStarts().getResult(i));
    auto extent = getConstant(from[i]), count = getConstant(to[i]);
    if (!start || !extent || !count || *count == 0)
      continue;
    int64_t last = *start + (*count - 1) * step;
    if (std::min(*start, last) < 0 || std::max(*start, last) >= *extent)
      return emitOpError("axis ") << i << " reads elements " << *start << " to "
                                  << last << " of " << *extent;
  }
  return success();
}

SmallVector<utils::IteratorType> SliceOp::getLoopKinds() {
  return getResultLoops(getResult());
}
AffineMap SliceOp::getOperandMap(unsigned) {
  AffineMap starts = getStarts();
  SmallVector<AffineExpr> indices;
  for (auto [axis, start] : llvm::enumerate(starts.getResults()))
    indices.push_back(getAffineDimExpr(axis, getContext()) * getSteps()[axis] +
                      start);
  return AffineMap::get(getType().getRank(), starts.getNumSymbols(), indices,
                        getContext());
}
AffineMap SliceOp::getResultMap(unsigned) {
  return getIdentityMap(getResult());
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  // One element has no next one: every step would do.
  SmallVector<int64_t> steps(getSteps());
  for (auto [step, extent] : llvm::zip_equal(steps, getExtents(getResult())))
    if (getConstant(extent) == 1)
      step = 1;
  if (ArrayRef(steps) != getSteps()) {
    setSteps(steps);
    return getResult();
  }
  bool isWhole = getX().getType() == getType() &&
                 llvm::all_of(getSteps(), [](int64_t s) { return s == 1; }) &&
                 llvm::all_of(getStarts().getResults(), [](AffineExpr start) {
                   return getConstant(start) == 0;
                 });
  return isWhole ? getX() : Value();
}

Value SliceOp::emitElement(OpBuilder &builder, Location loc, ValueRange indices,
                           ElementSource &source) {
  ScalarEmitter emitter(builder, loc);
  SmallVector<Value> inner(indices);
  for (auto [i, index] : llvm::enumerate(inner)) {
    if (getSteps()[i] != 1)
      index = emitter.emit<arith::MulIOp>(
          index, builder.create<arith::ConstantIndexOp>(loc, getSteps()[i]));
    AffineExpr start = getStarts().getResult(i);
    if (getConstant(start) != 0)
      index =
          emitter.emit<arith::AddIOp>(index, source.size(builder, loc, start));
  }
  return source.element(builder, loc, getX(), inner);
}

LogicalResult DynamicSliceOp::verify() {
  int64_t rank = ::getType(getX()).getRank();
  auto starts = ::getType(getStarts());
  if (failed(verifyElementTypes(*this, getX())))
    return failure();
  if (starts.getRank() != 1 || starts.getDimSize(0) != rank ||
      !starts.getElementType().isInteger(64))
    return emitOpError("expected ") << rank << " starts of type i64";
  if (::getType(getResult()).getRank() != rank)
    return emitOpError("expected a result of rank ") << rank;
  for (auto [from, to] :
       llvm::zip_equal(getExtents(getX()), getExtents(getResult()))) {
    auto room = getConstant(from - to);
    if (room && *room < 0)
      return emitOpError("result ")
             << getType() << " does not fit into " << getX().getType();
  }
  return success();
}

Extents DynamicSliceOp::getNonNegativeSizes() {
  Extents conditions;
  for (auto [from, to] :
       llvm::zip_equal(getExtents(getX()), getExtents(getResult())))
    conditions.push_back(from - to);
  return conditions;
}

Value DynamicSliceOp::emitElement(OpBuilder &builder, Location loc,
                                  ValueRange indices, ElementSource &source) {
  ScalarEmitter emitter(builder, loc);
  SmallVector<Value> inner;
  Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
  for (auto [i, index] : llvm::enumerate(indices)) {
    Value axis = builder.create<arith::ConstantIndexOp>(loc, i);
    Value start = source.element(builder, loc, getStarts(), axis);
    start = emitter.emit<arith::IndexCastOp>(builder.getIndexType(), start);
    AffineExpr room = getExtent(getX(), i) - getExtent(getResult(), i);
    start =
        emitter.emit<arith::MinSIOp>(start, source.size(builder, loc, room));
    start = emitter.emit<arith::MaxSIOp>(start, zero);
    inner.push_back(emitter.emit<arith::AddIOp>(start, index));
  }
  return source.element(builder, loc, getX(), inner);
}

// --- concat

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  ValueRange operands = adaptor.getOperands();
  if (operands.empty())
    return emitOptionalError(loc, "expected at least one operand");
  auto first = ::getType(operands[0]);
  int64_t axis = adaptor.getAxis();
  if (axis < 0 || axis >= first.getRank())
    return emitOptionalError(loc, "axis ", axis, " is out of range for rank ",
                             first.getRank());
  Extents result = getExtents(first);
  for (Value operand : operands.drop_front()) {
    auto type = ::getType(operand);
    Extents extents = getExtents(type);
    if (type.getElementType() != first.getElementType() ||
        extents.size() != result.size())
      return emitOptionalError(loc, "expected operands like ", first,
                               ", found ", type);
    for (auto [i, extent] : llvm::enumerate(extents))
      if (int64_t(i) != axis && !isEqual(extent, result[i]))
        return emitOptionalError(loc, "expected the extents of ", first,
                                 " but for axis ", axis, ", found ", type);
    result[axis] = result[axis] + extents[axis];
  }
  types.push_back(makeTensorType(result, first.getElementType()));
  return success();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getNumOperands() == 1 ? getOperand(0) : Value();
}

/// The element at `inner` of the concatenation of `operands`: a binary search
/// for the operand that holds it.
static Value emitConcatenated(OpBuilder &builder, Location loc,
                              OperandRange operands, int64_t axis,
                              ValueRange inner, ElementSource &source) {
  Value tensor = operands.front();
  if (operands.size() == 1)
    return source.element(builder, loc, tensor, inner);
  OperandRange low = operands.take_front(operands.size() / 2);
  OperandRange high = operands.drop_front(low.size());
  AffineExpr extent = builder.getAffineConstantExpr(0);
  for (Value operand : low)
    extent = extent + getExtent(operand, axis);
  Value offset = source.size(builder, loc, extent);
  Value isLow = builder.create<arith::CmpIOp>(loc, CmpIPredicate::slt,
                                              inner[axis], offset);
  return emitBranch(
      builder, loc, getScalarType(getElementTypeOrSelf(tensor)), isLow,
      [&](OpBuilder &b) {
        return emitConcatenated(b, loc, low, axis, inner, source);
      },
      [&](OpBuilder &b) {
        SmallVector<Value> rest(inner);
        rest[axis] = b.create<arith::SubIOp>(loc, inner[axis], offset);
        return emitConcatenated(b, loc, high, axis, rest, source);
      });
}

Value ConcatOp::emitElement(OpBuilder &builder, Location loc,
                            ValueRange indices, ElementSource &source) {
  return emitConcatenated(builder, loc, getOperands_(), getAxis(), indices,
                          source);
}

// --- iota

LogicalResult IotaOp::verify() {
  int64_t rank = getType().getRank(), axis = getAxis();
  if (axis < 0 || axis >= rank)
    return emitOpError("axis ") << axis << " is out of range for rank " << rank;
  return success();
}

Value IotaOp::emitElement(OpBuilder &builder, Location loc, ValueRange indices,
                          ElementSource &) {
  Value number = builder.create<arith::IndexCastOp>(loc, builder.getI64Type(),
                                                    indices[getAxis()]);
  return emitCast(builder, loc, number, builder.getI64Type(),
                  getElementTypeOrSelf(getResult()));
}

#define GET_OP_CLASSES
#include "dialects/graph/Movement.cpp.inc"

void GraphDialect::addMovementOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Movement.cpp.inc"
      >();
}

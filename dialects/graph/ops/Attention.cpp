#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

static int64_t getRank(Value x) {
  return cast<RankedTensorType>(x.getType()).getRank();
}

static SmallVector<OpOperand *> getOperands(Operation *op, unsigned count) {
  SmallVector<OpOperand *> operands;
  for (OpOperand &operand : op->getOpOperands().take_front(count))
    operands.push_back(&operand);
  return operands;
}

// --- What they have in common ------------------------------------------------

bool tcc::graph::fitsTensorCores(ArrayRef<AffineExpr> columns) {
  constexpr int64_t kMaxColumns = 128;
  return llvm::all_of(columns, [](AffineExpr count) {
    std::optional<int64_t> known = getConstant(count);
    return known && *known > 0 && *known <= kMaxColumns;
  });
}

bool tcc::graph::fitsTensorCores(AttentionOpInterface op) {
  return fitsTensorCores(
      llvm::map_to_vector(op.getMatrices(), [](OpOperand *matrix) {
        return getExtents(matrix->get()).back();
      }));
}

bool tcc::graph::takesTensorCores(AttentionOpInterface op) {
  Type type = getElementTypeOrSelf(op.getQuery());
  return (type.isF16() || type.isBF16()) && fitsTensorCores(op);
}

/// `precision` if matrices are such that kernels of narrow ones take them.
static Precision getAttentionPrecision(AttentionOpInterface op,
                                       Precision precision) {
  return fitsTensorCores(op) ? precision : Precision::keep;
}

static LogicalResult verifyElementTypes(AttentionOpInterface op) {
  Type result = getElementTypeOrSelf(op->getResult(0));
  SmallVector<OpOperand *> matrices = op.getMatrices();
  Type type = getElementTypeOrSelf(op.getQuery());
  bool isMixed = type.getIntOrFloatBitWidth() == 16 && result.isF32();
  if (type != result && !isMixed)
    return op->emitOpError("expected matrices of the result's element type, or "
                           "of 16 bits where that is f32");
  for (OpOperand &operand : op->getOpOperands())
    if (getElementTypeOrSelf(operand.get()) !=
        (llvm::is_contained(matrices, &operand) ? type : result))
      return op->emitOpError("expected one element type");
  return success();
}

/// `matrices` have the rank of the first one and its batch axes.
static LogicalResult verifyBatch(Operation *op, ArrayRef<Value> matrices) {
  Extents first = getExtents(matrices.front());
  size_t rank = first.size();
  for (Value matrix : matrices) {
    Extents extents = getExtents(matrix);
    if (rank < 2 || extents.size() != rank)
      return op->emitOpError("expected matrices with the same batch axes");
    for (size_t axis = 0; axis + 2 < rank; ++axis)
      if (!isEqual(extents[axis], first[axis]))
        return op->emitOpError("operands differ in batch axis ") << axis;
  }
  return success();
}

static LogicalResult verifyScores(AttentionOpInterface op) {
  Extents q = getExtents(op.getQuery()), k = getExtents(op.getKey());
  size_t rank = q.size();
  if (!isEqual(q[rank - 1], k[rank - 1]))
    return op->emitOpError("query and key differ in their common extent");
  if (!op.getMask())
    return success();
  Extents mask = getExtents(op.getMask());
  if (mask.size() == rank && isEqual(mask[rank - 2], q[rank - 2]) &&
      isEqual(mask[rank - 1], k[rank - 2]) &&
      llvm::all_of(llvm::seq<size_t>(0, rank - 2), [&](size_t axis) {
        std::optional<int64_t> part = getConstant(mask[axis]);
        return isEqual(mask[axis], q[axis]) ||
               (part && *part > 0 && q[axis].isMultipleOf(*part));
      }))
    return success();
  return op->emitOpError("the mask has not the extents of the scores");
}

/// Whether `x` has `rows` and `columns` behind its batch axes.
static bool isMatrix(Value x, AffineExpr rows, AffineExpr columns) {
  Extents extents = getExtents(x);
  return isEqual(extents[extents.size() - 2], rows) &&
         isEqual(extents.back(), columns);
}

static AffineExpr getRows(Value x) { return getExtent(x, getRank(x) - 2); }
static AffineExpr getColumns(Value x) { return getExtent(x, getRank(x) - 1); }

/// Scores, in the result's element type.
static Value emitScores(const TensorEmitter &e, AttentionOpInterface op) {
  Value scores = e.emit<MatmulOp>(op.getQuery(), op.getKey(),
                                  /*transposeLhs=*/false, /*transposeRhs=*/true,
                                  getElementTypeOrSelf(op->getResult(0)));
  scores =
      e.emit<MulOp>(scores, e.splat(scores, op.getScale().convertToDouble()));
  if (op.getMask())
    scores = e.emit<AddOp>(
        scores, e.tile(op.getMask(), cast<RankedTensorType>(scores.getType())));
  return scores;
}

/// Their softmax, where nothing else is known of a row.
static Value emitWeights(const TensorEmitter &e, AttentionOpInterface op,
                         bool guard) {
  Value scores = emitScores(e, op);
  Value weights = e.emit<SoftmaxOp>(scores, getRank(scores) - 1);
  if (!guard)
    return weights;
  return e.emit<SelectOp>(e.emit<IsNanOp>(weights), e.splat(weights, 0.0),
                          weights);
}

/// max + log(sum(e^(score - max)))
static Value emitNormalizer(const TensorEmitter &e, AttentionOpInterface op) {
  Value scores = emitScores(e, op);
  int64_t last = getRank(scores) - 1;
  Value most = e.emit<ReduceOp>(ReduceKind::max, scores, last);
  // Where all scores are -inf, so is the sum's logarithm.
  Value isFinite =
      e.emit<CompareOp>(CompareKind::gt, most, e.splat(most, -INFINITY));
  Value shift = e.emit<SelectOp>(isFinite, most, e.splat(most, 0.0));
  Value shifted = e.emit<SubOp>(scores, e.broadcastBack(shift, scores, last));
  Value sum = e.emit<ReduceOp>(ReduceKind::sum, e.emit<ExpOp>(shifted), last);
  Extents row = getExtents(op.getQuery());
  row.back() = getAffineConstantExpr(1, op->getContext());
  return e.reshape(e.emit<AddOp>(shift, e.emit<LogOp>(sum)), row);
}

static LogicalResult verifyNormalizer(AttentionOpInterface op,
                                      Value normalizer) {
  AffineExpr one = getAffineConstantExpr(1, op->getContext());
  if (!isMatrix(normalizer, getRows(op.getQuery()), one))
    return op->emitOpError("expected one number a query");
  return success();
}

// --- attention ---------------------------------------------------------------

KernelKind AttentionOp::getKernelKind() { return KernelKind::attention; }

SmallVector<OpOperand *> AttentionOp::getMatrices() {
  return ::getOperands(*this, 3);
}

Precision AttentionOp::getPrecision() {
  return getAttentionPrecision(*this, getNormalizer()
                                          ? Precision::narrow_tensor_attention
                                          : Precision::narrow_attention);
}

bool AttentionOp::awaitsPrecision() { return false; }

bool AttentionOp::isStoredWide() { return false; }

/// Its kernel packs keys and values, which costs as much as a dozen queries.
bool AttentionOp::isBetterDecomposed() {
  constexpr int64_t kPackingCost = 12;
  std::optional<int64_t> queries = getConstant(getRows(getQuery()));
  return (queries && *queries < kPackingCost) ||
         (getNormalizer() && !takesTensorCores(*this));
}

LogicalResult AttentionOp::verify() {
  SmallVector<Value> matrices = {getQuery(), getKey(), getValue()};
  llvm::append_range(matrices, getResults());
  if (failed(verifyBatch(*this, matrices)))
    return failure();
  if (!isEqual(getRows(getKey()), getRows(getValue())))
    return emitOpError("there is not one value for each key");
  if (!isMatrix(getResult(), getRows(getQuery()), getColumns(getValue())))
    return emitOpError("the result has not the rows of query and the columns "
                       "of value");
  if (getNormalizer() && failed(verifyNormalizer(*this, getNormalizer())))
    return failure();
  if (failed(verifyScores(*this)))
    return failure();
  return verifyElementTypes(*this);
}

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  Value weights = emitWeights(e, *this, getGuard());
  auto type = cast<RankedTensorType>(getValue().getType());
  SmallVector<Value> results = {e.emit<MatmulOp>(
      e.castTo(weights, type), getValue(), /*transposeLhs=*/false,
      /*transposeRhs=*/false, getElementTypeOrSelf(getResult()))};
  if (getNormalizer())
    results.push_back(emitNormalizer(e, *this));
  return results;
}

// --- attention_normalizer ----------------------------------------------------

KernelKind AttentionNormalizerOp::getKernelKind() {
  return KernelKind::attention;
}

SmallVector<OpOperand *> AttentionNormalizerOp::getMatrices() {
  return ::getOperands(*this, 2);
}

Precision AttentionNormalizerOp::getPrecision() {
  return getAttentionPrecision(*this, Precision::narrow_tensor_attention);
}

/// Weights are e^(score - normalizer): rounding would be a factor of all.
bool AttentionNormalizerOp::isStoredWide() { return true; }

bool AttentionNormalizerOp::awaitsPrecision() { return fitsTensorCores(*this); }

bool AttentionNormalizerOp::isBetterDecomposed() {
  return !takesTensorCores(*this);
}

LogicalResult AttentionNormalizerOp::verify() {
  if (failed(verifyBatch(*this, {getQuery(), getKey(), getResult()})) ||
      failed(verifyNormalizer(*this, getResult())))
    return failure();
  if (failed(verifyScores(*this)))
    return failure();
  return verifyElementTypes(*this);
}

FailureOr<SmallVector<Value>>
AttentionNormalizerOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  return SmallVector<Value>{emitNormalizer(e, *this)};
}

// --- attention_gradient ------------------------------------------------------

KernelKind AttentionGradientOp::getKernelKind() {
  return KernelKind::attention;
}

SmallVector<OpOperand *> AttentionGradientOp::getMatrices() {
  return ::getOperands(*this, 4);
}

Precision AttentionGradientOp::getPrecision() {
  return getAttentionPrecision(*this, Precision::narrow_tensor_attention);
}

/// A mask's is a sum over the batch.
bool AttentionGradientOp::isStoredWide() {
  return getOf() == AttentionOperand::mask;
}

bool AttentionGradientOp::awaitsPrecision() { return fitsTensorCores(*this); }

bool AttentionGradientOp::isBetterDecomposed() {
  return !takesTensorCores(*this);
}

LogicalResult AttentionGradientOp::verify() {
  if (failed(verifyBatch(*this, {getQuery(), getKey(), getValue(),
                                 getGradient(), getNormalizer(), getShare()})))
    return failure();
  AffineExpr queries = getRows(getQuery()), columns = getColumns(getValue());
  AffineExpr one = getAffineConstantExpr(1, getContext());
  if (!isEqual(getRows(getKey()), getRows(getValue())))
    return emitOpError("there is not one value for each key");
  if (!isMatrix(getGradient(), queries, columns))
    return emitOpError("the gradient has not the rows of query and the columns "
                       "of value");
  if (!isMatrix(getNormalizer(), queries, one) ||
      !isMatrix(getShare(), queries, one))
    return emitOpError("expected one normalizer and one share a query");
  Extents expected;
  if (getOf() == AttentionOperand::all) {
    expected = getExtents(getQuery());
    for (Value matrix : {getKey(), getValue()})
      if (!llvm::equal(getExtents(matrix), expected, isEqual))
        return emitOpError("query, key and value differ in their extents");
    expected.insert(expected.begin(), getAffineConstantExpr(3, getContext()));
  } else if (getOf() == AttentionOperand::mask) {
    if (!getMask())
      return emitOpError("there is no mask");
    expected = getExtents(getMask());
    expected.insert(expected.begin(), getExtents(getResult()).front());
  } else {
    expected = getExtents(getOperand(static_cast<unsigned>(getOf())));
  }
  if (!llvm::equal(getExtents(getResult()), expected, isEqual))
    return emitOpError("the result has not the extents of what it belongs to");
  if (failed(verifyScores(*this)))
    return failure();
  return verifyElementTypes(*this);
}

/// The gradient of scores.
static Value emitScoreGradients(const TensorEmitter &e, AttentionGradientOp op,
                                Value weights) {
  Value slopes =
      e.emit<MatmulOp>(op.getGradient(), op.getValue(), /*transposeLhs=*/false,
                       /*transposeRhs=*/true, getElementTypeOrSelf(weights));
  Value share = e.emit<BroadcastOp>(slopes.getType(), op.getShare());
  return e.emit<MulOp>(weights, e.emit<SubOp>(slopes, share));
}

/// All of the gradient in the first of the sums, zeros in the others.
static Value emitMaskGradient(const TensorEmitter &e, AttentionGradientOp op,
                              Value scores) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Extents extents = getExtents(op.getMask());
  Value sum =
      e.sumTiles(scores, makeTensorType(extents, type.getElementType()));
  extents.insert(extents.begin(), getAffineConstantExpr(1, op.getContext()));
  sum = e.reshape(sum, extents);
  AffineExpr count = getExtents(type).front();
  if (getConstant(count) == 1)
    return sum;
  extents.front() = count - 1;
  Value zeros = e.splat(makeTensorType(extents, type.getElementType()), 0.0);
  return e.emit<ConcatOp>(ValueRange{sum, zeros}, 0);
}

/// With a softmax of the scores, which all gradients of an attention share,
/// instead of its normalizer.
FailureOr<SmallVector<Value>>
AttentionGradientOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  auto type = cast<RankedTensorType>(getQuery().getType());
  AttentionOperand of = getOf();
  bool isAll = of == AttentionOperand::all;
  Value weights = emitWeights(e, *this, getGuard()), scores;
  if (of != AttentionOperand::value)
    scores = emitScoreGradients(e, *this, weights);
  if (of == AttentionOperand::mask)
    return SmallVector<Value>{emitMaskGradient(e, *this, scores)};
  if (scores)
    scores =
        e.emit<MulOp>(scores, e.splat(scores, getScale().convertToDouble()));
  SmallVector<Value> parts;
  auto add = [&](AttentionOperand part, Value lhs, Value rhs) {
    if (!isAll && of != part)
      return;
    Value x = e.emit<MatmulOp>(e.castTo(lhs, type), rhs,
                               /*transposeLhs=*/part != AttentionOperand::query,
                               /*transposeRhs=*/false,
                               getElementTypeOrSelf(getResult()));
    Extents extents = getExtents(x);
    extents.insert(extents.begin(), getAffineConstantExpr(1, getContext()));
    parts.push_back(isAll ? e.reshape(x, extents) : x);
  };
  add(AttentionOperand::query, scores, getKey());
  add(AttentionOperand::key, scores, getQuery());
  add(AttentionOperand::value, weights, getGradient());
  return SmallVector<Value>{isAll ? e.emit<ConcatOp>(parts, 0) : parts.front()};
}

#define GET_OP_CLASSES
#include "dialects/graph/Attention.cpp.inc"

void GraphDialect::addAttentionOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Attention.cpp.inc"
      >();
}

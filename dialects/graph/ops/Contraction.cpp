#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

/// Axes of an operand behind its batch axes.
static int64_t getMatrixRank(bool packed) { return packed ? 3 : 2; }

AffineExpr MatmulOp::getM() {
  return getExtent(getResult(), getResult().getType().getRank() - 2);
}
AffineExpr MatmulOp::getN() {
  return getExtent(getResult(), getResult().getType().getRank() - 1);
}
AffineExpr MatmulOp::getK() {
  int64_t rank = getLhs().getType().getRank();
  return getExtent(getLhs(), rank - (getTransposeLhs() ? 2 : 1));
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, bool transposeLhs, bool transposeRhs,
                     Type elementType) {
  Extents l = getExtents(lhs), r = getExtents(rhs);
  auto batch =
      broadcastExtents(ArrayRef(l).drop_back(2), ArrayRef(r).drop_back(2));
  assert(batch && "batch extents of a matmul do not match");
  batch->push_back(l[l.size() - (transposeLhs ? 1 : 2)]);
  batch->push_back(r[r.size() - (transposeRhs ? 2 : 1)]);
  if (!elementType)
    elementType = getElementTypeOrSelf(lhs);
  build(builder, state, makeTensorType(*batch, elementType), lhs, rhs,
        transposeLhs, transposeRhs, /*packed_rhs=*/false);
}

static LogicalResult verifyBatch(MatmulOp op, Value operand, bool packed) {
  Extents batch = getExtents(operand);
  batch.pop_back_n(getMatrixRank(packed));
  Extents result = getExtents(op.getResult());
  result.pop_back_n(2);
  auto common = broadcastExtents(batch, result);
  if (common && ArrayRef(*common) == ArrayRef(result))
    return success();
  return op.emitOpError("batch extents of ")
         << operand.getType() << " do not broadcast to those of "
         << op.getResult().getType();
}

int64_t MatmulOp::getPanelColumns(int64_t n) {
  constexpr int64_t kVector = 16;
  return std::clamp<int64_t>(llvm::alignTo(n, kVector), kVector, kPanelColumns);
}

Packing tcc::graph::getPacking(Type elementType) {
  return {elementType.isBF16() ? 2 : 1};
}

/// Rows of k that are no whole groups are not grouped.
Packing MatmulOp::getPacking(Type elementType, int64_t depth) {
  Packing packing = graph::getPacking(elementType);
  return depth % packing.group == 0 ? packing : Packing();
}

/// Fewer products in a sum gain nothing from being narrow: they are positions
/// times frequencies, say.
Precision MatmulOp::getPrecision() {
  constexpr int64_t kMinDepth = 8;
  return getConstant(getK()).value_or(kMinDepth) < kMinDepth
             ? Precision::keep
             : Precision::narrow;
}

LogicalResult MatmulOp::verify() {
  bool packed = getPackedRhs();
  if (getResult().getType().getRank() < 2 || getLhs().getType().getRank() < 2 ||
      getRhs().getType().getRank() < getMatrixRank(packed))
    return emitOpError("expected matrices");
  if (packed && getTransposeRhs())
    return emitOpError("a packed rhs has no transposed form");
  if (packed && !getConstant(getN()))
    return emitOpError("a packed rhs has a constant number of columns");
  if (packed &&
      getElementTypeOrSelf(getRhs()) != getElementTypeOrSelf(getLhs()))
    return emitOpError("a packed rhs has the element type of lhs");
  Extents rhs = getExtents(getRhs()), lhs = getExtents(getLhs());
  AffineExpr k = rhs[rhs.size() - (getTransposeRhs() ? 1 : 2)];
  if (!isEqual(k, getK()))
    return emitOpError("lhs and rhs differ in their common extent");
  if (!isEqual(lhs[lhs.size() - (getTransposeLhs() ? 1 : 2)], getM()))
    return emitOpError("lhs does not have the rows of the result");
  int64_t width = packed ? getPanelColumns(*getConstant(getN())) : 1;
  AffineExpr found = rhs[rhs.size() - (packed ? 3 : getTransposeRhs() ? 2 : 1)];
  if (!isEqual(found, getN().ceilDiv(width)) ||
      (packed && getConstant(rhs.back()) != width))
    return emitOpError("rhs does not have the columns of the result");
  if (failed(verifyBatch(*this, getLhs(), false)))
    return failure();
  return verifyBatch(*this, getRhs(), packed);
}

// Loops: batch..., m, n, k.

SmallVector<utils::IteratorType> MatmulOp::getLoopKinds() {
  SmallVector<utils::IteratorType> kinds(getResult().getType().getRank(),
                                         utils::IteratorType::parallel);
  kinds.push_back(utils::IteratorType::reduction);
  return kinds;
}

AffineMap MatmulOp::getOperandMap(unsigned operand) {
  int64_t loops = getResult().getType().getRank() + 1;
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, getContext()); };
  bool isRhs = operand == 1;
  Extents extents = getExtents(getOperand(operand));
  int64_t matrixRank = getMatrixRank(isRhs && getPackedRhs());
  int64_t batch = extents.size() - matrixRank;
  SmallVector<AffineExpr> results;
  for (int64_t i = 0; i < batch; ++i)
    results.push_back(getConstant(extents[i]) == 1
                          ? getAffineConstantExpr(0, getContext())
                          : loop(loops - 3 - batch + i));
  AffineExpr m = loop(loops - 3), n = loop(loops - 2), k = loop(loops - 1);
  if (isRhs && getPackedRhs()) {
    int64_t width = *getConstant(extents.back());
    AffineExpr column = n % width;
    Packing packing;
    if (auto depth = getConstant(getK()))
      packing = getPacking(getElementTypeOrSelf(getRhs()), *depth);
    if (int64_t group = packing.group; group > 1) {
      AffineExpr place = column * group + k % group;
      k = k.floorDiv(group) * group + place.floorDiv(width);
      column = place % width;
    }
    results.append({n.floorDiv(width), k, column});
  } else if (isRhs) {
    results.append({getTransposeRhs() ? n : k, getTransposeRhs() ? k : n});
  } else {
    results.append({getTransposeLhs() ? k : m, getTransposeLhs() ? m : k});
  }
  return AffineMap::get(loops, 0, results, getContext());
}

AffineMap MatmulOp::getResultMap(unsigned) {
  int64_t rank = getResult().getType().getRank();
  return AffineMap::getMultiDimIdentityMap(rank + 1, getContext())
      .getMajorSubMap(rank);
}

KernelKind MatmulOp::getKernelKind() { return KernelKind::contraction; }

/// Batches that rhs does not tell apart are rows.
ProductView MatmulOp::getProduct() {
  Extents extents = getExtents(getResult()), left = getExtents(getLhs());
  Extents right = getExtents(getRhs());
  int64_t rank = extents.size();
  left.pop_back_n(2);
  right.pop_back_n(getMatrixRank(getPackedRhs()));
  auto extentOf = [&](ArrayRef<AffineExpr> batch, int64_t axis) {
    int64_t added = rank - 2 - int64_t(batch.size());
    return axis < added ? AffineExpr() : batch[axis - added];
  };
  auto isRow = [&](int64_t axis) {
    AffineExpr l = extentOf(left, axis), r = extentOf(right, axis);
    return l == extents[axis] && (!r || getConstant(r) == 1);
  };
  // Axes of the result in the order of the loops, and these as they are there.
  SmallVector<int64_t> batch, rows;
  for (int64_t axis = 0; axis < rank - 2; ++axis)
    (isRow(axis) ? rows : batch).push_back(axis);
  rows.push_back(rank - 2);
  SmallVector<AffineExpr> loops(rank + 1);
  ProductView view;
  auto add = [&](Extents &side, int64_t axis, AffineExpr extent) {
    loops[axis] = getAffineDimExpr(view.countLoops(), getContext());
    side.push_back(extent);
  };
  for (int64_t axis : batch)
    add(view.batch, axis, extents[axis]);
  for (int64_t axis : rows)
    add(view.rows, axis, extents[axis]);
  add(view.columns, rank - 1, getN());
  add(view.depth, rank, getK());
  auto renumber = [&](AffineMap map) {
    return map.replaceDimsAndSymbols(loops, {}, rank + 1, 0);
  };
  view.lhs = {0, renumber(getOperandMap(0))};
  view.rhs = {1, renumber(getOperandMap(1))};
  if (getPackedRhs()) {
    auto places = view.rhs.map.getResults().take_front(right.size());
    view.rhs.map = AffineMap::get(rank + 1, 0, places, getContext());
    view.rhs.panels = Packing();
    if (auto depth = getConstant(getK()))
      view.rhs.panels = getPacking(getElementTypeOrSelf(getRhs()), *depth);
  }
  view.result = renumber(getResultMap(0));
  return view;
}

// --- matmul_sums

AffineExpr MatmulSumsOp::getM() { return getExtent(getResult(), 0); }
AffineExpr MatmulSumsOp::getN() { return getExtent(getResult(), 1); }
AffineExpr MatmulSumsOp::getK() {
  return getExtent(getLhs(), getTransposeLhs() ? 0 : 1);
}

LogicalResult MatmulSumsOp::verify() {
  for (Value matrix : {getLhs(), getRhs(), getResult()})
    if (getExtents(matrix).size() != 2)
      return emitOpError("expected matrices");
  if (getElementTypeOrSelf(getSums()) != getElementTypeOrSelf(getResult()))
    return emitOpError("expected results of one element type");
  auto isOf = [](Value value, Extents expected) {
    return llvm::equal(getExtents(value), expected, isEqual);
  };
  AffineExpr m = getM(), n = getN(), k = getK();
  if (!isOf(getLhs(), getTransposeLhs() ? Extents{k, m} : Extents{m, k}) ||
      !isOf(getRhs(), getTransposeRhs() ? Extents{n, k} : Extents{k, n}))
    return emitOpError("operands do not have the extents of a product");
  if (!isOf(getSums(), {getOfLhs() ? m : n}))
    return emitOpError("sums do not have the extent of what is summed");
  return success();
}

// Loops: m, n, k.

SmallVector<utils::IteratorType> MatmulSumsOp::getLoopKinds() {
  return {utils::IteratorType::parallel, utils::IteratorType::parallel,
          utils::IteratorType::reduction};
}

static AffineMap mapLoops(MLIRContext *context, ArrayRef<unsigned> loops) {
  SmallVector<AffineExpr> indices;
  for (unsigned loop : loops)
    indices.push_back(getAffineDimExpr(loop, context));
  return AffineMap::get(3, 0, indices, context);
}

AffineMap MatmulSumsOp::getOperandMap(unsigned operand) {
  unsigned free = operand; // m or n
  bool depthIsFirst = operand == 0 ? getTransposeLhs() : !getTransposeRhs();
  return depthIsFirst ? mapLoops(getContext(), {2, free})
                      : mapLoops(getContext(), {free, 2});
}

AffineMap MatmulSumsOp::getResultMap(unsigned result) {
  if (result == 0)
    return mapLoops(getContext(), {0, 1});
  return mapLoops(getContext(), {getOfLhs() ? 0u : 1u});
}

KernelKind MatmulSumsOp::getKernelKind() { return KernelKind::contraction; }

ProductView MatmulSumsOp::getProduct() {
  ProductView view;
  view.rows = {getM()};
  view.columns = {getN()};
  view.depth = {getK()};
  view.lhs = {0, getOperandMap(0)};
  view.rhs = {1, getOperandMap(1)};
  view.result = getResultMap(0);
  view.sums = getOfLhs() ? ProductSums::lhs : ProductSums::rhs;
  return view;
}

#define GET_OP_CLASSES
#include "dialects/graph/Contraction.cpp.inc"

void GraphDialect::addContractionOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Contraction.cpp.inc"
      >();
}

//===- MatmulKernel.cpp - graph.matmul as a contraction -------------------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

namespace {

struct MatmulPlan {
  MatmulOp op;
  MatrixSide lhs, rhs;
  MatrixAccess lhsAccess, rhsAccess;
  AffineExpr batch, m, n, k;
  /// The batch axes of the result, and those that are rows of one product
  /// because the right operand has none.
  Extents batchExtents;
  bool batchIsRows = false, rowsArePositions = false;
  /// The result's axis of rows if not its last but one, which joins the batch.
  std::optional<int64_t> rowAxis;
  Packing packing; // `depth` counts units of it
  AffineExpr depth;
  BlockChoice blocking;
  Type sum;

  explicit MatmulPlan(FusedOp region);
  AffineExpr getTasks() const {
    return batch * m.ceilDiv(blocking->m) * n.ceilDiv(blocking->n);
  }

private:
  bool canJoinBatch(const StridedInput &input);
  void joinBatch(FusedOp region);
  void chooseRows();
  MatrixAccess chooseAccess(const MatrixSide &side);
  Packing choosePacking();
  void setPacking(Packing chosen);
};

} // namespace

static bool isOne(AffineExpr extent) { return getConstant(extent) == 1; }

MatmulPlan::MatmulPlan(FusedOp region)
    : op(cast<MatmulOp>(getAnchor(region))), m(op.getM()), n(op.getN()),
      k(op.getK()) {
  batchExtents = getExtents(op.getResult());
  batchExtents.pop_back_n(2);
  batch = getNumElements(batchExtents, op.getContext());
  sum = getSumType(getElementTypeOrSelf(op.getResult()));
  int64_t rank = op.getLhs().getType().getRank();
  lhs = {op.getLhs(), rank - 2, rank - 1, rank - 2};
  if (op.getTransposeLhs())
    std::swap(lhs.laneAxis, lhs.kAxis);
  rank = op.getRhs().getType().getRank() - (op.getPackedRhs() ? 1 : 0);
  rhs = {op.getRhs(), rank - 1, rank - 2, rank - 2};
  if (op.getTransposeRhs())
    std::swap(rhs.laneAxis, rhs.kAxis);
  joinBatch(region);
  lhsAccess = chooseAccess(lhs);
  rhsAccess = chooseAccess(rhs);
  depth = k;
  setPacking(choosePacking());
  ContractionSizes sizes{getConstant(batch), getConstant(m), getConstant(n),
                         getConstant(depth)};
  blocking = {region, chooseBlocking(sizes), sizes};
}

/// True unless rows along k start within a unit.
static bool holdsUnits(const MatrixSide &side, const MatrixAccess &access,
                       Packing packing) {
  bool isRead =
      access.kind == MatrixAccess::Rows || access.kind == MatrixAccess::InPlace;
  if (!isRead || getConstant(access.kStride) != 1)
    return true;
  StridedInput from = traceInput(side.tensor);
  Extents extents = getExtents(side.tensor);
  for (auto [axis, stride] : llvm::enumerate(from.strides))
    if (int64_t(axis) != side.kAxis && !isOne(extents[axis]) &&
        !stride.isMultipleOf(packing.group))
      return false;
  return from.offset.isMultipleOf(packing.group);
}

/// What the right operand has in place, across k, is not worth copying.
Packing MatmulPlan::choosePacking() {
  std::optional<int64_t> constant = getConstant(k);
  if (!constant)
    return Packing();
  Packing left =
      MatmulOp::getPacking(getElementTypeOrSelf(op.getLhs()), *constant);
  Packing right =
      MatmulOp::getPacking(getElementTypeOrSelf(op.getRhs()), *constant);
  bool isTaken =
      op.getPackedRhs() ||
      (rhsAccess.kind != MatrixAccess::InPlace &&
       holdsUnits(lhs, lhsAccess, left) && holdsUnits(rhs, rhsAccess, right));
  return left == right && isTaken ? left : Packing();
}

void MatmulPlan::setPacking(Packing chosen) {
  packing = chosen;
  depth = k.floorDiv(packing.group);
  if (!holdsUnits(lhs, lhsAccess, packing))
    lhsAccess.kind = MatrixAccess::Elements;
  lhsAccess.setPacking(packing);
  rhsAccess.setPacking(packing);
}

/// Rows of neighbouring batches must be a row apart, as rows of a batch are.
bool MatmulPlan::canJoinBatch(const StridedInput &input) {
  if (!input.input || op.getTransposeLhs() ||
      lhs.batchRank != int64_t(batchExtents.size()))
    return false;
  // The stride of an axis of extent 1 says nothing.
  Extents extents = getExtents(lhs.tensor);
  AffineExpr step = input.strides[lhs.laneAxis] * extents[lhs.laneAxis];
  for (int64_t axis = lhs.batchRank; axis-- > 0;) {
    if (isOne(extents[axis]))
      continue;
    if (!isEqual(input.strides[axis], step))
      return false;
    step = step * extents[axis];
  }
  return llvm::equal(batchExtents, ArrayRef(extents).drop_back(2));
}

void MatmulPlan::joinBatch(FusedOp region) {
  Extents right = getExtents(rhs.tensor);
  if (isOne(batch) ||
      !llvm::all_of(ArrayRef(right).take_front(rhs.batchRank), isOne))
    return;
  if (!canJoinBatch(traceInput(lhs.tensor)))
    return chooseRows();
  m = batch * m;
  batch = getAffineConstantExpr(1, op.getContext());
  batchIsRows = true;
  rowsArePositions = readsPositionsOnly(region, 0, batchExtents.size() + 1);
}

/// Where all products share the right operand, the longest axis of the left one
/// serves as rows: it is packed, or read, for the fewest products.
void MatmulPlan::chooseRows() {
  std::optional<int64_t> most = getConstant(m);
  if (!traceInput(lhs.tensor).input || op.getTransposeLhs() || !most ||
      !llvm::equal(batchExtents, ArrayRef(getExtents(lhs.tensor)).drop_back(2)))
    return;
  for (auto [axis, extent] : llvm::enumerate(batchExtents))
    if (std::optional<int64_t> count = getConstant(extent);
        count && *count > *most) {
      most = count;
      rowAxis = axis;
    }
  if (!rowAxis)
    return;
  AffineExpr rows = batchExtents[*rowAxis];
  batchExtents.erase(batchExtents.begin() + *rowAxis);
  batchExtents.push_back(m);
  m = rows;
  batch = getNumElements(batchExtents, op.getContext());
  lhs.laneAxis = *rowAxis;
}

MatrixAccess MatmulPlan::chooseAccess(const MatrixSide &side) {
  bool isPanels = &side == &rhs && op.getPackedRhs();
  MatrixAccess access = traceAccess(side);
  if (isPanels)
    access.kind = MatrixAccess::Panels;
  if (!access.input || isPanels)
    return access;
  std::optional<int64_t> rows = getConstant(m), columns = getConstant(n);
  bool isFewRows = rows && *rows <= panelRows;
  bool readsInPlace = &side == &lhs
                          ? isFewRows || getConstant(access.kStride) == 1
                          : isFewRows && getConstant(access.laneStride) == 1 &&
                                columns && *columns % kPanelColumns == 0;
  if (readsInPlace)
    access.kind = MatrixAccess::InPlace;
  return access;
}

namespace {

class MatmulEmitter {
public:
  MatmulEmitter(KernelBuilder &b, KernelFrame &frame)
      : b(b), frame(frame), plan(frame.region) {}
  void emit();

private:
  KernelBuilder &b;
  KernelFrame &frame;
  MatmulPlan plan;

  Value size(OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, frame.loc, expression);
  }
  SmallVector<Value> sizes(OpBuilder &b, ArrayRef<AffineExpr> expressions) {
    return llvm::map_to_vector(expressions,
                               [&](AffineExpr e) { return size(b, e); });
  }
  MatrixOperand operand(const MatrixSide &side, const MatrixAccess &access,
                        int64_t width);
  SmallVector<Value> resultIndices(KernelBuilder &b, Value batch, Value i,
                                   Value j);
};

} // namespace

MatrixOperand MatmulEmitter::operand(const MatrixSide &side,
                                     const MatrixAccess &access,
                                     int64_t width) {
  auto indices = [this, &side](KernelBuilder &b, Value batch) {
    if (plan.batchIsRows)
      return SmallVector<Value>(side.batchRank, b.index(0));
    SmallVector<Value> at = b.delinearize(batch, sizes(b, plan.batchExtents));
    if (plan.rowAxis && &side == &plan.lhs)
      return at;
    return alignBatch(b, side.tensor, side.batchRank, at);
  };
  MatrixSource source = makeSource(frame, side, indices);
  source.panelStride = b.mul(size(b, plan.k), b.index(width));
  return makeOperand(frame, access, source, width);
}

SmallVector<Value> MatmulEmitter::resultIndices(KernelBuilder &b, Value batch,
                                                Value i, Value j) {
  SmallVector<Value> at(plan.batchExtents.size(), b.index(0));
  if (plan.batchIsRows && !plan.rowsArePositions) {
    SmallVector<Value> rows = sizes(b, plan.batchExtents);
    rows.push_back(size(b, plan.op.getM()));
    at = b.delinearize(i, rows);
    i = at.pop_back_val();
  } else if (!plan.batchIsRows) {
    at = b.delinearize(batch, sizes(b, plan.batchExtents));
  }
  at.insert(at.begin() + plan.rowAxis.value_or(at.size()), i);
  at.push_back(j);
  return at;
}

void MatmulEmitter::emit() {
  Contraction c{size(b, plan.batch), size(b, plan.m), size(b, plan.n),
                size(b, plan.depth)};
  c.lhs = operand(plan.lhs, plan.lhsAccess, plan.blocking->rows);
  int64_t columns = plan.op.getPackedRhs()
                        ? MatmulOp::getPanelColumns(*getConstant(plan.n))
                        : kPanelColumns;
  c.rhs = operand(plan.rhs, plan.rhsAccess, columns);
  c.arithmetic = {plan.sum, plan.lhsAccess.isUnsigned,
                  plan.rhsAccess.isUnsigned, plan.packing};
  c.blocking = *plan.blocking;
  c.unit = {frame.options.vectorBytes, frame.options.hasPairProducts};
  addResults(c, frame, [this](KernelBuilder &b, Value batch, Value i, Value j) {
    return resultIndices(b, batch, i, j);
  });
  emitContraction(b, c, frame.firstTask, frame.lastTask, frame.scratch);
}

FailureOr<TaskPlan> planMatmul(FusedOp region) {
  MatmulPlan plan(region);
  return plan.blocking.describe(
      {plan.getTasks(),
       contractionScratchBytes(*plan.blocking, plan.sum,
                               plan.lhsAccess.getPackedType(),
                               plan.rhsAccess.getPackedType())});
}

LogicalResult emitMatmul(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  MatmulEmitter(builder, frame).emit();
  return success();
}

} // namespace tcc::cpu

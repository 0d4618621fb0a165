#include "dialects/graph/ops/IterationSums.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::graph;

llvm::DenseSet<Value> tcc::graph::findVarying(Block &body) {
  llvm::DenseSet<Value> varying(body.args_begin(), body.args_end());
  for (Operation &op : body) {
    auto varies = [&](Value value) { return varying.contains(value); };
    if (op.getNumRegions() > 0 || llvm::any_of(op.getOperands(), varies))
      varying.insert(op.result_begin(), op.result_end());
  }
  return varying;
}

/// A product of matrices that differ in each iteration.
bool IterationSums::isScannedProduct(Value value) const {
  auto op = value.getDefiningOp<MatmulOp>();
  if (!op || op->getBlock() != &body || op.getPackedRhs())
    return false;
  auto isScannable = [&](Value operand) {
    auto type = cast<RankedTensorType>(operand.getType());
    return type.getRank() == 2 && type.hasStaticShape() &&
           varying.contains(operand);
  };
  return isScannable(op.getLhs()) && isScannable(op.getRhs());
}

/// What `value` only moves, elements of which it may leave out; null if it does
/// more.
Value IterationSums::getMoved(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &body)
    return nullptr;
  if (isa<ElementOpInterface>(op) && op->getNumOperands() == 1)
    return op->getOperand(0);
  auto pad = dyn_cast<PadOp>(op);
  bool hasZeros = pad && pad.getMode() == PadMode::constant &&
                  matchPattern(pad.getValue(), m_AnyZeroFloat());
  return hasZeros ? pad.getX() : Value();
}

/// The sum along axes of what is scanned anyway.
ReduceOp IterationSums::getReduced(Value value) const {
  auto op = value.getDefiningOp<ReduceOp>();
  bool isSum = op && op.getKind() == ReduceKind::sum;
  return isSum && scanned.contains(op.getX()) ? op : ReduceOp();
}

bool IterationSums::hasProduct(Value value) const {
  if (isScannedProduct(value) || getReduced(value))
    return true;
  if (Value moved = getMoved(value))
    return hasProduct(moved);
  auto add = value.getDefiningOp<AddOp>();
  return add && add->getBlock() == &body &&
         (hasProduct(add->getOperand(0)) || hasProduct(add->getOperand(1)));
}

unsigned IterationSums::scan(Value value) {
  scanned.insert(value);
  return llvm::find(scanned, value) - scanned.begin();
}

void IterationSums::collect(Value value) {
  if (!hasProduct(value)) {
    carried.insert(value);
  } else if (isScannedProduct(value)) {
    for (Value operand : value.getDefiningOp()->getOperands())
      scanned.insert(operand);
  } else if (Value moved = getMoved(value)) {
    collect(moved);
  } else if (!getReduced(value)) {
    collect(value.getDefiningOp()->getOperand(0));
    collect(value.getDefiningOp()->getOperand(1));
  }
}

/// Matrices [trips, ...] as one whose first axis is their depth, the last one
/// of each if `isLast`, one after the other.
Value IterationSums::stackDepth(const TensorEmitter &emitter, Value stacked,
                                bool isLast) {
  if (isLast)
    stacked = emitter.emit<TransposeOp>(stacked, ArrayRef<int64_t>{0, 2, 1});
  auto type = cast<RankedTensorType>(stacked.getType());
  ArrayRef<int64_t> shape = type.getShape();
  return emitter.emit<ReshapeOp>(
      RankedTensorType::get({shape[0] * shape[1], shape[2]},
                            type.getElementType()),
      stacked);
}

Value IterationSums::emit(const TensorEmitter &emitter, Value value,
                          ValueRange results) {
  auto at = llvm::find(carried, value);
  if (at != carried.end())
    return results[at - carried.begin()];
  ValueRange stacks = results.drop_front(carried.size());
  if (isScannedProduct(value)) {
    auto op = value.getDefiningOp<MatmulOp>();
    Value lhs = stackDepth(emitter, stacks[scan(op.getLhs())],
                           /*isLast=*/!op.getTransposeLhs());
    Value rhs = stackDepth(emitter, stacks[scan(op.getRhs())],
                           /*isLast=*/op.getTransposeRhs());
    return emitter.emit<MatmulOp>(lhs, rhs, /*transposeLhs=*/true,
                                  /*transposeRhs=*/false,
                                  getElementTypeOrSelf(value));
  }
  if (Value moved = getMoved(value)) {
    IRMapping mapping;
    mapping.map(moved, emit(emitter, moved, results));
    Operation *op = value.getDefiningOp();
    if (auto pad = dyn_cast<PadOp>(op))
      mapping.map(pad.getValue(), emitter.splat(pad.getValue(), 0.0));
    return emitter.builder.clone(*op, mapping)->getResult(0);
  }
  if (ReduceOp reduce = getReduced(value)) {
    SmallVector<int64_t> axes = {0};
    for (int64_t axis : reduce.getAxes())
      axes.push_back(axis + 1);
    return emitter.emit<ReduceOp>(ReduceKind::sum, stacks[scan(reduce.getX())],
                                  axes);
  }
  Operation *add = value.getDefiningOp();
  Value lhs = emit(emitter, add->getOperand(0), results);
  return emitter.emit<AddOp>(lhs, emit(emitter, add->getOperand(1), results));
}

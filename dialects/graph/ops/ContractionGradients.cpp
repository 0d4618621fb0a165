#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

/// [batch..., rows, columns] as [batch * rows, columns].
static Value flattenRows(const TensorEmitter &emitter, Value x) {
  Extents extents = getExtents(x);
  AffineExpr rows = getNumElements(ArrayRef(extents).drop_back(),
                                   emitter.builder.getContext());
  return emitter.reshape(x, {rows, extents.back()});
}

static bool isBatched(Value x) {
  Extents extents = getExtents(x);
  return llvm::any_of(ArrayRef(extents).drop_back(2), [](AffineExpr extent) {
    return getConstant(extent) != 1;
  });
}

/// The gradient with respect to lhs, before it is summed over batch axes along
/// which lhs was repeated.
static Value deriveLhs(const TensorEmitter &emitter, MatmulOp op, Value rhs,
                       Value gradient) {
  if (op.getTransposeLhs())
    return emitter.emit<MatmulOp>(rhs, gradient, op.getTransposeRhs(), true);
  return emitter.emit<MatmulOp>(gradient, rhs, false, !op.getTransposeRhs());
}

/// The same of rhs. What all batches share is one product over all rows.
static Value deriveRhs(const TensorEmitter &emitter, MatmulOp op, Value lhs,
                       Value gradient) {
  if (!isBatched(op.getRhs()) && !op.getTransposeLhs() &&
      getExtents(lhs).size() == getExtents(gradient).size()) {
    lhs = flattenRows(emitter, lhs);
    gradient = flattenRows(emitter, gradient);
  }
  if (op.getTransposeRhs())
    return emitter.emit<MatmulOp>(gradient, lhs, true, op.getTransposeLhs());
  return emitter.emit<MatmulOp>(lhs, gradient, !op.getTransposeLhs(), false);
}

LogicalResult MatmulOp::emitGradients(Gradients &gradients) {
  if (getPackedRhs())
    return emitOpError("of packed operands has no derivative");
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  RankedTensorType type = getResult().getType();
  Value gradient = gradients.get(getResult());
  auto add = [&](Value operand, Value part) {
    auto operandType = cast<RankedTensorType>(operand.getType());
    // Where the operand has unit batch axes, the part may have none.
    Value sum = getExtents(part).size() < getExtents(operandType).size()
                    ? emitter.reshape(part, getExtents(operandType))
                    : emitter.sumTo(part, operandType);
    gradients.add(operand, emitter.castTo(sum, operandType));
  };
  if (gradients.wants(getLhs()))
    add(getLhs(),
        deriveLhs(emitter, *this, emitter.castTo(getRhs(), type), gradient));
  if (gradients.wants(getRhs()))
    add(getRhs(),
        deriveRhs(emitter, *this, emitter.castTo(getLhs(), type), gradient));
  return success();
}

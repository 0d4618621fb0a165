//===- EmitRows.cpp - Products and normalisation --------------------------===//

#include "frontends/Emitter.h"

using namespace mlir;

namespace tcc {

Value Emitter::product(Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return nullptr;
  int64_t lhsRank = rank(lhs), rhsRank = rank(rhs);
  if (lhsRank == 0 || rhsRank == 0)
    return fail("an operand is a scalar");
  if (lhsRank == 1)
    lhs = unsqueeze(lhs, {0});
  if (rhsRank == 1)
    rhs = unsqueeze(rhs, {1});
  Value product = matmul(lhs, rhs);
  SmallVector<int64_t> dropped;
  if (lhsRank == 1)
    dropped.push_back(rank(product) - 2);
  if (rhsRank == 1)
    dropped.push_back(rank(product) - 1);
  return dropped.empty() ? product : squeeze(product, dropped);
}

Value Emitter::mean(Value x, ArrayRef<int64_t> axes) {
  if (!x)
    return nullptr;
  graph::Extents reduced;
  for (int64_t axis : axes)
    reduced.push_back(graph::getExtent(x, axis));
  return div(reduce(graph::ReduceKind::sum, x, axes, true),
             countLike(reduced, x));
}

Value Emitter::variance(Value x, Value mean, ArrayRef<int64_t> axes) {
  Value centered = sub(x, mean);
  return this->mean(mul(centered, centered), axes);
}

Value Emitter::layerNorm(Value x, int64_t axis, double epsilon, Value scale,
                         Value shift) {
  SmallVector<Value> operands = {x};
  if (scale)
    operands.push_back(scale);
  if (shift)
    operands.push_back(shift);
  Attribute segments =
      builder.getDenseI32ArrayAttr({1, scale != nullptr, shift != nullptr});
  return create<graph::LayerNormOp>(
      operands, {attr("axis", axis), attr("epsilon", epsilon),
                 attr("operandSegmentSizes", segments)});
}

Value Emitter::alongChannels(Value vector, Value x) {
  if (!vector || !x)
    return nullptr;
  SmallVector<int64_t> axes;
  for (int64_t axis = 2; axis < rank(x); ++axis)
    axes.push_back(axis - 1);
  return unsqueeze(vector, axes);
}

} // namespace tcc

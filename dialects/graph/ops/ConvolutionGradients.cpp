#include "dialects/graph/ops/WindowGradients.h"

using namespace mlir;
using namespace tcc::graph;

/// The transposed convolution that has x's extents.
static Value deriveData(const TensorEmitter &emitter, ConvOp op,
                        Value gradient) {
  ArrayRef<int64_t> from = getSpatial(op.getResult());
  ArrayRef<int64_t> to = getSpatial(op.getX());
  SmallVector<int64_t> high;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t reach = (op.getWindow()[i] - 1) * op.getDilations()[i] + 1;
    high.push_back((from[i] - 1) * op.getStrides()[i] + reach -
                   op.getPadLow()[i] - to[i]);
  }
  return emitter.emit<ConvTransposeOp>(gradient, op.getFilter(), op.getGroups(),
                                       op.getWindow(), op.getStrides(),
                                       op.getPadLow(), high, op.getDilations());
}

LogicalResult ConvOp::emitGradients(Gradients &gradients) {
  if (failed(checkWindowOp(*this)))
    return failure();
  if (gradients.wants(getFilter()) &&
      !tcc::graph::getType(getX()).hasStaticShape())
    return emitOpError("of a symbolic batch has no derivative with respect to "
                       "its filter");
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient =
      emitter.castTo(gradients.get(getResult()), tcc::graph::getType(getX()));
  if (gradients.wants(getX()))
    gradients.add(getX(), deriveData(emitter, *this, gradient));
  if (gradients.wants(getFilter()))
    gradients.add(getFilter(), deriveFilter(emitter, *this, getX(), gradient));
  return success();
}

#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

/// The product of the elements of x before, or with `reverse` after, each one
/// along `axis`.
static Value multiplyOthers(const TensorEmitter &emitter, Value x, int64_t axis,
                            bool reverse) {
  return emitter.emit<CumulativeOp>(ReduceKind::prod, x, axis,
                                    /*exclusive=*/true, reverse);
}

/// The gradient of a product along `axis`, which holds where elements are 0.
static Value deriveProduct(const TensorEmitter &emitter, Value x,
                           Value gradient, int64_t axis) {
  Value others = emitter.emit<MulOp>(multiplyOthers(emitter, x, axis, false),
                                     multiplyOthers(emitter, x, axis, true));
  return emitter.emit<MulOp>(emitter.broadcastBack(gradient, x, axis), others);
}

/// A product along several axes is one along each after the other.
static Value deriveProduct(const TensorEmitter &emitter, Value x,
                           Value gradient, ArrayRef<int64_t> axes) {
  if (axes.size() == 1)
    return deriveProduct(emitter, x, gradient, axes.front());
  Value inner = emitter.emit<ReduceOp>(ReduceKind::prod, x, axes.take_back());
  gradient = deriveProduct(emitter, inner, gradient, axes.drop_back());
  return deriveProduct(emitter, x, gradient, axes.back());
}

/// The gradient of an extremum, shared by the elements that have its value.
static Value deriveExtremum(const TensorEmitter &emitter, Value x, Value y,
                            Value gradient, ArrayRef<int64_t> axes) {
  Value isExtremum = emitter.emit<CompareOp>(CompareKind::eq, x,
                                             emitter.broadcastBack(y, x, axes));
  Value count = emitter.emit<ReduceOp>(
      ReduceKind::sum,
      emitter.emit<CastOp>(isExtremum, getElementTypeOrSelf(x)), axes);
  Value share = emitter.emit<DivOp>(gradient, count);
  return emitter.emit<SelectOp>(
      isExtremum, emitter.broadcastBack(share, x, axes), emitter.splat(x, 0.0));
}

LogicalResult ReduceOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  ArrayRef<int64_t> axes = getAxes();
  if (axes.empty())
    gradients.add(getX(), gradient);
  else if (getKind() == ReduceKind::sum)
    gradients.add(getX(), emitter.broadcastBack(gradient, getX(), axes));
  else if (getKind() == ReduceKind::prod)
    gradients.add(getX(), deriveProduct(emitter, getX(), gradient, axes));
  else
    gradients.add(getX(),
                  deriveExtremum(emitter, getX(), getResult(), gradient, axes));
  return success();
}

LogicalResult CumulativeOp::emitGradients(Gradients &gradients) {
  if (getKind() != ReduceKind::sum)
    return emitOpError("of kind prod has no derivative");
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  gradients.add(getX(), emitter.emit<CumulativeOp>(
                            ReduceKind::sum, gradients.get(getResult()),
                            getAxis(), getExclusive(), !getReverse()));
  return success();
}

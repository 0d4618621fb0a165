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

/// The gradient of an extremum, shared by the elements that have its value; NaN
/// if it is.
static Value deriveExtremum(const TensorEmitter &emitter, Value x, Value y,
                            Value gradient, ArrayRef<int64_t> axes) {
  Value isExtremum = emitter.emit<CompareOp>(CompareKind::eq, x,
                                             emitter.broadcastBack(y, x, axes));
  Value ones = emitter.emit<CastOp>(isExtremum, getElementTypeOrSelf(x));
  Value count = emitter.emit<ReduceOp>(ReduceKind::sum, ones, axes);
  Value share = emitter.emit<DivOp>(gradient, count);
  return emitter.emit<MulOp>(ones, emitter.broadcastBack(share, x, axes));
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

// --- cumulative --------------------------------------------------------------

static Value accumulate(const TensorEmitter &emitter, CumulativeOp op,
                        ReduceKind kind, Value x, bool isBackward) {
  return emitter.emit<CumulativeOp>(kind, x, op.getAxis(), op.getExclusive(),
                                    op.getReverse() != isBackward);
}

/// The gradient with respect to x[i] is the sum over j of dy[j] times what the
/// product of j has beside x[i]: without zeros y[j] / x[i]. With them, counted
/// up to j, it is not 0 if there is none but maybe x[i].
static Value deriveRunningProduct(const TensorEmitter &emitter, CumulativeOp op,
                                  Value gradient) {
  Expr x{op.getX(), &emitter}, dy{gradient, &emitter};
  Expr isZero = compare(CompareKind::eq, x, x.like(0.0));
  Expr divisor = select(isZero, 1.0, x);
  auto run = [&](ReduceKind kind, Expr terms, bool isBackward) {
    return Expr{accumulate(emitter, op, kind, terms.value, isBackward),
                &emitter};
  };
  Expr products = dy * run(ReduceKind::prod, divisor, /*isBackward=*/false);
  Expr zeros = run(ReduceKind::sum, select(isZero, 1.0, x.like(0.0)),
                   /*isBackward=*/false);
  auto sumWhere = [&](double count) {
    Expr isCount = compare(CompareKind::eq, zeros, zeros.like(count));
    return run(ReduceKind::sum, select(isCount, products, 0.0),
               /*isBackward=*/true);
  };
  return (select(isZero, sumWhere(1.0), sumWhere(0.0)) / divisor).value;
}

LogicalResult CumulativeOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  gradients.add(getX(), getKind() == ReduceKind::sum
                            ? accumulate(emitter, *this, ReduceKind::sum,
                                         gradient, /*isBackward=*/true)
                            : deriveRunningProduct(emitter, *this, gradient));
  return success();
}

#include "dialects/graph/ops/Derivatives.h"

using namespace mlir;
using std::numbers::inv_sqrtpi;
using std::numbers::sqrt2;

namespace tcc::graph {

/// dy where x (kind) `other`, and where either is NaN if both have gradients.
static Expr passWhere(CompareKind kind, const Gradients &gradients, Expr x,
                      Expr other, Expr dy) {
  if (!gradients.wants(other.value))
    return select(compare(kind, x, other), dy, 0.0);
  Expr isTie = compare(CompareKind::eq, x, other);
  return select(compare(kind, other, x), 0.0, select(isTie, dy * 0.5, dy));
}

Expr passLarger(const Gradients &gradients, Expr x, Expr other, Expr dy) {
  return passWhere(CompareKind::gt, gradients, x, other, dy);
}

Expr passSmaller(const Gradients &gradients, Expr x, Expr other, Expr dy) {
  return passWhere(CompareKind::lt, gradients, x, other, dy);
}

Expr deriveSilu(Expr x, Expr dy) {
  Expr s = sigmoid(x);
  return dy * (s * (1.0 + x * (1.0 - s)));
}

Expr normalDensity(Expr x) { return exp(x * x * -0.5) * (inv_sqrtpi / sqrt2); }

Expr deriveGelu(Expr x, Expr dy) {
  return dy * (x.make<NormalCdfOp>() + x * normalDensity(x));
}

Expr deriveMish(Expr x, Expr dy) {
  Expr t = tanh(softplus(x));
  return dy * (t + x * sigmoid(x) * (1.0 - t * t));
}

Expr deriveHardSigmoid(HardSigmoidOp op, Expr y, Expr dy) {
  Expr inner = select(y < 1.0, dy * op.getAlpha().convertToDouble(), 0.0);
  return select(y > 0.0, inner, 0.0);
}

// --- Ops whose gradients are no formula of one type --------------------------

LogicalResult PowOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Type elementType = getElementTypeOrSelf(getLhs());
  Value exponent = getRhs();
  if (getElementTypeOrSelf(exponent) != elementType)
    exponent = emitter.emit<CastOp>(exponent, elementType);
  Expr x{getLhs(), &emitter}, n{exponent, &emitter}, y{getResult(), &emitter},
      dy{gradients.get(getResult()), &emitter};
  // x^-1 of 0 must not meet an exponent of 0.
  if (gradients.wants(getLhs())) {
    Expr power{emitter.emit<PowOp>(getLhs(), (n - 1.0).value), &emitter};
    Expr isConstant = compare(CompareKind::eq, n, n.like(0.0));
    gradients.add(getLhs(), select(isConstant, 0.0, dy * n * power).value);
  }
  // Nor a power of 0 its logarithm, but for negative exponents.
  if (gradients.wants(getRhs())) {
    Expr slope = dy * y * log(x);
    Expr atZero = select(n >= 0.0, 0.0, slope);
    Expr isZero = compare(CompareKind::eq, x, x.like(0.0));
    gradients.add(getRhs(), select(isZero, atZero, slope).value);
  }
  return success();
}

LogicalResult SelectOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  Value zero = emitter.splat(gradient, 0.0);
  if (gradients.wants(getOnTrue()))
    gradients.add(getOnTrue(),
                  emitter.emit<SelectOp>(getCondition(), gradient, zero));
  if (gradients.wants(getOnFalse()))
    gradients.add(getOnFalse(),
                  emitter.emit<SelectOp>(getCondition(), zero, gradient));
  return success();
}

LogicalResult CastOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  if (gradients.wants(getX()))
    gradients.add(getX(),
                  emitter.castTo(gradients.get(getResult()), getX().getType()));
  return success();
}

} // namespace tcc::graph

#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

static SmallVector<int64_t> getAxes(int64_t first, int64_t last) {
  return llvm::to_vector(llvm::seq<int64_t>(first, last));
}

static int64_t getRank(Value x) {
  return cast<RankedTensorType>(x.getType()).getRank();
}

// --- softmax -----------------------------------------------------------------

LogicalResult SoftmaxOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value y = emitter.widen(getResult());
  Value dy = emitter.widen(gradients.get(getResult()));
  Value sum = emitter.reduceAndBroadcast(
      ReduceKind::sum, emitter.emit<MulOp>(dy, y), int64_t(getAxis()));
  Value dx = emitter.emit<MulOp>(emitter.emit<SubOp>(dy, sum), y);
  gradients.add(getX(), emitter.castTo(dx, getX().getType()));
  return success();
}

LogicalResult LogSoftmaxOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value softmax = emitter.emit<ExpOp>(emitter.widen(getResult()));
  Value dy = emitter.widen(gradients.get(getResult()));
  Value sum =
      emitter.reduceAndBroadcast(ReduceKind::sum, dy, int64_t(getAxis()));
  Value dx = emitter.emit<SubOp>(dy, emitter.emit<MulOp>(softmax, sum));
  gradients.add(getX(), emitter.castTo(dx, getX().getType()));
  return success();
}

// --- layer_norm, rms_norm ----------------------------------------------------

namespace {

/// Normalised rows: x = normal / scale of the row.
struct Rows {
  Value normal, inverseDeviation;
};

/// Gradients of a norm over the axes [axis, rank).
class NormGradients {
public:
  NormGradients(Gradients &gradients, Operation *op, Value x, int64_t axis,
                double epsilon)
      : gradients(gradients), emitter(gradients.getBuilder(), op->getLoc()),
        x(x), axis(axis), rows(getAxes(axis, getRank(x))), epsilon(epsilon),
        dy(emitter.widen(gradients.get(op->getResult(0)))) {}

  void run(Value scale, Value shift, bool isCentered) {
    Rows row = normalize(isCentered);
    addToParameter(scale, emitter.emit<MulOp>(dy, row.normal));
    addToParameter(shift, dy);
    if (gradients.wants(x))
      addToX(scale, row, isCentered);
  }

private:
  Value average(Value value) {
    return emitter.broadcastBack(emitter.mean(value, rows), value, rows);
  }

  Rows normalize(bool isCentered) {
    Value value = emitter.widen(x);
    if (isCentered)
      value = emitter.emit<SubOp>(value, average(value));
    Value variance = emitter.mean(emitter.emit<MulOp>(value, value), rows);
    variance = emitter.emit<AddOp>(variance, emitter.splat(variance, epsilon));
    Value inverse =
        emitter.broadcastBack(emitter.emit<RsqrtOp>(variance), value, rows);
    return {emitter.emit<MulOp>(value, inverse), inverse};
  }

  /// `part` summed over the rows, which share the parameter.
  void addToParameter(Value parameter, Value part) {
    if (!parameter || !gradients.wants(parameter))
      return;
    auto type = cast<RankedTensorType>(parameter.getType());
    Value sum = axis == 0 ? part
                          : emitter.emit<ReduceOp>(ReduceKind::sum, part,
                                                   getAxes(0, axis));
    gradients.add(parameter, emitter.castTo(sum, type));
  }

  void addToX(Value scale, const Rows &row, bool isCentered) {
    Value scaled = dy;
    if (scale)
      scaled = emitter.emit<MulOp>(
          dy, emitter.emit<BroadcastOp>(dy.getType(), emitter.widen(scale)));
    Value along = average(emitter.emit<MulOp>(scaled, row.normal));
    Value dx =
        emitter.emit<SubOp>(scaled, emitter.emit<MulOp>(row.normal, along));
    if (isCentered)
      dx = emitter.emit<SubOp>(dx, average(scaled));
    dx = emitter.emit<MulOp>(dx, row.inverseDeviation);
    gradients.add(x, emitter.castTo(dx, cast<RankedTensorType>(x.getType())));
  }

  Gradients &gradients;
  TensorEmitter emitter;
  Value x;
  int64_t axis;
  SmallVector<int64_t> rows;
  double epsilon;
  Value dy;
};

} // namespace

LogicalResult LayerNormOp::emitGradients(Gradients &gradients) {
  NormGradients(gradients, *this, getX(), getAxis(),
                getEpsilon().convertToDouble())
      .run(getScale(), getShift(), /*isCentered=*/true);
  return success();
}

LogicalResult RmsNormOp::emitGradients(Gradients &gradients) {
  NormGradients(gradients, *this, getX(), getAxis(),
                getEpsilon().convertToDouble())
      .run(getScale(), /*shift=*/nullptr, /*isCentered=*/false);
  return success();
}

// --- batch_norm, batch_statistics --------------------------------------------

LogicalResult BatchStatisticsOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  SmallVector<int64_t> others = getAxes(0, getRank(getX()));
  others.erase(others.begin() + 1);
  auto alongX = [&](Value value) {
    return Expr{emitter.alongChannels(value, getX()), &emitter};
  };
  // A part for each element of x that it is a mean of.
  auto share = [&](Value gradient) {
    return emitter.divideByCount(gradient, getX(), others);
  };
  if (Value gradient = gradients.find(getMean()))
    gradients.add(getX(), alongX(share(gradient)).value);
  if (Value gradient = gradients.find(getVariance())) {
    Expr twice = Expr{share(gradient), &emitter} * 2.0;
    Expr centered = Expr{getX(), &emitter} - alongX(getMean());
    gradients.add(getX(), (centered * alongX(twice.value)).value);
  }
  return success();
}

/// Mean and variance are operands: where they are statistics of x, its gradient
/// through them is that of the ops which compute them.
LogicalResult BatchNormOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  SmallVector<int64_t> others = getAxes(0, getRank(getX()));
  others.erase(others.begin() + 1);
  auto sum = [&](Value value) {
    return Expr{emitter.emit<ReduceOp>(ReduceKind::sum, value, others),
                &emitter};
  };
  Expr scale{getScale(), &emitter}, variance{getVariance(), &emitter};
  Expr inverse = rsqrt(variance + getEpsilon().convertToDouble());
  Expr factor = scale * inverse;
  Value dy = gradients.get(getResult());
  if (gradients.wants(getX()))
    gradients.add(getX(), emitter.emit<MulOp>(
                              dy, emitter.alongChannels(factor.value, dy)));
  Value mean = emitter.alongChannels(getMean(), getX());
  Expr total = sum(dy);
  Expr along = sum(emitter.emit<MulOp>(dy, emitter.emit<SubOp>(getX(), mean)));
  gradients.add(getScale(), (along * inverse).value);
  gradients.add(getShift(), total.value);
  gradients.add(getMean(), (-total * factor).value);
  gradients.add(getVariance(),
                (along * factor * inverse * inverse * -0.5).value);
  return success();
}

#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

static int64_t getRank(Value x) {
  return cast<RankedTensorType>(x.getType()).getRank();
}

namespace {

/// The weights, which the forward kernel does not keep, are computed again: in
/// kernels that do not store them, if the shapes allow, else by products that
/// read the operands' type; what is between them is wide.
class AttentionGradients {
public:
  AttentionGradients(AttentionOp op, Gradients &gradients)
      : op(op), gradients(gradients),
        emitter(gradients.getBuilder(), op.getLoc()),
        type(op.getQuery().getType()),
        wide(getElementTypeOrSelf(emitter.widen(op.getResult()))),
        last(getRank(op.getResult()) - 1) {}

  void run() {
    Value dy = gradients.get(op.getResult());
    if (hasKernels())
      return addKernels(dy);
    Value weights = computeWeights();
    addProduct(op.getValue(), weights, dy, /*transposeLhs=*/true);
    Value scores = deriveScores(weights, dy);
    if (Value mask = op.getMask(); mask && gradients.wants(mask)) {
      auto maskType = cast<RankedTensorType>(mask.getType());
      gradients.add(
          mask, emitter.castTo(emitter.sumTiles(scores, maskType), maskType));
    }
    Value scaled = scale(scores);
    addProduct(op.getQuery(), scaled, op.getKey(), /*transposeLhs=*/false);
    addProduct(op.getKey(), scaled, op.getQuery(), /*transposeLhs=*/true);
  }

private:
  bool hasKernels() {
    return type.getElementType().isF32() && fitsTensorCores(op);
  }

  void addKernels(Value dy) {
    Extents row = getExtents(op.getResult());
    row.back() = emitter.builder.getAffineConstantExpr(1);
    auto rowType = makeTensorType(row, wide);
    Value normalizer = emitter.emit<AttentionNormalizerOp>(
        rowType, op.getQuery(), op.getKey(), op.getMask(), op.getScaleAttr());
    Value share = emitter.reshape(sumProducts(dy), row);
    auto make = [&](AttentionOperand of, Type type) {
      return emitter.emit<AttentionGradientOp>(
          type, AttentionOperandAttr::get(op.getContext(), of), op.getQuery(),
          op.getKey(), op.getValue(), dy, normalizer, share, op.getMask(),
          op.getScaleAttr(), op.getGuardAttr());
    };
    auto add = [&](AttentionOperand of, Value operand) {
      if (gradients.wants(operand))
        gradients.add(operand, make(of, operand.getType()));
    };
    add(AttentionOperand::query, op.getQuery());
    add(AttentionOperand::key, op.getKey());
    add(AttentionOperand::value, op.getValue());
    Value mask = op.getMask();
    if (!mask || !gradients.wants(mask))
      return;
    Extents extents = getExtents(mask), sums = extents;
    sums.insert(sums.begin(), emitter.builder.getAffineConstantExpr(1));
    Value sum = make(AttentionOperand::mask, makeTensorType(sums, wide));
    gradients.add(mask, emitter.reshape(sum, extents));
  }

  /// The result's products with its gradient, of each row.
  Value sumProducts(Value dy) {
    Value product =
        emitter.emit<MulOp>(emitter.widen(dy), emitter.widen(op.getResult()));
    return emitter.emit<ReduceOp>(ReduceKind::sum, product, last);
  }

  Value scale(Value scores) {
    Value factor = emitter.splat(scores, op.getScale().convertToDouble());
    return emitter.emit<MulOp>(scores, factor);
  }

  /// lhs row^T of the wide product.
  Value multiplyRows(Value lhs, Value rows) {
    return emitter.emit<MatmulOp>(lhs, rows, /*transposeLhs=*/false,
                                  /*transposeRhs=*/true, wide);
  }

  /// [batch..., q, k]
  Value computeWeights() {
    Value scores = scale(multiplyRows(op.getQuery(), op.getKey()));
    if (op.getMask())
      scores = emitter.emit<AddOp>(
          scores, emitter.tile(emitter.widen(op.getMask()),
                               cast<RankedTensorType>(scores.getType())));
    Value weights = emitter.emit<SoftmaxOp>(scores, last);
    if (!op.getGuard())
      return weights;
    return emitter.emit<SelectOp>(emitter.emit<IsNanOp>(weights),
                                  emitter.splat(weights, 0.0), weights);
  }

  /// As of a softmax, whose sum of weights times gradients is that of y's
  /// elements times theirs.
  Value deriveScores(Value weights, Value dy) {
    Value sum = emitter.broadcastBack(sumProducts(dy), weights, last);
    Value slopes = multiplyRows(dy, op.getValue());
    return emitter.emit<MulOp>(weights, emitter.emit<SubOp>(slopes, sum));
  }

  void addProduct(Value operand, Value lhs, Value rhs, bool transposeLhs) {
    if (gradients.wants(operand))
      gradients.add(operand, emitter.emit<MatmulOp>(emitter.castTo(lhs, type),
                                                    rhs, transposeLhs));
  }

  AttentionOp op;
  Gradients &gradients;
  TensorEmitter emitter;
  RankedTensorType type;
  Type wide;
  int64_t last;
};

} // namespace

LogicalResult AttentionOp::emitGradients(Gradients &gradients) {
  AttentionGradients(*this, gradients).run();
  return success();
}

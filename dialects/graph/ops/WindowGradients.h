//===- WindowGradients.h - What gradients of windows share ------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_OPS_WINDOWGRADIENTS_H
#define TCC_DIALECTS_GRAPH_OPS_WINDOWGRADIENTS_H

#include "dialects/graph/interfaces/Permute.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace tcc::graph {

inline mlir::RankedTensorType getType(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType());
}

/// [batch, channel] extents and the spatial ones of a window op on constants.
inline llvm::ArrayRef<int64_t> getSpatial(mlir::Value tensor) {
  return getType(tensor).getShape().drop_front(2);
}

/// A window op whose gradient is asked for. All spatial extents are constants.
template <typename Op> mlir::LogicalResult checkWindowOp(Op op) {
  if (op.getChannelsLast())
    return op.emitOpError("with channels last has no derivative");
  for (mlir::Value tensor :
       {mlir::Value(op.getX()), mlir::Value(op.getResult())})
    if (llvm::any_of(getSpatial(tensor), mlir::ShapedType::isDynamic))
      return op.emitOpError("of symbolic extents has no derivative");
  return mlir::success();
}

/// Pads of x, all axes, of which what a window op cannot do itself is a pad op.
struct Padding {
  llvm::SmallVector<int64_t> low, high, interior;

  explicit Padding(int64_t rank)
      : low(rank, 0), high(rank, 0), interior(rank, 0) {}

  /// Emits what crops or lies between elements; leaves borders of zeros in
  /// `low` and `high` of the spatial axes, as a window op has them.
  mlir::Value apply(const TensorEmitter &emitter, mlir::Value x) {
    llvm::SmallVector<int64_t> cropLow, cropHigh;
    bool isNeeded = false;
    for (size_t axis = 0; axis < low.size(); ++axis) {
      limitCrops(axis, getConstant(getExtent(x, axis)));
      cropLow.push_back(std::min<int64_t>(low[axis], 0));
      cropHigh.push_back(std::min<int64_t>(high[axis], 0));
      low[axis] -= cropLow.back();
      high[axis] -= cropHigh.back();
      isNeeded |= cropLow.back() || cropHigh.back() || interior[axis];
    }
    low.erase(low.begin(), low.begin() + 2);
    high.erase(high.begin(), high.begin() + 2);
    if (!isNeeded)
      return x;
    auto scalar =
        mlir::RankedTensorType::get({}, mlir::getElementTypeOrSelf(x));
    return emitter.emit<PadOp>(x, emitter.splat(scalar, 0.0), cropLow, cropHigh,
                               interior, PadMode::constant);
  }

private:
  /// What one side would crop of the border on the other shortens that.
  void limitCrops(size_t axis, std::optional<int64_t> extent) {
    if (!extent)
      return;
    int64_t spread =
        std::max<int64_t>(0, (*extent - 1) * (interior[axis] + 1) + 1);
    for (auto [own, other] : {std::pair(&low[axis], &high[axis]),
                              std::pair(&high[axis], &low[axis])})
      if (*own < -spread) {
        *other += *own + spread;
        *own = -spread;
      }
  }
};

/// The gradient of the filter of a convolution with `op`'s attributes of x; its
/// kernel reads pixels, whose channels are neighbours.
template <typename Op>
mlir::Value deriveFilter(const TensorEmitter &emitter, Op op, mlir::Value x,
                         mlir::Value gradient) {
  auto last = getChannelsLastPermutation(getType(x).getRank());
  mlir::Value result = emitter.emit<ConvFilterGradientOp>(
      emitter.emit<TransposeOp>(x, last),
      emitter.emit<TransposeOp>(gradient, last), op.getWindow(),
      op.getStrides(), op.getPadLow(), op.getDilations(), op.getGroups(),
      /*tf32=*/false);
  return emitter.emit<TransposeOp>(result, mlir::invertPermutationVector(last));
}

inline llvm::SmallVector<int64_t> makeOnes(size_t count) {
  return llvm::SmallVector<int64_t>(count, 1);
}

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_WINDOWGRADIENTS_H

//===- Window.h - Attributes of windows -------------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_OPS_WINDOW_H
#define TCC_DIALECTS_GRAPH_OPS_WINDOW_H

#include "dialects/graph/GraphOps.h"

namespace tcc::graph {

/// Checks the attributes of an op that slides a window over `spatial` axes.
template <typename Adaptor>
mlir::LogicalResult checkWindow(std::optional<mlir::Location> loc,
                                Adaptor adaptor, int64_t spatial) {
  using Values = llvm::ArrayRef<int64_t>;
  Values window = adaptor.getWindow(), strides = adaptor.getStrides();
  Values dilations = adaptor.getDilations();
  for (Values values :
       {window, strides, adaptor.getPadLow(), adaptor.getPadHigh(), dilations})
    if (int64_t(values.size()) != spatial)
      return mlir::emitOptionalError(loc, "expected ", spatial,
                                     " window entries, found ", values.size());
  for (Values values : {window, strides, dilations})
    if (llvm::any_of(values, [](int64_t value) { return value < 1; }))
      return mlir::emitOptionalError(
          loc, "expected positive window, stride and dilation");
  return mlir::success();
}

/// True if vectors run along filters of several of so many groups: each has so
/// few, and no more channels, of type `element`.
bool areNarrow(int64_t groups, int64_t channels, int64_t filters,
               mlir::Type element);

/// Fewer filters, of all groups, fill less than half a vector: channels that
/// slide stay first.
inline constexpr int64_t kMinSlidingFilters = 8;

/// How far apart elements of x count as along spatial axis `i`.
inline int64_t getInputDilation(ConvOp op, size_t i) {
  return op.getInputDilation(i);
}
inline int64_t getInputDilation(PoolOp /*op*/, size_t /*i*/) { return 1; }

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_WINDOW_H

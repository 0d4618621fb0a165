//===- WindowPlan.h - Ops that slide a window over x ------------*- C++ -*-===//
//
// What pooling and convolution of narrow groups share, on every target: the
// window, and how the elements under it are combined. Taps outside of x are
// left out; the others are combined in row-major order.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_WINDOWPLAN_H
#define TCC_COMPILER_CODEGEN_REGION_WINDOWPLAN_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "compiler/codegen/region/RegionFrame.h"

namespace tcc::codegen {

struct WindowPlan {
  mlir::Operation *op;
  Value x, result;
  llvm::ArrayRef<int64_t> window, strides, dilations, padLow;
  llvm::SmallVector<int64_t> inputDilations; // of the spatial axes
  mlir::Type elementType, partialType;
  /// A group of so many channels reads so many of x.
  int64_t groupSize = 1, groupInputs = 1;
  bool channelsLast = false;
  int64_t channelAxis, firstSpatialAxis;

  /// An error if the region has no such op.
  static mlir::FailureOr<WindowPlan> create(graph::FusedOp region);
  explicit WindowPlan(mlir::Operation *op);

  llvm::SmallVector<Value> getIndices(Value image, Value channel,
                                      ValueRange position) const;

  /// What the first element of a window is combined with.
  mlir::TypedAttr getInitial() const;
  /// Combines an input, and the weight that it has if op is a convolution, with
  /// those before. Scalars or vectors; a weight is as it is in memory.
  Value join(KernelBuilder &b, Value partial, Value input,
             llvm::function_ref<Value()> weight) const;
  /// The element of the result from all that are combined.
  Value finish(KernelBuilder &b, RegionFrame &frame, Value partial,
               ValueRange position) const;

  /// The weight that a filter has for input `groupChannel` of its group.
  Value loadWeight(KernelBuilder &b, RegionFrame &frame, Value filter,
                   ValueRange tap, int64_t groupChannel) const;
  /// The place of a weight among those of its filter, if it is packed.
  Value getWeightNumber(KernelBuilder &b, ValueRange tap,
                        int64_t groupChannel) const;

private:
  template <typename Op> void takeWindow(Op op);
  Value emitMaximum(KernelBuilder &b, Value x, Value y) const;
  Value countElements(KernelBuilder &b, RegionFrame &frame, graph::PoolOp op,
                      ValueRange position) const;
};

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_WINDOWPLAN_H

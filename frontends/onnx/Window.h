//===- Window.h - Convolution and pooling windows ---------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_WINDOW_H
#define TCC_FRONTENDS_ONNX_WINDOW_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// Larger windows, strides, dilations and paddings are refused.
constexpr int64_t kMaxWindow = int64_t(1) << 30;

/// One entry per spatial axis in every array.
struct Window {
  llvm::SmallVector<int64_t> extents, strides, dilations, low, high;
  /// The padding that an average counts; without what ceil mode adds.
  llvm::SmallVector<int64_t> countLow, countHigh;
  bool countPadding = false;

  /// A dense window of stride 1 without padding.
  explicit Window(llvm::ArrayRef<int64_t> extents);

  int64_t getRank() const { return extents.size(); }
  /// Elements that the window spans.
  int64_t getReach(int64_t i) const {
    return (extents[i] - 1) * dilations[i] + 1;
  }
};

/// Reads kernel_shape (`extents` where absent), strides, dilations, pads or
/// auto_pad, and ceil_mode, for the spatial axes of `x`.
std::optional<Window> readWindow(Node &node, mlir::Value x,
                                 llvm::ArrayRef<int64_t> extents = {});
/// The attributes alone, checked, without auto_pad.
std::optional<Window> readWindowAttributes(Node &node, int64_t rank,
                                           llvm::ArrayRef<int64_t> extents);

mlir::Value emitPool(Node &node, graph::PoolKind kind, mlir::Value x,
                     const Window &window);
mlir::Value emitConv(Node &node, mlir::Value x, mlir::Value filter,
                     const Window &window, int64_t groups);
/// Adds a vector of one element a channel.
mlir::Value addBias(Node &node, mlir::Value x, mlir::Value bias);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_WINDOW_H

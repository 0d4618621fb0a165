//===- Window.h - Windows as nodes describe them ----------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_WINDOW_H
#define TCC_FRONTENDS_ONNX_WINDOW_H

#include "frontends/Windows.h"
#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// Reads kernel_shape (`extents` where absent), strides, dilations, pads or
/// auto_pad, and ceil_mode, for the spatial axes of `x`.
std::optional<Window> readWindow(Node &node, mlir::Value x,
                                 llvm::ArrayRef<int64_t> extents = {});
/// The attributes alone, checked, without auto_pad.
std::optional<Window> readWindowAttributes(Node &node, int64_t rank,
                                           llvm::ArrayRef<int64_t> extents);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_WINDOW_H

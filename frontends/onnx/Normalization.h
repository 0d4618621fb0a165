//===- Normalization.h - Normalization over trailing axes -------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_NORMALIZATION_H
#define TCC_FRONTENDS_ONNX_NORMALIZATION_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// Over the axes from `axis` on, to which scale and shift broadcast; shift may
/// be null.
mlir::Value emitLayerNorm(Node &node, mlir::Value x, int64_t axis,
                          double epsilon, mlir::Value scale, mlir::Value shift);
/// The same by the root of the mean square. The scale multiplies in its own
/// type, which is the result's.
mlir::Value emitRmsNorm(Node &node, mlir::Value x, int64_t axis, double epsilon,
                        mlir::Value scale);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_NORMALIZATION_H

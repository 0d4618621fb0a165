//===- Quantization.h - Integers that stand for floats ----------*- C++ -*-===//
//
// An integer q stands for (q - zeroPoint) * scale. Parameters are scalars, or
// tensors that broadcast to the values. Null runs through as in Emitter.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_ONNX_QUANTIZATION_H
#define TCC_FRONTENDS_ONNX_QUANTIZATION_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

struct Quantized {
  mlir::Value values, scale;
  mlir::Value zeroPoint; ///< null for 0
};

/// round(x) + zeroPoint, clamped to `type`; zeroPoint may be null.
mlir::Value saturate(Node &node, mlir::Value x, mlir::Value zeroPoint,
                     mlir::Type type);
/// The floats that integers stand for, of the element type of their scale.
mlir::Value dequantize(Node &node, const Quantized &x);
/// A float input by the range of its values, widened to hold 0.
Quantized quantizeByRange(Node &node, mlir::Value x);

/// x - zeroPoint in i32 for integers of 8 or 16 bits; a vector zero point runs
/// along the axis that is number `axisFromEnd` from the end.
mlir::Value center(Node &node, mlir::Value x, mlir::Value zeroPoint,
                   int64_t axisFromEnd);
/// The zero point that an input is, null if the input is absent.
mlir::Value readZeroPoint(Node &node, int64_t input);
/// Whether x is of integers of 8 or 16 bits; fails the node if not.
bool isQuantized(Node &node, mlir::Value x);
/// An input of one element, as a scalar; fails the node for one of more.
mlir::Value readScalar(Node &node, int64_t input);
/// The same of a zero point, null if the input is absent.
mlir::Value readScalarZeroPoint(Node &node, int64_t input);
/// An input of one element, or of one for each of `columns`; fails the node for
/// others.
mlir::Value readColumns(Node &node, int64_t input, int64_t columns);
/// An integer product as floats of the scales' type.
mlir::Value scaleProduct(Node &node, mlir::Value product, mlir::Value lhsScale,
                         mlir::Value rhsScale);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_QUANTIZATION_H

//===- NarrowType.h - Element types of stored tensors -----------*- C++ -*-===//
//
// Integers of 2 and 4 bits and floats of 4 and 8 exist in files and between
// nodes alone. In the module each element is a byte: an integer's value, a
// float's bits in the lower ones. Ops compute with what it stands for.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_ONNX_NARROWTYPE_H
#define TCC_FRONTENDS_ONNX_NARROWTYPE_H

#include "frontends/Emitter.h"

namespace tcc::onnx_import {

struct NarrowType {
  enum class Specials {
    none,        ///< NaN becomes -0, as in ONNX's cases
    nan,         ///< the largest magnitude is NaN
    nanForMinus, ///< -0 is NaN
    infinities,  ///< IEEE's: the largest exponent is of infinity and NaNs
    powers,      ///< powers of two alone, without a sign; the largest is NaN
  };

  llvm::StringLiteral name; ///< ONNX's, as messages have it
  int32_t number;           ///< of ONNX's TensorProto::DataType
  unsigned bits;
  bool isFloat, isUnsigned;
  // --- Of floats -------------------------------------------------------------
  unsigned mantissaBits = 0;
  int bias = 0;
  Specials specials = Specials::none;
};

/// The type of an ONNX number; null if it is none of these.
const NarrowType *findNarrowType(int32_t number);

/// The module's element type: i8 for signed integers, else ui8.
mlir::Type getStorageType(const NarrowType &type, mlir::MLIRContext *context);

/// What stored elements stand for: integers as they are stored, floats as f32.
mlir::Value decode(Emitter &emitter, mlir::Value stored,
                   const NarrowType &type);

/// Where a number between two powers of two goes: of two as near to the larger.
enum class PowerRounding { up, down, nearest };

/// x as stored elements. Floats are rounded to nearest even, by way of f32;
/// beyond the largest they become that if `saturates`, else infinity or NaN.
/// Powers of two are rounded as `rounding` says, whatever the sign of x; what
/// is less than the least becomes that if `saturates`, else NaN. Integers wrap;
/// floats become integers as by the cast op.
mlir::Value encode(Emitter &emitter, mlir::Value x, const NarrowType &type,
                   bool saturates, PowerRounding rounding = PowerRounding::up);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_NARROWTYPE_H

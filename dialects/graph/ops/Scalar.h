//===- Scalar.h - Scalar code of pointwise ops ------------------*- C++ -*-===//
//
// The scalar types of element types: f64 stays, narrower floats are f32,
// integers are signless, booleans i1. Signedness is the tensor's.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_OPS_SCALAR_H
#define TCC_DIALECTS_GRAPH_OPS_SCALAR_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tcc::graph {

/// The type in which an element of `elementType` is computed.
inline mlir::Type getScalarType(mlir::Type elementType) {
  if (mlir::isa<mlir::FloatType>(elementType))
    return elementType.isF64()
               ? elementType
               : mlir::Float32Type::get(elementType.getContext());
  return mlir::IntegerType::get(elementType.getContext(),
                                elementType.getIntOrFloatBitWidth());
}

/// Booleans count as unsigned.
inline bool isUnsignedElement(mlir::Value tensor) {
  mlir::Type type = mlir::getElementTypeOrSelf(tensor);
  return type.isUnsignedInteger() || type.isInteger(1);
}

/// Emits scalar ops at one location.
class ScalarEmitter {
public:
  ScalarEmitter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  template <typename Op, typename... Args>
  mlir::Value emit(Args &&...args) const {
    return builder.create<Op>(loc, std::forward<Args>(args)...);
  }

  mlir::Value constant(mlir::Type type, double value) const {
    if (mlir::isa<mlir::FloatType>(type))
      return emit<mlir::arith::ConstantOp>(builder.getFloatAttr(type, value));
    return emit<mlir::arith::ConstantOp>(
        builder.getIntegerAttr(type, int64_t(value)));
  }
  /// A constant of x's type.
  mlir::Value like(mlir::Value x, double value) const {
    return constant(x.getType(), value);
  }
  mlir::Value integer(mlir::Type type, const llvm::APInt &value) const {
    return emit<mlir::arith::ConstantOp>(builder.getIntegerAttr(type, value));
  }

  mlir::Value add(mlir::Value x, mlir::Value y) const {
    return emit<mlir::arith::AddFOp>(x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) const {
    return emit<mlir::arith::SubFOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) const {
    return emit<mlir::arith::MulFOp>(x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) const {
    return emit<mlir::arith::DivFOp>(x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) const {
    return emit<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OLT, x, y);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                      mlir::Value y) const {
    return emit<mlir::arith::CmpIOp>(predicate, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x,
                     mlir::Value y) const {
    return emit<mlir::arith::SelectOp>(condition, x, y);
  }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// condition ? then : otherwise, of which only one is computed. The bodies are
/// emitted into branches that already stand in their block.
using ScalarBody = llvm::function_ref<mlir::Value(mlir::OpBuilder &)>;
mlir::Value emitBranch(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Type scalar, mlir::Value condition,
                       ScalarBody then, ScalarBody otherwise);

/// `x`, the scalar of an element of type `from`, as the scalar of `to`: see the
/// cast op. Rounding to f16 and bf16 is left to where the element is stored.
mlir::Value emitCast(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value x, mlir::Type from, mlir::Type to);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_SCALAR_H

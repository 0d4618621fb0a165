//===- ElementTypes.h - Element types by the names in plugins ---*- C++ -*-===//
#ifndef TCC_FRONTENDS_PLUGIN_ELEMENTTYPES_H
#define TCC_FRONTENDS_PLUGIN_ELEMENTTYPES_H

#include "mlir/IR/Types.h"

namespace tcc::plugin {

/// An element type of tcc/op.h: "f32", "u8", "bool".
struct ElementType {
  llvm::StringLiteral name;
  int32_t onnxType; ///< onnx::TensorProto::DataType
};

/// Null for a name that is none.
const ElementType *findElementType(llvm::StringRef name);
/// The name of a module's type, which is one of them.
llvm::StringRef getName(mlir::Type type);
mlir::Type makeType(const ElementType &type, mlir::MLIRContext *context);

} // namespace tcc::plugin

#endif // TCC_FRONTENDS_PLUGIN_ELEMENTTYPES_H

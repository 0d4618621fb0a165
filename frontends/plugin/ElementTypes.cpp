#include "frontends/plugin/ElementTypes.h"

#include "frontends/onnx/Literals.h"

namespace tcc::plugin {

static constexpr ElementType kTypes[] = {
    {"f64", onnx::TensorProto::DOUBLE},  {"f32", onnx::TensorProto::FLOAT},
    {"f16", onnx::TensorProto::FLOAT16}, {"bf16", onnx::TensorProto::BFLOAT16},
    {"i8", onnx::TensorProto::INT8},     {"i16", onnx::TensorProto::INT16},
    {"i32", onnx::TensorProto::INT32},   {"i64", onnx::TensorProto::INT64},
    {"u8", onnx::TensorProto::UINT8},    {"u16", onnx::TensorProto::UINT16},
    {"u32", onnx::TensorProto::UINT32},  {"u64", onnx::TensorProto::UINT64},
    {"bool", onnx::TensorProto::BOOL},
};

const ElementType *findElementType(llvm::StringRef name) {
  auto found = llvm::find_if(
      kTypes, [&](const ElementType &type) { return type.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

llvm::StringRef getName(mlir::Type type) {
  for (const ElementType &each : kTypes)
    if (makeType(each, type.getContext()) == type)
      return each.name;
  llvm_unreachable("a type that modules have not");
}

mlir::Type makeType(const ElementType &type, mlir::MLIRContext *context) {
  return onnx_import::getElementType(type.onnxType, context);
}

} // namespace tcc::plugin

//===- Literals.h - Tensors stored in a model file --------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_LITERALS_H
#define TCC_FRONTENDS_ONNX_LITERALS_H

#include "frontends/MappedFile.h"
#include "frontends/Problems.h"
#include "frontends/onnx/Tensor.h"
#include "onnx.pb.h"
#include "llvm/ADT/StringMap.h"

namespace tcc::onnx_import {

/// The graph element type of an ONNX one; null if tcc has none.
mlir::Type getElementType(int32_t onnxType, mlir::MLIRContext *context);
/// ONNX's name for its type number, for messages.
std::string getTypeName(int32_t onnxType);

/// Why a literal could not be read.
struct LiteralError {
  ProblemClass kind;
  std::string message;
};

/// Reads tensors of one model; keeps mappings of external files.
class LiteralReader {
public:
  /// `owner` keeps the parsed model alive, in which most bytes lie.
  LiteralReader(mlir::MLIRContext *context, std::string folder,
                std::shared_ptr<const onnx::ModelProto> owner,
                bool readExternal)
      : context(context), folder(std::move(folder)), owner(std::move(owner)),
        readExternal(readExternal) {}

  std::optional<Literal> read(const onnx::TensorProto &tensor,
                              LiteralError &error);
  std::optional<Literal> readSparse(const onnx::SparseTensorProto &tensor,
                                    LiteralError &error);

private:
  bool readStored(const onnx::TensorProto &tensor, Literal &literal,
                  LiteralError &error);
  bool readExternalBytes(const onnx::TensorProto &tensor, int64_t size,
                         Literal &literal, LiteralError &error);
  bool readTypedFields(const onnx::TensorProto &tensor, int64_t count,
                       Literal &literal, LiteralError &error);

  mlir::MLIRContext *context;
  std::string folder;
  std::shared_ptr<const onnx::ModelProto> owner;
  bool readExternal;
  llvm::StringMap<MappedFile> mappings;
};

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_LITERALS_H

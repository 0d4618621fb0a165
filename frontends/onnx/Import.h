//===- Import.h - ONNX files ------------------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_IMPORT_H
#define TCC_FRONTENDS_ONNX_IMPORT_H

#include "frontends/Frontend.h"
#include "frontends/MappedFile.h"
#include "frontends/plugin/Operator.h"

namespace tcc::onnx_import {

/// The model in `file`; external data is found beside `path`.
mlir::FailureOr<Model> importFile(const MappedFile &file, llvm::StringRef path,
                                  const ImportOptions &options,
                                  const plugin::Operators &operators,
                                  mlir::MLIRContext *context,
                                  Problems &problems);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_IMPORT_H

//===- Import.h - TorchScript archives --------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_IMPORT_H
#define TCC_FRONTENDS_TORCHSCRIPT_IMPORT_H

#include "frontends/Archive.h"
#include "frontends/Frontend.h"

namespace tcc::torchscript {

/// True for what torch.jit.save writes.
bool isScript(const Archive &archive);

mlir::FailureOr<Model> importArchive(const Archive &archive,
                                     const ImportOptions &options,
                                     mlir::MLIRContext *context,
                                     Problems &problems);

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_IMPORT_H

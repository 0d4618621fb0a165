//===- Import.h - Exported programs of PyTorch ------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PT2_IMPORT_H
#define TCC_FRONTENDS_PT2_IMPORT_H

#include "frontends/Archive.h"
#include "frontends/Frontend.h"

namespace tcc::pt2 {

/// True for what torch.export.save writes.
bool isProgram(const Archive &archive);

mlir::FailureOr<Model> importArchive(const Archive &archive,
                                     const ImportOptions &options,
                                     mlir::MLIRContext *context,
                                     Problems &problems);

} // namespace tcc::pt2

#endif // TCC_FRONTENDS_PT2_IMPORT_H

//===- Importers.h - The readers of archives --------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_IMPORTERS_H
#define TCC_FRONTENDS_IMPORTERS_H

#include "frontends/Archive.h"
#include "frontends/Frontend.h"
#include "frontends/plugin/Operator.h"

namespace tcc {

/// Makes a module of an archive's model; on failure the problems say why.
using ArchiveImporter =
    mlir::FailureOr<Model>(const Archive &archive, const ImportOptions &options,
                           const plugin::Operators &operators,
                           mlir::MLIRContext *context, Problems &problems);

/// Imports a file's bytes as tcc::importModel does, with the operators of
/// plugins that are open.
mlir::FailureOr<Model> importModel(const MappedFile &file, llvm::StringRef path,
                                   const ImportOptions &options,
                                   const plugin::Operators &operators,
                                   mlir::MLIRContext *context,
                                   Problems &problems);

namespace pt2 {
/// True for what torch.export.save writes.
bool isProgram(const Archive &archive);
ArchiveImporter importArchive;
} // namespace pt2

namespace torchscript {
/// True for what torch.jit.save writes.
bool isScript(const Archive &archive);
ArchiveImporter importArchive;
} // namespace torchscript

} // namespace tcc

#endif // TCC_FRONTENDS_IMPORTERS_H

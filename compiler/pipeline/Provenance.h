//===- Provenance.h - What a package says about its making ------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_PROVENANCE_H
#define TCC_COMPILER_PIPELINE_PROVENANCE_H

#include "compiler/pipeline/Machines.h"
#include "frontends/Frontend.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/package/Tunings.h"
#include "tcc/compiler.h"

namespace tcc {

/// The options that decide what a package does, with the `machines` for their
/// names, as one JSON object; the plugins that its operators are of; and the
/// digest of what was measured of kernels, null if nothing was. Paths and job
/// counts are left out: they change nothing.
std::string describeOptions(const CompileOptions &options,
                            const Machines &machines,
                            llvm::ArrayRef<PluginRecord> plugins,
                            const runtime::Tunings *tunings);

/// Sets what `record`, as describeOptions wrote it, says, of plugins in
/// `plugins`; false if it says anything else.
bool readOptions(llvm::StringRef record, CompileOptions &options,
                 std::vector<PluginRecord> &plugins);

/// The decisions recorded on `module`, as a JSON array.
std::string describeDecisions(mlir::ModuleOp module);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_PROVENANCE_H

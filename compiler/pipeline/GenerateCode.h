//===- GenerateCode.h - All kernels of a module -----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_GENERATECODE_H
#define TCC_COMPILER_PIPELINE_GENERATECODE_H

#include "compiler/pipeline/Machines.h"
#include "tcc/compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace tcc {

/// The code of a package, and that which computes its constants here.
struct GeneratedCode {
  std::vector<CodeVariant> variants;
  /// Null if nothing has to be computed.
  std::optional<CodeVariant> host;
  /// What is worth knowing, for the user.
  std::vector<std::string> notes;
};

/// Compiles the exec.kernel ops of a module. Errors go to the context's
/// diagnostics.
class CodeGenerator {
public:
  CodeGenerator(mlir::ModuleOp module, const CompileOptions &options,
                const Machines &machines, const EmitResources &resources)
      : module(module), options(options), machines(machines),
        resources(resources) {}

  /// Code for all the options ask for. `computesConstants` if this machine has
  /// to run `prepare`.
  mlir::FailureOr<GeneratedCode> generate(bool computesConstants);

  /// The kernels as text, the host's first: see CodeEmitter::print.
  mlir::FailureOr<std::string> print(Artifact artifact);

private:
  mlir::LogicalResult emit(CodeEmitter &emitter, GeneratedCode &code);
  mlir::FailureOr<CodeVariant> chooseHost(GeneratedCode &code);

  mlir::ModuleOp module;
  const CompileOptions &options;
  const Machines &machines;
  EmitResources resources;
};

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_GENERATECODE_H

//===- RunPasses.h - Passes whose errors are the user's ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_RUNPASSES_H
#define TCC_COMPILER_PIPELINE_RUNPASSES_H

#include "compiler/pipeline/Refusal.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include <optional>

namespace tcc {

/// What passes and code generation say about ops of the model `path` while this
/// lives: errors are problems, warnings are notes.
class Messages {
public:
  Messages(mlir::MLIRContext *context, std::string path);

  /// Why `step` has no result, as far as it was said: `code`, if anything was.
  /// Else it is an internal error, for which `module` is kept.
  Refusal takeRefusal(runtime::Code code, mlir::ModuleOp module,
                      llvm::StringRef step);

  std::vector<std::string> problems, notes;
  const std::string path;

private:
  mlir::ScopedDiagnosticHandler handler;
};

/// Runs the passes that `addPasses` adds; `code` is what their errors mean to
/// the user. A pass that fails without a word is an internal error.
std::optional<Refusal>
runPasses(mlir::ModuleOp module,
          llvm::function_ref<void(mlir::OpPassManager &)> addPasses,
          runtime::Code code, Messages &messages);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_RUNPASSES_H

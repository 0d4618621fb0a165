//===- WriteText.h - Programs and kernels as text ---------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_WRITETEXT_H
#define TCC_COMPILER_PIPELINE_WRITETEXT_H

#include "compiler/pipeline/GenerateCode.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/RunPasses.h"

#include <optional>

namespace tcc {

/// The phase after which `artifact` is written.
Phase getPhaseOf(Artifact artifact);

/// Writes what the options ask for, which is no package, as text of `module`.
/// `messages` has errors at ops.
std::optional<Refusal> writeText(mlir::ModuleOp module,
                                 const CompileOptions &options,
                                 CodeGenerator generator, Messages &messages);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_WRITETEXT_H

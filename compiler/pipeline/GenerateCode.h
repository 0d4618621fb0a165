//===- GenerateCode.h - All kernels of a module -----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_GENERATECODE_H
#define TCC_COMPILER_PIPELINE_GENERATECODE_H

#include "compiler/codegen/cpu/Cpu.h"
#include "compiler/codegen/cpu/ImageLinker.h"
#include "mlir/IR/BuiltinOps.h"

namespace tcc {

/// Compiles the exec.kernel ops of `module` for one CPU with `jobs` threads;
/// the image does not depend on their number. Errors go to the context's
/// diagnostics.
mlir::FailureOr<cpu::Image> generateImage(mlir::ModuleOp module,
                                          const cpu::Cpu &cpu, int jobs);

/// The kernels as text: their loops, or their assembly for a CPU.
mlir::FailureOr<std::string> printLoops(mlir::ModuleOp module,
                                        const cpu::Cpu &cpu);
mlir::FailureOr<std::string> printAssembly(mlir::ModuleOp module,
                                           const cpu::Cpu &cpu);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_GENERATECODE_H

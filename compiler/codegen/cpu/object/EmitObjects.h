//===- EmitObjects.h - Kernels of a module to an image ----------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_EMITOBJECTS_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_EMITOBJECTS_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/codegen/region/EmitAll.h"

namespace tcc::cpu {

using Object = llvm::SmallVector<char, 0>;

/// What code of a kernel depends on, as far as it runs on `cpu`.
KernelOptions getKernelOptions(const Cpu &cpu);

/// Compiles each of `kernels` with `make` and links the objects to a variant of
/// `target` for `cpu`. The module's other kernels have no code in it.
mlir::FailureOr<CodeVariant>
emitImage(mlir::ModuleOp module, const codegen::Kernels &kernels,
          const Cpu &cpu, llvm::StringRef target, int jobs,
          llvm::function_ref<mlir::FailureOr<Object>(exec::KernelOp)> make);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_EMITOBJECTS_H

//===- EmitObjects.h - Kernels of a module to an image ----------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_EMITOBJECTS_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_EMITOBJECTS_H

#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/codegen/region/EmitAll.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace tcc::cpu {

using Object = codegen::Code;

/// `object` with its function `from` called `to`, and all else that it defines
/// local.
llvm::Expected<Object> isolate(llvm::MemoryBufferRef object,
                               llvm::StringRef from, llvm::StringRef to);

/// What code of a kernel depends on, as far as it runs on `cpu`.
KernelOptions getKernelOptions(const Cpu &cpu);

/// Compiles a kernel to an object that has it as a function of the name.
using MakeObject = llvm::function_ref<mlir::FailureOr<Object>(
    exec::KernelOp, llvm::StringRef name)>;

/// Compiles each of `kernels` with `make` and links the objects to a variant of
/// `target` for `cpu`. The module's other kernels have no code in it.
/// `settings` are what objects follow from besides the kernel and the CPU.
/// `externals` are further objects, whose functions kernels call.
mlir::FailureOr<CodeVariant>
emitImage(mlir::ModuleOp module, const codegen::Kernels &kernels,
          const Cpu &cpu, llvm::StringRef target, llvm::StringRef settings,
          const EmitResources &resources, MakeObject make,
          llvm::ArrayRef<Object> externals = {});

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_EMITOBJECTS_H

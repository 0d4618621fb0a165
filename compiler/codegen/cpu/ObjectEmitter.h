//===- ObjectEmitter.h - Kernels to machine code ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECTEMITTER_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECTEMITTER_H

#include "compiler/codegen/cpu/Cpu.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

namespace tcc::cpu {

enum class CodeForm { Object, Assembly };

/// Compiles a module of kernels for one CPU. Kernels are public func.funcs with
/// the ABI of format::KernelFunction and bodies in scf, cf, memref, vector,
/// arith, math and llvm; pointers are !llvm.ptr. `module` is consumed: on
/// return it holds the llvm dialect. `vectorBytes` is the register width that
/// LLVM's vectoriser prefers.
///
/// Nothing is contracted or reassociated: the bits are those that the ops say.
/// Thread-safe for modules of different contexts.
mlir::FailureOr<llvm::SmallVector<char, 0>>
emitCode(mlir::ModuleOp module, const Cpu &cpu, int64_t vectorBytes,
         CodeForm form = CodeForm::Object);

/// Makes the dialects and translations that emitCode uses known.
void registerCodeEmission(mlir::DialectRegistry &registry);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECTEMITTER_H

//===- ObjectEmitter.h - Kernels to machine code ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_OBJECTEMITTER_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_OBJECTEMITTER_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/codegen/cpu/object/Library.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

namespace llvm {
class PassBuilder;
class PipelineTuningOptions;
class TargetMachine;
} // namespace llvm

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

/// Adds the passes from kernels in scf, cf, memref, vector, arith, math and
/// func to the llvm dialect.
void addLoweringToLLVM(mlir::OpPassManager &pm, FunctionSource source);

/// LLVM's code generation for a chip; null if its target is not registered.
std::unique_ptr<llvm::TargetMachine>
createTargetMachine(llvm::StringRef triple, llvm::StringRef chip,
                    llvm::StringRef features);

/// Runs LLVM's O3 pipeline, to which `extend` may add passes.
void optimize(
    llvm::Module &module, llvm::TargetMachine &machine,
    const llvm::PipelineTuningOptions &tuning,
    llvm::function_ref<void(llvm::PassBuilder &)> extend =
        [](llvm::PassBuilder &) {});

/// LLVM's layout of types in memory.
std::string getDataLayout(const Cpu &cpu);

/// Compiles `module`, of functions of the library and of kernels whose types
/// have x86's layout; false if it cannot be done. It is changed.
bool emitMachineCode(llvm::Module &module, const Cpu &cpu, int64_t vectorBytes,
                     CodeForm form, llvm::SmallVectorImpl<char> &bytes);

/// Makes the dialects and translations that emitCode uses known.
void registerCodeEmission(mlir::DialectRegistry &registry);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_OBJECTEMITTER_H

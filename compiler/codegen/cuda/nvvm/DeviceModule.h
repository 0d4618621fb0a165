//===- DeviceModule.h - A kernel's module as LLVM IR ------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_DEVICEMODULE_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_DEVICEMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/Module.h"

namespace tcc::cuda {

/// NVVM's address space of what the threads of a block share.
inline constexpr unsigned kSharedSpace = 3;

/// Who converts between bf16 and f32: instructions of the device, or ops on
/// integers.
enum class Bf16Conversions { instructions, integers };

/// Adds the passes from a module with a gpu.module to the llvm dialect.
void addDeviceLowering(mlir::OpPassManager &pm, Bf16Conversions conversions);

/// Lowers and translates `module`, whose types have the layout of
/// `dataLayout`. Kernels have the calling convention of their gpu.func; the
/// indices of threads, barriers and shuffles are nvvm's intrinsics. Null after
/// an error.
std::unique_ptr<llvm::Module>
translateDeviceModule(mlir::ModuleOp module, llvm::LLVMContext &context,
                      llvm::StringRef dataLayout, Bf16Conversions conversions);

/// Whether `function` is what a gpu.func with the attribute `kernel` became.
bool isKernel(const llvm::Function &function);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_DEVICEMODULE_H

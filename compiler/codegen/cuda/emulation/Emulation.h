//===- Emulation.h - Device kernels compiled for the host -------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_EMULATION_EMULATION_H
#define TCC_COMPILER_CODEGEN_CUDA_EMULATION_EMULATION_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/codegen/cuda/nvvm/ExternalBitcode.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

namespace tcc::cuda {

/// Compiles what emitPtx takes to an object of the host, whose kernels are
/// emulated::EmulatedKernels of the same names; cpu::linkImage links it. The
/// LLVM IR is that of the device: its intrinsics become calls through the
/// thread, and an intrinsic that the emulator lacks is an error. If `isChecked`
/// each access to memory is announced before it happens, for the emulator to
/// find races and what is not aligned as it must be.
mlir::FailureOr<llvm::SmallVector<char, 0>>
emitEmulation(mlir::ModuleOp module, const cpu::Cpu &host, bool isChecked,
              const std::optional<ExternalBitcode> &external = std::nullopt);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_EMULATION_EMULATION_H

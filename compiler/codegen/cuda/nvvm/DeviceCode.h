//===- DeviceCode.h - Kernels to PTX ----------------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_DEVICECODE_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_DEVICECODE_H

#include "compiler/codegen/cuda/nvvm/Arch.h"
#include "compiler/codegen/cuda/nvvm/ExternalBitcode.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace tcc::cuda {

/// PTX of a module with one gpu.module: kernels are its gpu.funcs with bodies
/// in scf, arith, math, vector, llvm and gpu. Pointers are !llvm.ptr, with
/// llvm.align and llvm.noalias where a kernel may count on that; shared memory
/// is an internal llvm.mlir.global in address space 3. `module` is consumed: on
/// return it holds the llvm dialect.
///
/// Nothing is contracted or approximated: the bits are those that the ops say,
/// and for the functions that are not our own libdevice's, which must be found
/// where a kernel calls one.
///
/// Names inside of the module become those of its first kernel and a suffix, so
/// that texts can be joined. Thread-safe in one MLIRContext that has the
/// dialects of registerDeviceCode.
/// `external`, if there is some, is what a function that the gpu.module
/// declares becomes.
mlir::FailureOr<std::string>
emitPtx(mlir::ModuleOp module, const Arch &arch,
        const std::optional<ExternalBitcode> &external = std::nullopt);

/// The BLAKE3 of the libdevice that emitPtx links here; empty if there is none.
std::string digestLibdevice();

/// One text of all that emitPtx made for `arch`.
std::string joinPtx(llvm::ArrayRef<std::string> texts, const Arch &arch);

/// Makes the dialects and translations known that emitPtx and emitEmulation
/// use.
void registerDeviceCode(mlir::DialectRegistry &registry);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_DEVICECODE_H

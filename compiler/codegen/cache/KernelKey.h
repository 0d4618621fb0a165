//===- KernelKey.h - What code of a kernel follows from ---------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CACHE_KERNELKEY_H
#define TCC_COMPILER_CODEGEN_CACHE_KERNELKEY_H

#include "dialects/exec/ExecOps.h"

namespace tcc::codegen {

/// 64 hexadecimal digits, the BLAKE3 of all that the code of `kernel` follows
/// from: this build of the compiler and LLVM's, `settings` (the kind of code,
/// the machine), the symbols of sizes, the ops, types and attributes of the
/// computation with its plan; not the kernel's name. Thread-safe.
std::string makeKey(exec::KernelOp kernel, llvm::StringRef settings);

/// Whether this build can be told from others: keys of one that cannot be are
/// only good within a process.
bool isCompilerKnown();

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_CACHE_KERNELKEY_H

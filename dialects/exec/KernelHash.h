//===- KernelHash.h - Kernels that are the same -----------------*- C++ -*-===//
#ifndef TCC_DIALECTS_EXEC_KERNELHASH_H
#define TCC_DIALECTS_EXEC_KERNELHASH_H

#include "dialects/exec/ExecOps.h"
#include "llvm/ADT/Hashing.h"

namespace tcc::exec {

/// Equal for kernels with equal bodies: ops, attributes and types in order.
llvm::hash_code hashOf(KernelOp kernel);

} // namespace tcc::exec

#endif // TCC_DIALECTS_EXEC_KERNELHASH_H

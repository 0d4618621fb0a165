//===- KernelHash.h - Kernels that are the same -----------------*- C++ -*-===//
#ifndef TCC_DIALECTS_EXEC_KERNELHASH_H
#define TCC_DIALECTS_EXEC_KERNELHASH_H

#include "dialects/exec/ExecOps.h"

namespace tcc::exec {

/// 32 hexadecimal digits, the same for kernels with the same computation: ops,
/// attributes and types in order, whatever plan (`plan`) it is computed by.
/// They are the same in all processes and on all machines: XXH3-128 of the
/// text.
std::string hashOf(KernelOp kernel);

/// Whether two kernels are the same whatever their names and locations: equal
/// bodies, the same symbols, and one place to run in.
bool isEqual(KernelOp lhs, KernelOp rhs);

} // namespace tcc::exec

#endif // TCC_DIALECTS_EXEC_KERNELHASH_H

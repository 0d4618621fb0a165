//===- VerifyEntry.h - Checks one entry point -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VERIFYENTRY_H
#define TCC_RUNTIME_PACKAGE_VERIFYENTRY_H

#include "runtime/base/Status.h"
#include "runtime/package/Program_generated.h"

#include <vector>

namespace tcc::runtime {

/// The first launch of each kernel in the entries that were checked so far.
using KernelLaunches = std::vector<const format::Launch *>;

/// `program` has passed FlatBuffers' verifier and the checks of its own tables.
Status verifyEntry(const format::Program &program, const format::Entry &entry,
                   KernelLaunches &launches);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_VERIFYENTRY_H

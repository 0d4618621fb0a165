//===- VerifyLibrary.h - Descriptions for libraries are whole ---*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VERIFYLIBRARY_H
#define TCC_RUNTIME_PACKAGE_VERIFYLIBRARY_H

#include "runtime/base/Status.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// What a kernel says to libraries has all its sizes and types that go
/// together. Where matrices lie is checked when they are used.
Status verifyForLibrary(const format::Kernel &kernel);

/// What a launch of `kernel` lacks that a library uses, if that may be in the
/// first `buffers` buffers and read slots below `slots`; null for nothing.
const char *findLackForLibrary(const format::Kernel &kernel, size_t buffers,
                               size_t slots);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_VERIFYLIBRARY_H

//===- VerifyLibrary.h - Descriptions for libraries are whole ---*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VERIFYLIBRARY_H
#define TCC_RUNTIME_PACKAGE_VERIFYLIBRARY_H

#include "runtime/base/Status.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// What a kernel says to libraries has all its sizes, of symbols alone, and
/// types that go together. Where matrices lie is checked when they are used.
Status verifyForLibrary(const format::Program &program,
                        const format::Kernel &kernel);

/// Whether all that a library uses lies in the first `buffers` buffers of a
/// launch of `kernel`.
bool hasBuffersForLibrary(const format::Kernel &kernel, size_t buffers);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_VERIFYLIBRARY_H

//===- Verify.h - Checks an exec program before use -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_VERIFY_H
#define TCC_RUNTIME_PACKAGE_VERIFY_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <cstddef>
#include <optional>
#include <span>

namespace tcc::runtime {

/// What a program's indices and offsets may reach; unset is not checked, as the
/// compiler runs `prepare` before there are sections.
struct ProgramLimits {
  std::optional<std::span<const format::SectionEntry>> sections;
  std::optional<uint64_t> weightBytes; ///< size of the weights section
};

/// Whether blocks, expressions, indices and sizes of untrusted bytes are all in
/// range, so that the executor needs no checks of its own.
Status verifyProgram(std::span<const std::byte> bytes,
                     const ProgramLimits &limits);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_VERIFY_H

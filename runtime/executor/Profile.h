//===- Profile.h - Time per launch ------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_PROFILE_H
#define TCC_RUNTIME_EXECUTOR_PROFILE_H

#include "runtime/package/Program_generated.h"

#include <cstdint>
#include <unordered_map>

namespace tcc::runtime {

/// What the launches of one place in the program took, summed over its runs.
struct ProfileRow {
  uint64_t calls = 0;
  uint64_t nanoseconds = 0;
  int64_t flops = 0; ///< of all calls, as the compiler counts them
  int64_t bytes = 0;
};

using Profile = std::unordered_map<const format::Launch *, ProfileRow>;

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_PROFILE_H

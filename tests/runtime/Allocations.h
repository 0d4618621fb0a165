//===- Allocations.h - Counts and refuses operator new ----------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_ALLOCATIONS_H
#define TCC_TESTS_RUNTIME_ALLOCATIONS_H

#include <cstdint>

namespace tcc::tests {

/// ThreadSanitizer has operators of its own: nothing is counted or refused.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TCC_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef TCC_COUNTS_ALLOCATIONS
#define TCC_COUNTS_ALLOCATIONS 1
#endif

/// How often this thread has called operator new.
int64_t allocationCount();

/// While it lives, operator new of this thread throws after `allowed` calls.
class ExhaustedMemory {
public:
  explicit ExhaustedMemory(int64_t allowed);
  ~ExhaustedMemory();
};

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_ALLOCATIONS_H

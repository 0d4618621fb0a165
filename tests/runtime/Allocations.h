//===- Allocations.h - Counts and refuses operator new ----------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_ALLOCATIONS_H
#define TCC_TESTS_RUNTIME_ALLOCATIONS_H

#include <cstdint>

namespace tcc::tests {

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

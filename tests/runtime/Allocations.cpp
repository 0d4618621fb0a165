#include "tests/runtime/Allocations.h"

#include <cstdlib>
#include <new>

using namespace tcc;

static thread_local int64_t made = 0, limit = INT64_MAX;

#if TCC_COUNTS_ALLOCATIONS
void *operator new(size_t bytes) {
  if (made >= limit)
    throw std::bad_alloc();
  ++made;
  if (void *address = std::malloc(bytes ? bytes : 1))
    return address;
  throw std::bad_alloc();
}
void operator delete(void *address) noexcept { std::free(address); }
void operator delete(void *address, size_t) noexcept { std::free(address); }
#endif

int64_t tests::allocationCount() { return made; }

tests::ExhaustedMemory::ExhaustedMemory(int64_t allowed) {
  limit = made + allowed;
}
tests::ExhaustedMemory::~ExhaustedMemory() { limit = INT64_MAX; }

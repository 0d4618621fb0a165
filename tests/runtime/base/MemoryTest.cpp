#include "runtime/base/Memory.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace tcc::runtime;

namespace {

constexpr std::byte kUsed{0xff};

Memory allocateUsed(size_t bytes, const Allocator &allocator) {
  auto memory = Memory::allocate(bytes, allocator, "a test");
  EXPECT_TRUE(memory.ok());
  std::ranges::fill(memory->span(), kUsed);
  return std::move(*memory);
}

} // namespace

// Whole pages, and what of the range lies on others.
TEST(Memory, DiscardedBytesAreZeroAndOthersStay) {
  constexpr size_t bytes = 40000;
  for (size_t offset : {0, 100, 4096, 10000})
    for (size_t count : {0, 50, 5000, 20000, 30000}) {
      Memory memory = allocateUsed(bytes, systemAllocator());
      ASSERT_TRUE(memory.discard(offset, count));
      for (size_t i = 0; i < bytes; ++i)
        ASSERT_EQ(memory.data()[i],
                  i >= offset && i < offset + count ? std::byte(0) : kUsed)
            << i << " of " << offset << " + " << count;
    }
}

TEST(Memory, ForeignBlocksAreNotDiscarded) {
  Allocator foreign = {
      nullptr,
      [](void *, size_t bytes, size_t alignment) {
        return std::aligned_alloc(alignment, bytes);
      },
      [](void *, void *address, size_t) { std::free(address); }, nullptr};
  Memory memory = allocateUsed(40960, foreign);
  EXPECT_FALSE(memory.discard(0, 40960));
  EXPECT_TRUE(std::ranges::all_of(memory.span(),
                                  [](std::byte b) { return b == kUsed; }));
}

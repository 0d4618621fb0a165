#include "runtime/base/Memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

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

/// The flags of the mapping that has an address, as /proc/self/smaps has them.
static std::string findFlags(const void *address) {
  std::ifstream maps("/proc/self/smaps");
  auto wanted = reinterpret_cast<uintptr_t>(address);
  bool isThere = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin, end;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      isThere = begin <= wanted && wanted < end;
    if (isThere && line.starts_with("VmFlags:"))
      return line;
  }
  return {};
}

TEST(Memory, AsksForHugePages) {
  constexpr size_t bytes = size_t(8) << 20;
  auto memory = Memory::allocate(bytes, systemAllocator(), "test");
  ASSERT_TRUE(memory.ok());
  memory->preferHugePages();
  std::string flags = findFlags(memory->data() + bytes / 2);
  if (std::filesystem::exists("/sys/kernel/mm/transparent_hugepage") &&
      !flags.empty())
    EXPECT_THAT(flags, testing::HasSubstr(" hg"));
  EXPECT_TRUE(memory->discard(0, bytes));
  EXPECT_TRUE(std::ranges::all_of(
      memory->span(), [](std::byte b) { return b == std::byte(); }));
  // Neither has a whole one.
  for (size_t small : {size_t(0), size_t(5000)})
    if (auto block = Memory::allocate(small, systemAllocator(), "test");
        block.ok())
      block->preferHugePages();
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

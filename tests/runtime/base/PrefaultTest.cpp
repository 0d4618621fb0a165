#include "runtime/base/Prefault.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace tcc::runtime;

namespace {

constexpr size_t kBytes = Prefault::kLeastBytes;
const size_t kPage = sysconf(_SC_PAGESIZE);

/// Fresh pages of the system: none is there.
class Pages {
public:
  explicit Pages(size_t bytes) : bytes(bytes) {
    void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(address, MAP_FAILED);
    EXPECT_EQ(madvise(address, bytes, MADV_NOHUGEPAGE), 0);
    data = static_cast<std::byte *>(address);
  }
  ~Pages() { munmap(data, bytes); }

  std::span<std::byte> part(size_t offset, size_t count) const {
    return {data + offset, count};
  }
  std::span<std::byte> all() const { return part(0, bytes); }
  /// How many are there.
  size_t count() const {
    std::vector<unsigned char> states(bytes / kPage);
    EXPECT_EQ(mincore(data, bytes, states.data()), 0);
    return std::ranges::count_if(states, [](auto s) { return s & 1; });
  }

  std::byte *data = nullptr;
  size_t bytes;
};

} // namespace

// Parts of pages count as pages; what lies between ranges stays as it is.
TEST(Prefault, PagesOfTheRangesAreThere) {
  Pages pages(2 << 20);
  std::atomic<bool> stop = false;
  Prefault::touch({pages.part(kPage / 2, kPage), pages.part(5 * kPage, kPage),
                   pages.part(1 << 20, 1 << 20), pages.part(5 * kPage, 100)},
                  stop);
  EXPECT_EQ(pages.count(), 3 + (1 << 20) / kPage);
}

TEST(Prefault, NothingIsDoneOnceItIsToStop) {
  Pages pages(2 << 20);
  std::atomic<bool> stop = true;
  Prefault::touch({pages.all()}, stop);
  EXPECT_EQ(pages.count(), 0u);
}

TEST(Prefault, FewBytesAreLeftAlone) {
  Pages pages(kBytes);
  {
    Prefault ahead({pages.part(0, kBytes - 1)});
  }
  EXPECT_EQ(pages.count(), 0u);
}

// While the thread is at it.
TEST(Prefault, WhatIsWrittenStays) {
  Pages pages(kBytes);
  for (size_t at = 0; at < kBytes; at += 3 * kPage)
    pages.data[at] = std::byte(1);
  {
    Prefault ahead({pages.all()});
    for (size_t at = kPage; at < kBytes; at += 3 * kPage)
      pages.data[at] = std::byte(2);
  }
  for (size_t at = 0; at < kBytes; at += kPage)
    ASSERT_EQ(pages.data[at], std::byte(at / kPage % 3 == 0   ? 1
                                        : at / kPage % 3 == 1 ? 2
                                                              : 0))
        << at;
}

// The memory may go at once.
TEST(Prefault, ItsThreadEndsWithIt) {
  for (int round = 0; round < 3; ++round) {
    Pages pages(kBytes);
    Prefault ahead({pages.all()});
  }
}

TEST(Prefault, WhatTheSystemRefusesIsPassedOver) {
  Pages pages(kBytes);
  ASSERT_EQ(mprotect(pages.data, kPage, PROT_READ), 0);
  {
    Prefault ahead({pages.all()});
  }
  EXPECT_EQ(pages.count(), 0u);
}

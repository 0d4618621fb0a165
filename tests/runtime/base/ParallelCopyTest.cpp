#include "runtime/base/ParallelCopy.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

using namespace tcc::runtime;

// One thread's, those of several, and what divides into no equal parts.
TEST(ParallelCopy, CopiesAllAndNothingElse) {
  constexpr size_t kMiB = size_t(1) << 20;
  for (size_t bytes : {size_t(0), size_t(1), 100 * kMiB, 133 * kMiB + 5}) {
    std::vector<unsigned char> from(bytes), to(bytes + 2, 0xab);
    std::iota(from.begin(), from.end(), 1);
    copyInParallel(to.data() + 1, from.data(), bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1)) << bytes;
    EXPECT_EQ(to.front(), 0xab);
    EXPECT_EQ(to.back(), 0xab);
  }
}

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

// As kernels have them, by names that do not hide those of the C library.
#define memcpy copyApart
#define memmove copyOver
#include "compiler/codegen/cpu/object/library/Memory.cpp"
#undef memcpy
#undef memmove

namespace {

constexpr size_t kMost = 2100, kRoom = 64;

std::vector<size_t> listSizes() {
  std::vector<size_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (size_t size : {511, 1024, 2047, 2048, 2049, 2081})
    sizes.push_back(size);
  return sizes;
}

std::vector<char> makeBytes() {
  std::vector<char> bytes(kMost + 2 * kRoom);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = char(i * 37 + i / 251);
  return bytes;
}

TEST(Memory, CopiesEachSizeFromAndToEachAlignment) {
  const std::vector<char> source = makeBytes();
  for (size_t size : listSizes())
    for (size_t from : {0, 1, 7})
      for (size_t to : {0, 3, 15}) {
        std::vector<char> found(source.size(), 'x'), expected = found;
        EXPECT_EQ(copyApart(&found[to], &source[from], size), &found[to]);
        std::memcpy(&expected[to], &source[from], size);
        ASSERT_EQ(found, expected) << size << ' ' << from << ' ' << to;
      }
}

TEST(Memory, MovesOverlappingPlaces) {
  for (size_t size : listSizes())
    for (size_t from : {0, 1, 5, 16, 31, 33, 64})
      for (size_t to : {0, 1, 8, 15, 32, 47, 64}) {
        std::vector<char> found = makeBytes(), expected = found;
        EXPECT_EQ(copyOver(&found[to], &found[from], size), &found[to]);
        std::memmove(&expected[to], &expected[from], size);
        ASSERT_EQ(found, expected) << size << ' ' << from << ' ' << to;
      }
}

} // namespace

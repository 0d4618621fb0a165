// Checks of PTX and cubins on bytes that are damaged; lit tests in
// tests/frontends/plugin say what is wrong with whole ones.

#include "compiler/codegen/cuda/nvvm/FinishedCode.h"

#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>
#include <random>

using namespace tcc::cuda;

namespace {

const Arch kLeast = {"sm_80", 80};
constexpr LaunchShape kLaunch = {3, 64};

std::string read(const char *path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : std::string();
}

TEST(FinishedCode, HasTheKernel) {
  std::string ptx = read(TCC_TEST_PTX), cubin = read(TCC_TEST_CUBIN);
  EXPECT_TRUE(checkPtx(ptx, "twice", kLeast, kLaunch).empty());
  EXPECT_TRUE(checkCubin(cubin, "twice", 90, kLaunch).empty());
  EXPECT_TRUE(checkPtx(ptx, "none", kLeast, {0, 64}).empty());
  EXPECT_TRUE(checkCubin(cubin, "none", 90, {0, 64}).empty());
}

/// Nothing is read beyond the end, which a sanitizer sees: each cut is a copy.
TEST(FinishedCode, IsReadInItsBounds) {
  std::string ptx = read(TCC_TEST_PTX), cubin = read(TCC_TEST_CUBIN);
  unsigned good = 0;
  for (size_t size = 0; size < ptx.size(); ++size) {
    std::vector<char> cut(ptx.begin(), ptx.begin() + size);
    good += checkPtx({cut.data(), size}, "twice", kLeast, kLaunch).empty();
  }
  EXPECT_GT(good, 0u); // the signature is there before the body
  for (size_t size = 0; size < cubin.size(); size += 7) {
    std::vector<char> cut(cubin.begin(), cubin.begin() + size);
    EXPECT_FALSE(checkCubin({cut.data(), size}, "twice", 90, kLaunch).empty())
        << size;
  }
}

TEST(FinishedCode, SurvivesBitFlips) {
  std::mt19937 random(7);
  unsigned good = 0;
  for (const char *path : {TCC_TEST_PTX, TCC_TEST_CUBIN}) {
    std::string bytes = read(path);
    ASSERT_FALSE(bytes.empty());
    for (int i = 0; i < 4000; ++i) {
      std::vector<char> flipped(bytes.begin(), bytes.end());
      for (int flip = 0; flip < 3; ++flip)
        flipped[random() % flipped.size()] ^= char(1 << random() % 8);
      llvm::StringRef code(flipped.data(), flipped.size());
      good += checkPtx(code, "twice", kLeast, kLaunch).empty();
      good += checkCubin(code, "twice", 90, kLaunch).empty();
    }
  }
  EXPECT_GT(good, 100u);
}

} // namespace

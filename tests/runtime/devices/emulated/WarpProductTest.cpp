#include "runtime/devices/emulated/WarpProduct.h"
#include "runtime/devices/emulated/Emulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace tcc::emulated;

namespace {

/// c + a b of elements that are 0, 1, 2 or negative ones of these.
struct MatrixCase {
  PairKind kind;
  int a[16][16], b[16][8];
  float c[16][8];
};

uint32_t toBits(int x, PairKind kind) {
  bool isBf16 = kind == PairKind::bf16;
  uint32_t one = isBf16 ? 0x3f80 : 0x3c00, two = 0x4000; // in both
  uint32_t size = x == 0 ? 0 : x == 1 || x == -1 ? one : two;
  return size | (x < 0 ? 0x8000 : 0);
}

/// As PTX has it in "Matrix Fragments for mma.m16n8k16": where element i of a
/// thread's part of each matrix is.
void multiply(const EmulatedThread *self, void *const *parameters) {
  auto &test = **static_cast<MatrixCase **>(parameters[0]);
  uint32_t group = self->thread / 4, member = self->thread % 4;
  uint32_t words[6] = {};
  float sums[4];
  for (uint32_t i = 0; i < 8; ++i) {
    bool isFirst = i < 2 || (i >= 4 && i < 6);
    uint32_t row = isFirst ? group : group + 8;
    uint32_t column = member * 2 + (i & 1) + (i < 4 ? 0 : 8);
    words[i / 2] |= toBits(test.a[row][column], test.kind) << (i & 1) * 16;
  }
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t row = member * 2 + (i & 1) + (i < 2 ? 0 : 8);
    words[4 + i / 2] |= toBits(test.b[row][group], test.kind) << (i & 1) * 16;
  }
  auto getSum = [&](uint32_t i) -> float & {
    return test.c[i < 2 ? group : group + 8][member * 2 + (i & 1)];
  };
  for (uint32_t i = 0; i < 4; ++i)
    sums[i] = getSum(i);
  self->calls->multiply(self, test.kind, words, sums);
  for (uint32_t i = 0; i < 4; ++i)
    getSum(i) = sums[i];
}

MatrixCase makeCase(PairKind kind) {
  MatrixCase test{kind, {}, {}, {}};
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 16; ++i) {
      test.a[i][k] = (3 * i + 7 * k + i * k) % 5 - 2;
      test.b[k][i % 8] = (2 * k + i % 8 + k * (i % 8)) % 5 - 2;
      test.c[i][k % 8] = float(10 * i + k % 8);
    }
  return test;
}

std::string run(EmulatedKernel kernel, MatrixCase &test, uint32_t threads) {
  MatrixCase *data = &test;
  void *parameters[] = {&data};
  Emulator emulator(Schedule{Schedule::Order::random, 1});
  return std::string(
      emulator.launch({kernel, 1, threads, parameters, "k"}).message());
}

TEST(WarpProductTest, warpsMultiply) {
  for (PairKind kind : {PairKind::f16, PairKind::bf16}) {
    MatrixCase test = makeCase(kind), expected = test;
    EXPECT_EQ(run(multiply, test, 32), "");
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        for (int k = 0; k < 16; ++k)
          expected.c[i][j] += float(test.a[i][k] * test.b[k][j]);
        EXPECT_EQ(test.c[i][j], expected.c[i][j]) << i << ", " << j;
      }
  }
}

TEST(WarpProductTest, partsOfAWarpDoNotMultiply) {
  MatrixCase test = makeCase(PairKind::bf16);
  EXPECT_THAT(run(multiply, test, 16), testing::HasSubstr("without all lanes"));
}

} // namespace

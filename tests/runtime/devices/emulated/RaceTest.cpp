#include "runtime/devices/emulated/RaceDetector.h"
#include "gtest/gtest.h"
#include <vector>

using namespace tcc::emulated;

namespace {

constexpr AccessKind kRead = AccessKind::read, kWrite = AccessKind::write,
                     kAtomic = AccessKind::atomic;

/// A launch with its first block, of which the first half of `memory` is the
/// shared memory.
class RaceTest : public testing::Test {
protected:
  RaceTest() : memory(8192) {
    races.beginLaunch();
    beginBlock(0);
  }
  void beginBlock(uint32_t index) {
    races.beginBlock(index, std::span(memory).first(4096));
  }
  /// What an access races with: "writes 3 of 0" for thread 3 of block 0.
  std::string access(uint32_t thread, size_t offset, uint32_t bytes,
                     AccessKind kind) {
    auto conflict = races.access(thread, &memory[offset], bytes, kind);
    if (!conflict)
      return "";
    return (conflict->isWrite ? "writes " : "reads ") +
           std::to_string(conflict->thread) + " of " +
           std::to_string(conflict->block);
  }

  std::vector<std::byte> memory;
  RaceDetector races;
};

TEST_F(RaceTest, writeRacesWithAllOthers) {
  EXPECT_EQ(access(0, 64, 4, kWrite), "");
  EXPECT_EQ(access(0, 64, 4, kRead), "");
  EXPECT_EQ(access(1, 64, 4, kRead), "writes 0 of 0");
  EXPECT_EQ(access(1, 64, 4, kWrite), "writes 0 of 0");
  EXPECT_EQ(access(1, 68, 4, kRead), "");
  EXPECT_EQ(access(0, 68, 4, kWrite), "reads 1 of 0");
}

TEST_F(RaceTest, bytesAreToldApart) {
  EXPECT_EQ(access(0, 0, 16, kWrite), "");
  EXPECT_EQ(access(1, 16, 16, kWrite), "");
  EXPECT_EQ(access(2, 32, 2, kWrite), "");
  EXPECT_EQ(access(3, 34, 1, kWrite), "");
  EXPECT_EQ(access(4, 35, 1, kWrite), "");
  EXPECT_EQ(access(0, 15, 1, kWrite), "");
  EXPECT_EQ(access(1, 15, 2, kRead), "writes 0 of 0");
  EXPECT_EQ(access(4, 34, 2, kRead), "writes 3 of 0");
}

TEST_F(RaceTest, barrierOrdersTheBlock) {
  EXPECT_EQ(access(0, 0, 4, kWrite), "");
  races.syncBlock();
  EXPECT_EQ(access(100, 0, 4, kRead), "");
  EXPECT_EQ(access(101, 0, 4, kRead), "");
  EXPECT_EQ(access(100, 0, 4, kWrite), "reads 101 of 0");
  races.syncBlock();
  EXPECT_EQ(access(100, 0, 4, kWrite), "");
}

TEST_F(RaceTest, warpBarrierOrdersTheWarpAlone) {
  EXPECT_EQ(access(0, 0, 4, kWrite), "");
  races.syncWarp(0);
  EXPECT_EQ(access(31, 0, 4, kRead), "");
  EXPECT_EQ(access(32, 0, 4, kRead), "writes 0 of 0");
  races.syncWarp(1);
  EXPECT_EQ(access(33, 0, 4, kRead), "writes 0 of 0");
}

TEST_F(RaceTest, atomicsDoNotRaceWithEachOther) {
  EXPECT_EQ(access(0, 0, 4, kAtomic), "");
  EXPECT_EQ(access(1, 0, 4, kAtomic), "");
  EXPECT_EQ(access(2, 0, 4, kWrite), "writes 1 of 0");
  EXPECT_EQ(access(2, 0, 4, kRead), "writes 1 of 0");
}

TEST_F(RaceTest, blocksShareGlobalMemoryOnly) {
  EXPECT_EQ(access(0, 0, 4, kWrite), "");
  EXPECT_EQ(access(0, 4096, 4, kWrite), "");
  EXPECT_EQ(access(1, 4100, 4, kRead), "");
  races.syncBlock();
  beginBlock(1);
  EXPECT_EQ(access(0, 0, 4, kRead), "");
  EXPECT_EQ(access(0, 4096, 4, kRead), "writes 0 of 0");
  EXPECT_EQ(access(2, 4100, 4, kRead), "");
  EXPECT_EQ(access(2, 4100, 4, kWrite), "reads 1 of 0");
}

TEST_F(RaceTest, launchesAreOrdered) {
  EXPECT_EQ(access(0, 4096, 4, kWrite), "");
  races.beginLaunch();
  beginBlock(0);
  EXPECT_EQ(access(1, 4096, 4, kWrite), "");
}

} // namespace

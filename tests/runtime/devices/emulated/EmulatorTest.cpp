#include "runtime/devices/emulated/Emulator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstring>
#include <numeric>
#include <vector>

using namespace tcc::emulated;
using testing::HasSubstr;
using Order = Schedule::Order;

namespace {

constexpr Schedule kSchedules[] = {
    {Order::forward}, {Order::reverse}, {Order::random, 1}, {Order::random, 2}};
constexpr uint32_t kAllLanes = 0xffffffff;

/// Runs `kernel` with the address of `data` as its parameter.
template <typename T>
std::string run(EmulatedKernel kernel, T *data, uint32_t blocks,
                uint32_t threads, Schedule schedule = {}) {
  void *parameters[] = {&data};
  Emulator emulator(schedule);
  return std::string(
      emulator.launch({kernel, blocks, threads, parameters, "k"}).message());
}

template <typename T> T *parameter(void *const *parameters) {
  return *static_cast<T **>(parameters[0]);
}

/// Announces and does what compiled kernels announce.
void write(const EmulatedThread *self, uint32_t &place, uint32_t value) {
  self->calls->access(self, &place, sizeof(place), 4, AccessKind::write);
  place = value;
}
uint32_t read(const EmulatedThread *self, const uint32_t &place) {
  self->calls->access(self, &place, sizeof(place), 4, AccessKind::read);
  return place;
}
uint32_t *shared(const EmulatedThread *self, uint32_t words) {
  return reinterpret_cast<uint32_t *>(
      self->calls->sharedMemory(self, words * sizeof(uint32_t)));
}

TEST(EmulatorTest, threadsKnowWhereTheyAre) {
  auto kernel = [](const EmulatedThread *self, void *const *parameters) {
    auto *out = parameter<uint32_t>(parameters);
    out[self->block * self->threads + self->thread] =
        self->thread + 1000 * self->block + 1000000 * self->blocks;
  };
  for (Schedule schedule : kSchedules) {
    std::vector<uint32_t> out(3 * 40);
    EXPECT_EQ(run(+kernel, out.data(), 3, 40, schedule), "");
    EXPECT_EQ(out[0], 3000000u);
    EXPECT_EQ(out[2 * 40 + 39], 3002039u);
  }
}

/// Threads hand a sum around by way of shared memory and barriers.
TEST(EmulatorTest, barriersOrderSharedMemory) {
  auto kernel = [](const EmulatedThread *self, void *const *parameters) {
    uint32_t *memory = shared(self, 64);
    uint32_t value = self->thread;
    for (uint32_t step = 1; step < 64; step *= 2) {
      write(self, memory[self->thread], value);
      self->calls->barrier(self);
      value += read(self, memory[(self->thread + step) % 64]);
      self->calls->barrier(self);
    }
    parameter<uint32_t>(parameters)[self->block * 64 + self->thread] = value;
  };
  for (Schedule schedule : kSchedules) {
    std::vector<uint32_t> out(2 * 64);
    EXPECT_EQ(run(+kernel, out.data(), 2, 64, schedule), "");
    EXPECT_THAT(out, testing::Each(63u * 64 / 2));
  }
}

struct ShuffleCase {
  ShuffleMode mode;
  uint32_t lane, clamp;
  uint64_t result[32];
};

/// Segments of 8 lanes, as __shfl_*_sync with that width asks for them.
TEST(EmulatorTest, shufflesTakeFromTheirSegment) {
  constexpr uint32_t segment = (32 - 8) << 8;
  auto kernel = [](const EmulatedThread *self, void *const *parameters) {
    auto &test = *parameter<ShuffleCase>(parameters);
    test.result[self->thread] = self->calls->shuffle(
        self, test.mode, kAllLanes, 100 + self->thread, test.lane, test.clamp);
  };
  struct {
    ShuffleMode mode;
    uint32_t lane, clamp;
    int (*source)(int lane); ///< itself where nothing lies in the segment
  } cases[] = {
      {ShuffleMode::up, 3, segment,
       [](int lane) { return lane % 8 < 3 ? lane : lane - 3; }},
      {ShuffleMode::down, 3, segment | 31,
       [](int lane) { return lane % 8 > 4 ? lane : lane + 3; }},
      {ShuffleMode::butterfly, 5, segment | 31,
       [](int lane) { return lane ^ 5; }},
      {ShuffleMode::index, 6, segment | 31,
       [](int lane) { return lane / 8 * 8 + 6; }},
  };
  for (auto &expected : cases)
    for (Schedule schedule : kSchedules) {
      ShuffleCase test{expected.mode, expected.lane, expected.clamp, {}};
      EXPECT_EQ(run(+kernel, &test, 1, 32, schedule), "");
      for (int lane = 0; lane < 32; ++lane) {
        EXPECT_EQ(uint32_t(test.result[lane]), 100u + expected.source(lane));
        bool isInside = expected.mode == ShuffleMode::index ||
                        expected.source(lane) != lane;
        EXPECT_EQ(test.result[lane] >> 32, uint64_t(isInside));
      }
    }
}

TEST(EmulatorTest, votesAreOfTheLanesThatTakePart) {
  auto kernel = [](const EmulatedThread *self, void *const *parameters) {
    uint32_t half = self->thread < 16 ? 0xffff : 0xffff0000;
    parameter<uint32_t>(parameters)[self->thread] =
        self->calls->ballot(self, half, self->thread % 3 == 0);
  };
  for (Schedule schedule : kSchedules) {
    std::vector<uint32_t> out(32);
    EXPECT_EQ(run(+kernel, out.data(), 1, 32, schedule), "");
    EXPECT_EQ(out[2], 0x9249u);
    EXPECT_EQ(out[20], 0x49240000u);
  }
}

TEST(EmulatorTest, lanesThatAreDoneAreNotWaitedFor) {
  auto kernel = [](const EmulatedThread *self, void *const *parameters) {
    if (self->thread < 4)
      return;
    uint64_t value = self->calls->shuffle(self, ShuffleMode::index, kAllLanes,
                                          self->thread, 7, 31);
    parameter<uint32_t>(parameters)[self->thread] = uint32_t(value);
  };
  for (Schedule schedule : kSchedules) {
    std::vector<uint32_t> out(20);
    EXPECT_EQ(run(+kernel, out.data(), 1, 20, schedule), "");
    EXPECT_EQ(out[19], 7u);
  }
}

TEST(EmulatorTest, whatNotAllReachIsADeadlock) {
  auto barrier = [](const EmulatedThread *self, void *const *) {
    if (self->thread != 5)
      self->calls->barrier(self);
  };
  auto shuffle = [](const EmulatedThread *self, void *const *) {
    if (self->thread % 32 == 3)
      self->calls->barrier(self);
    else
      self->calls->ballot(self, kAllLanes, 1);
  };
  for (Schedule schedule : kSchedules) {
    EXPECT_EQ(run(+barrier, "", 1, 64, schedule),
              "kernel k, block 0: deadlock: 63 threads wait at a barrier "
              "(first 0) 1 threads are done (first 5)");
    EXPECT_EQ(run(+shuffle, "", 1, 64, schedule),
              "kernel k, block 0: deadlock: 2 threads wait at a barrier (first "
              "3) 62 threads wait for lanes of their warp (first 0)");
  }
}

TEST(EmulatorTest, laneOutsideOfItsMaskIsAnError) {
  auto kernel = [](const EmulatedThread *self, void *const *) {
    self->calls->syncWarp(self, 2);
  };
  EXPECT_EQ(run(+kernel, "", 1, 32),
            "kernel k, block 0: thread 0 is not in its own mask of lanes");
}

TEST(EmulatorTest, threadCountIsChecked) {
  auto kernel = [](const EmulatedThread *, void *const *) {};
  EXPECT_EQ(run(+kernel, "", 1, 1024), "");
  EXPECT_EQ(run(+kernel, "", 1, 1025),
            "kernel k has 1025 threads a block, expected 1 to 1024");
}

TEST(EmulatorTest, sharedMemoryStartsPoisonedInEachBlock) {
  auto kernel = [](const EmulatedThread *self, void *const *parameters) {
    uint32_t *memory = shared(self, 1);
    parameter<uint32_t>(parameters)[self->block] = *memory;
    *memory = 1;
  };
  std::vector<uint32_t> out(3);
  EXPECT_EQ(run(+kernel, out.data(), 3, 1), "");
  EXPECT_THAT(out, testing::Each(0xffffffff));
}

TEST(EmulatorTest, sharedMemoryHasAnEnd) {
  auto hidden = [](const EmulatedThread *self, void *const *) {
    shared(self, 8)[8] = 0;
  };
  auto announced = [](const EmulatedThread *self, void *const *) {
    read(self, shared(self, 8)[8]);
  };
  auto large = [](const EmulatedThread *self, void *const *) {
    shared(self, 12 * 1024 + 1);
  };
  EXPECT_EQ(run(+hidden, "", 1, 1), "kernel k, block 0: writes outside of its "
                                    "32 bytes of shared memory");
  EXPECT_EQ(run(+announced, "", 1, 1),
            "kernel k, block 0: thread 0 reads 4 bytes at 32 of 32 bytes of "
            "shared memory");
  EXPECT_EQ(run(+large, "", 1, 1),
            "kernel k, block 0: thread 0 asks for 49156 bytes of shared "
            "memory, of at most 49152");
}

TEST(EmulatorTest, alignmentIsChecked) {
  auto access = [](const EmulatedThread *self, void *const *parameters) {
    self->calls->access(self, parameter<char>(parameters) + 4, 16, 8,
                        AccessKind::read);
  };
  auto parameters = [](const EmulatedThread *self, void *const *parameters) {
    self->calls->parameter(self, 2, parameter<char>(parameters) + 4, 16);
  };
  alignas(16) char memory[32];
  EXPECT_EQ(run(+access, memory, 1, 1),
            "kernel k, block 0: thread 0 reads 16 bytes at an address that is "
            "no multiple of 8");
  EXPECT_EQ(run(+parameters, memory, 1, 1),
            "kernel k, block 0: thread 0 takes parameter 2 for a multiple of "
            "16 bytes");
}

} // namespace

#include "tools/tcc-run/trace/PackedEvents.h"

#include <gtest/gtest.h>

#include <random>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static void expectEqual(const std::vector<TraceEvent> &found,
                        const std::vector<TraceEvent> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].begin, expected[i].begin) << i;
    EXPECT_EQ(found[i].end, expected[i].end) << i;
    EXPECT_EQ(found[i].command, expected[i].command) << i;
    EXPECT_EQ(found[i].cause, expected[i].cause) << i;
    EXPECT_EQ(found[i].flops, expected[i].flops) << i;
    EXPECT_EQ(found[i].bytes, expected[i].bytes) << i;
    EXPECT_EQ(found[i].lane, expected[i].lane) << i;
  }
}

/// Commands of a run, each of which takes a microsecond or two.
static std::vector<TraceEvent> makeRun(int64_t begin, uint32_t commands) {
  std::vector<TraceEvent> events;
  std::mt19937_64 random(begin);
  for (uint32_t i = 0; i < commands; ++i) {
    int64_t end = begin + 1000 + int64_t(random() % 1000);
    events.push_back(
        {.begin = begin, .end = end, .command = i, .bytes = 64 * i});
    begin = end + int64_t(random() % 100);
  }
  return events;
}

TEST(PackedEvents, HaveWhatWasPacked) {
  EventPacker packer;
  std::vector<std::vector<TraceEvent>> runs = {
      {},
      makeRun(1'000'000'000'000, 100),
      makeRun(2'000'000'000'000, 100),
      // Another order, lanes that overlap, numbers of all sizes.
      {{.begin = 5, .end = INT64_MAX, .command = 7, .cause = 3, .lane = 1},
       {.begin = 5, .end = 5, .command = 2, .flops = INT64_MAX, .bytes = 0},
       {.begin = INT64_MAX - 1,
        .end = INT64_MAX,
        .bytes = 12,
        .lane = TraceEvent::kUploads}},
      makeRun(3'000'000'000'000, 7)};
  std::vector<PackedEvents> packed;
  for (const auto &run : runs)
    packed.push_back(packer.pack(run));
  for (size_t i = 0; i < runs.size(); ++i)
    expectEqual(packer.unpack(packed[i]), runs[i]);
}

TEST(PackedEvents, AreSmallWhereRunsAreAlike) {
  EventPacker packer;
  (void)packer.pack(makeRun(1'000'000'000, 1000));
  PackedEvents packed = packer.pack(makeRun(2'000'000'000, 1000));
  EXPECT_LE(packed.bytes.size(), 5 * 1000u);
}

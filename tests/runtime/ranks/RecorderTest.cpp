#include "runtime/ranks/Recorder.h"
#include "runtime/ranks/Loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace tcc::runtime;

TEST(Recorder, KeepsTheLastCollectives) {
  Recorder recorder;
  EXPECT_TRUE(recorder.collectives().empty());
  for (uint64_t i = 1; i <= 100; ++i) {
    recorder.setStep(int64_t(i) / 10);
    recorder.begin(CollectiveKind::AllGather, i, DType::f64, "x");
    if (i < 100)
      recorder.end();
  }
  std::vector<CollectiveCall> kept = recorder.collectives();
  ASSERT_EQ(kept.size(), Recorder::kKept);
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].number, 37 + i);
    EXPECT_EQ(kept[i].count, 37 + i);
    EXPECT_EQ(kept[i].step, int64_t(37 + i) / 10);
    EXPECT_EQ(kept[i].kind, CollectiveKind::AllGather);
    EXPECT_EQ(kept[i].dtype, DType::f64);
    if (i + 1 < kept.size())
      EXPECT_LE(kept[i].begin, kept[i].end);
  }
  EXPECT_EQ(kept.back().end, -1) << "it has not ended";
}

TEST(Recorder, SaysHowFarTheRankIs) {
  Recorder recorder;
  auto where = [&] { return describe(recorder.position()); };
  EXPECT_EQ(where(), "before the first update");
  recorder.begin(CollectiveKind::Broadcast, 1, DType::f32, "w");
  EXPECT_EQ(where(), "before the first update in broadcast 1 of w");
  recorder.end();
  recorder.setStep(12);
  EXPECT_EQ(where(), "at update 12 after broadcast 1 of w");
  recorder.begin(CollectiveKind::Barrier, 0, DType::u8, {});
  EXPECT_EQ(where(), "at update 12 in barrier 2");
  EXPECT_EQ(recorder.position().last.step, 12);
}

TEST(Recorder, FollowsADevice) {
  Recorder recorder;
  DeviceProgress progress = 0;
  auto where = [&] { return describe(recorder.position()); };
  recorder.setStep(1);
  recorder.give(CollectiveKind::AllReduce, 8, DType::f32, "a", progress, 0);
  recorder.setStep(2);
  recorder.give(CollectiveKind::AllReduce, 8, DType::f32, "b", progress, 1);
  EXPECT_EQ(recorder.position().last.number, 0u) << "it has not begun";
  progress = 1;
  EXPECT_EQ(where(), "at update 1 in all-reduce 1 of a");
  progress = 3;
  EXPECT_EQ(where(), "at update 2 in all-reduce 2 of b");
  recorder.freeze();
  progress = 4;
  EXPECT_EQ(where(), "at update 2 in all-reduce 2 of b");
  recorder.give(CollectiveKind::AllReduce, 8, DType::f32, "c", progress, 0);
  EXPECT_EQ(recorder.collectives().size(), 2u);
}

TEST(Recorder, ForgetsWhatARunDidNotBegin) {
  Recorder recorder;
  DeviceProgress progress = 0;
  recorder.give(CollectiveKind::AllReduce, 8, DType::f32, "a", progress, 0);
  recorder.forget(progress);
  progress = 2;
  EXPECT_TRUE(recorder.collectives().empty());
}

TEST(Recorder, CutsLongNames) {
  Recorder recorder;
  recorder.begin(CollectiveKind::AllReduce, 1, DType::f32,
                 std::string(1000, 'n'));
  std::string of = recorder.collectives()[0].of;
  EXPECT_EQ(of, std::string(sizeof(CollectiveCall::of) - 1, 'n'));
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

static Sighting see(int rank, const char *host, const char *of) {
  Recorder recorder;
  recorder.setStep(12);
  recorder.begin(CollectiveKind::AllReduce, 1, DType::f32, of);
  Sighting seen = {.rank = rank, .position = recorder.position()};
  std::string_view(host).copy(seen.host, sizeof(seen.host));
  return seen;
}

TEST(Loss, IsOneLine) {
  Sighting other = see(2, "b", "x"), own = see(0, "a", "y");
  EXPECT_EQ(describe(Loss{other, Cause::Silent, 10000}, own),
            "rank 2 (host b) was lost: no word of it for 10 s; it was last "
            "heard of at update 12 in all-reduce 1 of x; this is rank 0 (host "
            "a) at update 12 in all-reduce 1 of y");
  EXPECT_THAT(describe(Loss{other, Cause::Silent, 500}, own),
              testing::HasSubstr("no word of it for 0.5 s;"));
  EXPECT_THAT(describe(Loss{other, Cause::Ended}, own),
              testing::StartsWith("rank 2 (host b) was lost: its process "
                                  "ended; it was last heard of"));
  EXPECT_THAT(describe(Loss{other, Cause::Left}, own),
              testing::HasSubstr("it left after an error"));
  Loss failed = {other, Cause::Failed, 0, "cut"};
  EXPECT_THAT(describe(failed, own),
              testing::HasSubstr("connection to another rank failed: cut;"));
  failed.who = own;
  EXPECT_EQ(describe(failed, own),
            "rank 0 (host a) lost another rank at update 12 in all-reduce 1 of "
            "y: cut");
  EXPECT_EQ(describe(Loss{own, Cause::Silent, 10000}, own),
            "rank 0 (host a) was given up by the others at update 12 in "
            "all-reduce 1 of y: no word of it for 10 s");
}

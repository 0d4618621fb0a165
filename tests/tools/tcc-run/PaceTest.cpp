// Figures of several updates together.

#include "tools/tcc-run/Pace.h"

#include <gtest/gtest.h>

using namespace tcc::tools;

TEST(Pace, WaitsForBatchesAndCheckpoints) {
  EXPECT_EQ(Pace{}.waitingShare(), 0);
  // A batch is waited for within an update, a checkpoint after it.
  EXPECT_DOUBLE_EQ(
      (Pace{.stall = 2, .dataWait = 1, .seconds = 4}).waitingShare(), 0.5);
}

TEST(PaceSum, HasRatesOfAllTime) {
  PaceSum sum;
  EXPECT_EQ(sum.average().seconds, 0);
  sum.add({.samplesPerSecond = 8,
           .tokensPerSecond = 80,
           .exposed = 0.5,
           .dataWait = 0.5,
           .seconds = 1,
           .flops = 100});
  sum.addStall(4);
  sum.add({.samplesPerSecond = 4,
           .tokensPerSecond = 20,
           .exposed = 1,
           .seconds = 3,
           .flops = 300,
           .mfu = 0.5});
  Pace average = sum.average();
  EXPECT_DOUBLE_EQ(average.samplesPerSecond, 5);
  EXPECT_DOUBLE_EQ(average.tokensPerSecond.value(), 35);
  EXPECT_DOUBLE_EQ(average.exposed.value(), 0.75);
  EXPECT_DOUBLE_EQ(average.stall, 2);
  EXPECT_DOUBLE_EQ(average.dataWait, 0.25);
  EXPECT_DOUBLE_EQ(average.seconds, 2);
  EXPECT_DOUBLE_EQ(average.flops, 200);
  EXPECT_FALSE(average.mfu); // of no peak that the sum knows
}

TEST(PaceSum, KnowsNothingOnceAnUpdateDidNot) {
  PaceSum sum;
  sum.add({.tokensPerSecond = 80, .exposed = 1, .seconds = 1});
  sum.add({.seconds = 1});
  sum.add({.tokensPerSecond = 80, .exposed = 1, .seconds = 1});
  EXPECT_FALSE(sum.average().tokensPerSecond);
  EXPECT_FALSE(sum.average().exposed);
}

TEST(PaceSum, DescribesWaitsThatAreWorthAWord) {
  PaceSum sum;
  EXPECT_EQ(sum.describeWaits(), "");
  sum.add({.exposed = 0.004, .dataWait = 0.25, .seconds = 1});
  EXPECT_EQ(sum.describeWaits(), "25 % of the time waiting for data");
}

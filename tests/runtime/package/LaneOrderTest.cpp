#include "runtime/package/LaneOrder.h"

#include "gtest/gtest.h"

using tcc::runtime::LaneOrder;

TEST(LaneOrder, ALaneIsJoinedByAnEventAfterItsLastCommand) {
  LaneOrder order(2);
  EXPECT_FALSE(order.findUnjoined());
  order.add(1);
  order.record(1, 0);
  order.add(1);
  EXPECT_TRUE(order.wait(0, 0));
  EXPECT_EQ(order.findUnjoined(), 1u);
  order.record(1, 1);
  EXPECT_TRUE(order.wait(0, 1));
  EXPECT_FALSE(order.findUnjoined());
}

/// Lane 2 comes before lane 1, and that before lane 0.
TEST(LaneOrder, EventsPassOnWhatTheirLaneWaitedFor) {
  LaneOrder order(3);
  order.add(2);
  order.record(2, 7);
  order.add(1);
  EXPECT_TRUE(order.wait(1, 7));
  order.record(1, 8);
  EXPECT_EQ(order.findUnjoined(), 1u);
  EXPECT_EQ(order.countDone(0, 2), 0u);
  EXPECT_TRUE(order.wait(0, 8));
  EXPECT_EQ(order.countDone(0, 2), 1u);
  EXPECT_FALSE(order.findUnjoined());
}

TEST(LaneOrder, NobodyWaitsForWhatIsRecordedLater) {
  LaneOrder order(2);
  EXPECT_FALSE(order.wait(1, 0));
  order.record(0, 0);
  EXPECT_TRUE(order.wait(1, 0));
}

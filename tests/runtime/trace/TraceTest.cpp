#include "runtime/trace/Trace.h"

#include "tests/runtime/Fixture.h"

#include <functional>
#include <set>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

static constexpr uint64_t kCopied = 300 << 10;

static std::vector<Expr> sizesOfOne() {
  std::vector<Expr> sizes;
  sizes.push_back(constant(1));
  sizes.push_back(constant(1));
  return sizes;
}

/// Lane 1 copies beside two launches; a third one waits for it.
static ProgramBuilder forkedProgram() {
  ProgramBuilder builder;
  uint32_t from = builder.scratch(kCopied), to = builder.scratch(kCopied);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, {}), 4);
  uint32_t value = builder.scratch(4);
  builder.orderLanes(0, 1);
  builder.onLane(1);
  builder.copy(from, to, kCopied);
  builder.onLane(0);
  for (int i = 0; i < 2; ++i)
    builder.launch("add_one", {value, value}, sizesOfOne(), constant(1)).bytes =
        constant(8);
  builder.orderLanes(1, 0);
  builder.launch("add_one", {to, y}, sizesOfOne(), constant(1));
  return builder;
}

namespace {

/// What each event of a run has to be, and no event is there for.
class Checker {
public:
  Checker(const Context &context, Walker &walker)
      : walker(walker), lanes(context.entry().lane_count(), INT64_MIN) {}

  void check(const TraceEvent &event) {
    // One lane is one track, in the order of time.
    ASSERT_LT(event.lane, lanes.size());
    EXPECT_LE(event.begin, event.end);
    EXPECT_GE(event.begin, last);
    EXPECT_GE(event.begin, lanes[event.lane]);
    last = event.begin;
    lanes[event.lane] = event.end;
    const format::Command &command = walker.command(event.command);
    EXPECT_EQ(command.lane(), event.lane);
    EXPECT_TRUE(seen.insert(event.command).second);
    const format::WaitEvent *wait = command.action_as_WaitEvent();
    EXPECT_EQ(event.cause != TraceEvent::kNone, wait != nullptr);
    if (!wait) {
      EXPECT_TRUE(command.action_as_Launch() || command.action_as_Copy());
      return;
    }
    const auto *record = walker.command(event.cause).action_as_RecordEvent();
    ASSERT_TRUE(record);
    EXPECT_EQ(record->event(), wait->event());
  }

  std::set<uint32_t> seen; ///< commands

private:
  Walker &walker;
  int64_t last = INT64_MIN;
  std::vector<int64_t> lanes; ///< the end of the last event
};

} // namespace

/// Three launches, a copy and two waits.
static void checkRun(Context &context, const Trace::Reading &reading) {
  EXPECT_EQ(reading.lost, 0u);
  Checker checker(context, context.walker());
  for (const TraceEvent &event : reading.events)
    checker.check(event);
  EXPECT_EQ(checker.seen.size(), 6u);
}

static void checkRuns(Context &context,
                      const std::function<void(const Trace::Reading &)> &also) {
  Stream &stream = context.walker().getStream();
  ASSERT_THAT(context.run(), succeeds());
  Trace trace(stream.laneCount());
  ASSERT_THAT(stream.trace(&trace), succeeds());
  // One that is given, one that is captured, and replays.
  for (int run = 0; run < 4; ++run) {
    SCOPED_TRACE(run);
    ASSERT_THAT(context.run(), succeeds());
    Trace::Reading reading = trace.take();
    checkRun(context, reading);
    also(reading);
  }
  Trace::Reading reading;
  trace.pause(true);
  ASSERT_THAT(context.run(), succeeds());
  trace.take(reading);
  EXPECT_TRUE(reading.events.empty());
  trace.pause(false);
  ASSERT_THAT(context.run(), succeeds());
  trace.take(reading);
  checkRun(context, reading);
  ASSERT_THAT(stream.trace(nullptr), succeeds());
  ASSERT_THAT(context.run(), succeeds());
  EXPECT_TRUE(trace.take().events.empty());
}

TEST(Trace, HasWhatLanesDoOnTheHost) {
  ProgramBuilder builder = forkedProgram();
  auto context = makeContext(builder);
  checkRuns(*context, [](const Trace::Reading &reading) {
    for (const TraceEvent &event : reading.events)
      if (event.lane == 1 && event.cause == TraceEvent::kNone)
        EXPECT_EQ(event.bytes, int64_t(kCopied));
  });
}

TEST(Trace, HasALaneForEachOfTheProgram) {
  ProgramBuilder builder = forkedProgram();
  auto context = makeContext(builder);
  Trace narrow(1);
  Stream &stream = context->walker().getStream();
  EXPECT_THAT(stream.trace(&narrow),
              failsWith(Code::Usage, "a trace has 1 lanes, expected 2"));
  EXPECT_FALSE(stream.isTraced());
}

/// Also of what a graph replays: by the clock of the emulated device.
TEST(Trace, HasWhatLanesDoOnADevice) {
  ProgramBuilder builder = forkedProgram();
  auto context = unwrap(Context::create(loadEmulated(builder)));
  checkRuns(*context, [&](const Trace::Reading &reading) {
    for (const TraceEvent &event : reading.events) {
      const format::Command &command = context->walker().command(event.command);
      if (command.action_as_Launch())
        EXPECT_NEAR(event.end - event.begin, 100e3, 100);
      if (command.action_as_Copy())
        EXPECT_NEAR(event.end - event.begin, 301e3, 100);
    }
    ASSERT_EQ(reading.events.size(), 6u);
    EXPECT_NEAR(reading.events.back().end - reading.events.front().begin, 401e3,
                1000);
  });
}

/// Events of a replay are the graph's, which goes with the trace.
TEST(Trace, HasRunsThatAreUnderWayWhenItEnds) {
  ProgramBuilder builder = forkedProgram();
  auto context = unwrap(Context::create(loadEmulated(builder)));
  Stream &stream = context->walker().getStream();
  Trace trace(stream.laneCount());
  ASSERT_THAT(stream.trace(&trace), succeeds());
  for (int run = 0; run < 3; ++run)
    ASSERT_THAT(context->run(), succeeds());
  (void)trace.take();
  ASSERT_THAT(context->start(), succeeds());
  ASSERT_THAT(stream.trace(nullptr), succeeds());
  checkRun(*context, trace.take());
  EXPECT_THAT(context->finish(), succeeds());
}

TEST(Trace, LosesTheOldestEvents) {
  Trace trace(2, /*capacity=*/3);
  for (int64_t time = 0; time < 5; ++time)
    trace.add({.begin = time, .end = time + 1, .command = 7, .lane = 1});
  trace.add({.begin = 3, .end = 3, .command = 8});
  Trace::Reading reading = trace.take();
  EXPECT_EQ(reading.lost, 2u);
  std::vector<int64_t> begins;
  for (const TraceEvent &event : reading.events)
    begins.push_back(event.begin);
  EXPECT_EQ(begins, (std::vector<int64_t>{2, 3, 3, 4}));
  EXPECT_EQ(reading.events[1].command, 8u);
  EXPECT_TRUE(trace.take().events.empty());
}

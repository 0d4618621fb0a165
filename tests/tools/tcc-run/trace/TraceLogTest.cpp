#include "tools/tcc-run/trace/TraceLog.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// A run that takes a batch, with so many commands.
static TracedRun makeRun(int64_t batch, uint32_t commands) {
  TracedRun run = {nullptr, {}, batch};
  for (uint32_t i = 0; i < commands; ++i)
    run.reading.events.push_back({.begin = i, .end = i + 1, .command = i});
  return run;
}

static void addUpdate(TraceLog &log, int64_t step, uint32_t commands) {
  TracedRun run = makeRun(step - 1, commands);
  log.add({.step = step}, std::span(&run, 1));
}

static std::vector<int64_t> listSteps(const TraceLog &log) {
  std::vector<int64_t> steps;
  for (const TracedUpdate &update : log.updates())
    steps.push_back(update.step);
  return steps;
}

TEST(TraceLog, KeepsEveryKthUpdateWhereThereAreMany) {
  TraceLog log(/*mostEvents=*/40);
  log.begin();
  for (int64_t step = 1; step <= 4; ++step)
    addUpdate(log, step, 10);
  EXPECT_EQ(listSteps(log), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(log.every(), 1);
  addUpdate(log, 5, 10);
  EXPECT_EQ(listSteps(log), (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(log.every(), 2);
  for (int64_t step = 6; step <= 100; ++step) {
    addUpdate(log, step, 10);
    std::vector<int64_t> steps = listSteps(log);
    EXPECT_LE(steps.size(), 4u);
    for (size_t i = 0; i < steps.size(); ++i)
      EXPECT_EQ(steps[i], int64_t(i) * log.every() + 1);
  }
  EXPECT_EQ(log.every(), 32);
}

TEST(TraceLog, KeepsOneUpdateOfAnySize) {
  TraceLog log(/*mostEvents=*/4);
  log.begin();
  for (int64_t step = 1; step <= 3; ++step)
    addUpdate(log, step, 10);
  EXPECT_EQ(listSteps(log), std::vector<int64_t>{1});
  EXPECT_EQ(log.unpack(log.updates()[0].runs[0]).reading.events.size(), 10u);
}

static std::vector<int64_t> listBatches(const TracedUpdate &update) {
  std::vector<int64_t> batches;
  for (const HostSpan &span : update.spans)
    batches.push_back(span.batch);
  return batches;
}

TEST(TraceLog, GivesReadingToTheUpdateThatTakesTheBatch) {
  TraceLog log;
  HostTrace &host = log.host();
  host.add({HostWork::WriteLogs, kUpdateTrack, 0, 1}); // before it begins
  log.begin();
  auto read = [&](int64_t batch) {
    host.add({HostWork::ReadSamples, kFirstWorkerTrack, 0, 1, batch});
  };
  read(0);
  read(1);
  read(2);
  addUpdate(log, 1, 1);
  // One that was left out, as after a spike.
  TracedRun run = makeRun(2, 1);
  log.add({.step = 2}, std::span(&run, 1));
  read(3);
  log.end();
  ASSERT_EQ(log.updates().size(), 2u);
  EXPECT_EQ(listBatches(log.updates()[0]), std::vector<int64_t>{0});
  EXPECT_EQ(listBatches(log.updates()[1]), std::vector<int64_t>{2});
}

TEST(TraceLog, GivesWhatFollowsToTheLastUpdate) {
  TraceLog log;
  log.begin();
  addUpdate(log, 1, 1);
  log.host().add({HostWork::PublishCheckpoint, kCheckpointTrack, 0, 1});
  log.end();
  ASSERT_EQ(log.updates().size(), 1u);
  ASSERT_EQ(log.updates()[0].spans.size(), 1u);
  EXPECT_EQ(log.updates()[0].spans[0].work, HostWork::PublishCheckpoint);
}

TEST(TraceLog, HasUpdatesThatFollowEachOther) {
  TraceLog log;
  log.begin();
  for (int64_t step = 1; step <= 3; ++step)
    addUpdate(log, step, 1);
  for (size_t i = 1; i < 3; ++i)
    EXPECT_EQ(log.updates()[i].begin, log.updates()[i - 1].end);
}

// Logs of runs as reports read them: half written, damaged, gone on with, long.

#include "tests/runtime/Fixture.h"
#include "tools/tcc-run/report/RunReport.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools;

namespace {

class RunLogTest : public testing::Test {
protected:
  std::string write(const std::string &text) const {
    std::ofstream(folder / "metrics.jsonl", std::ios::binary) << text;
    return folder / "metrics.jsonl";
  }

  RunLog read(const std::string &text) const {
    return unwrap(readRunLog(write(text)));
  }

  /// The message of text that is refused as bad data.
  std::string refuse(const std::string &text) const {
    Result<RunLog> log = readRunLog(write(text));
    if (log.ok())
      return "nothing is wrong";
    Status status = log.takeStatus();
    EXPECT_EQ(status.code(), Code::BadData);
    return std::string(status.message());
  }

  TemporaryFolder folder;
};

} // namespace

static std::string makeLine(int64_t step, double loss,
                            const std::string &more = "") {
  return concat("{\"step\":", step, ",\"loss\":", loss, more, "}\n");
}

TEST_F(RunLogTest, ReadsWhatALineSays) {
  RunLog log = read(
      R"({"step":7,"loss":2,"lr":0.5,"grad_norm":null,"skipped":true,)"
      R"("samples_per_s":8,"update_s":0.25,"stall_s":3,"data_wait_s":0.125,)"
      R"("tokens_per_s":80,"mfu":0.5,"resident_bytes":4096,"spike":true,"eval":{"loss":1.5},"new":[]})"
      "\n");
  ASSERT_EQ(log.updates.size(), 1u);
  const LoggedUpdate &update = log.updates[0];
  EXPECT_EQ(update.step, 7);
  EXPECT_EQ(update.loss, 2);
  EXPECT_EQ(update.rate, 0.5);
  EXPECT_TRUE(std::isnan(update.gradNorm));
  EXPECT_TRUE(std::isnan(update.exposed));
  EXPECT_TRUE(update.isSkipped);
  EXPECT_TRUE(update.isSpike);
  EXPECT_EQ(update.evaluation["loss"], 1.5);
  RunTimes times = sumUp(log);
  EXPECT_TRUE(times.isKnown);
  EXPECT_EQ(times.getAll(), 3.25);
  EXPECT_EQ(times.data, 0.125);
  EXPECT_EQ(times.samples, 2);
  EXPECT_EQ(times.tokens, 20);
  EXPECT_EQ(times.peak, 0.125);
}

TEST_F(RunLogTest, NothingIsKnownOfTimesThatALogLacks) {
  EXPECT_FALSE(sumUp(read(makeLine(1, 2, ",\"data_wait_s\":1"))).isKnown);
  EXPECT_FALSE(sumUp(read("")).isKnown);
}

TEST_F(RunLogTest, TheLastLineMayBeHalfWritten) {
  std::string whole = makeLine(1, 2) + makeLine(2, 1);
  EXPECT_FALSE(read(whole).isTorn);
  for (size_t cut = 1; cut < makeLine(2, 1).size(); ++cut) {
    RunLog log = read(whole.substr(0, whole.size() - cut));
    EXPECT_TRUE(log.isTorn) << cut;
    EXPECT_EQ(log.updates.size(), 1u) << cut;
  }
  // What a disk that lost its power leaves.
  RunLog log =
      read(whole + std::string(20, '\0') + "\n" + std::string(9, '\0'));
  EXPECT_TRUE(log.isTorn);
  EXPECT_EQ(log.updates.size(), 2u);
}

TEST_F(RunLogTest, DamageBeforeAWholeLineIsNamed) {
  auto damage = [&](const std::string &line) {
    return refuse(makeLine(1, 2) + line + "\n" + makeLine(3, 1));
  };
  EXPECT_NE(damage("{\"step\":")
                .find("metrics.jsonl' line 2 has no JSON, "
                      "expected an object"),
            std::string::npos);
  EXPECT_NE(damage("[1]").find("line 2 has array, expected an object"),
            std::string::npos);
  EXPECT_NE(damage("{\"loss\":1}").find("line 2 has no 'step'"),
            std::string::npos);
  EXPECT_NE(damage("{\"step\":1.5}").find("expected the whole number 'step'"),
            std::string::npos);
  EXPECT_NE(damage("{\"step\":2,\"loss\":\"low\"}")
                .find("line 2 has 'loss' that is string, expected a number"),
            std::string::npos);
  EXPECT_NE(damage("{\"step\":2,\"skipped\":1}").find("expected true or false"),
            std::string::npos);
  EXPECT_NE(damage("{\"step\":2,\"eval\":[]}").find("expected an object"),
            std::string::npos);
}

TEST_F(RunLogTest, TheLastLineOfAnUpdateCounts) {
  RunLog log = read(makeLine(1, 4, ",\"eval\":{\"loss\":9}") + makeLine(2, 3) +
                    makeLine(3, 2) + makeLine(2, 2.5, ",\"redone\":true") +
                    makeLine(3, 1.5, ",\"redone\":true") +
                    "{\"step\":3,\"redone\":true,\"eval\":{\"loss\":7}}\n");
  ASSERT_EQ(log.updates.size(), 3u);
  EXPECT_EQ(log.redone, 2);
  EXPECT_EQ(log.updates[1].loss, 2.5);
  EXPECT_EQ(log.updates[2].loss, 1.5);
  EXPECT_EQ(log.updates[0].evaluation["loss"], 9);
  EXPECT_EQ(log.updates[2].evaluation["loss"], 7);
}

TEST_F(RunLogTest, NoLogIsAnError) {
  Result<RunLog> log = readRunLog(folder / "none");
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.takeStatus().code(), Code::Io);
}

TEST_F(RunLogTest, CurvesOfManyUpdatesKeepTheirExtremes) {
  RunLog log;
  for (int64_t step = 1; step <= 1000000; ++step) {
    log.updates.emplace_back().step = step;
    log.updates.back().loss = step == 777777 ? 50 : step % 2;
  }
  Curve curve = thin(log, &LoggedUpdate::loss);
  EXPECT_EQ(curve.width, 2000u);
  ASSERT_EQ(curve.x.size(), 500u);
  EXPECT_EQ(*std::ranges::max_element(curve.high), 50);
  EXPECT_EQ(curve.mean[0], 0.5);
  EXPECT_EQ(curve.low[0], 0);
  EXPECT_EQ(curve.x[0], 1000);
  EXPECT_TRUE(thin(log, &LoggedUpdate::gradNorm).x.empty());
}

/// A run of so many updates, of whose package nothing is known.
static RunReport makeRun(int64_t updates) {
  RunReport run;
  run.folder = "runs/a";
  run.record.flags["--data"] = {"npz:train.npz"};
  run.packageProblem = "there is none";
  for (int64_t step = 1; step <= updates; ++step) {
    LoggedUpdate &update = run.log.updates.emplace_back();
    update.step = step;
    update.loss = update.rate = update.gradNorm = 1 / double(step);
    update.samplesPerSecond = update.seconds = update.dataWait = 0.123456789;
    update.residentBytes = double(step);
  }
  return run;
}

TEST(RunPageTest, AMillionUpdatesAreASmallPage) {
  EXPECT_LT(makeRunPage(makeRun(1000000)).size(), 500u << 10);
}

TEST(RunPageTest, SaysHowTheRunEnded) {
  RunReport run = makeRun(3);
  auto says = [&](const std::string &text) {
    return makeRunPage(run).find(text) != std::string::npos;
  };
  EXPECT_TRUE(says("No end is recorded after 3 updates"));
  run.result = {{"code", 0}, {"error", ""}, {"last_step", 5}};
  EXPECT_TRUE(says("Ended after 3 of 5 updates"));
  run.result["stopped_by"] = "SIGTERM";
  EXPECT_TRUE(says("Stopped by SIGTERM after 3 of 5 updates"));
  run.result["code"] = 6;
  run.result["error"] = "the loss is not finite";
  EXPECT_TRUE(says("Failed after 3 of 5 updates (exit code 6)"));
  EXPECT_TRUE(says("the loss is not finite"));
  run.log.updates.clear();
  EXPECT_TRUE(says("No update was made."));
}

TEST(RunPageTest, WhatIsNotKnownIsSaid) {
  RunReport run = makeRun(3);
  auto says = [&](const std::string &text) {
    return makeRunPage(run).find(text) != std::string::npos;
  };
  EXPECT_TRUE(says("There is no profile"));
  EXPECT_TRUE(says("There is no diagnosis"));
  EXPECT_TRUE(says("not diagnosed; 100 % of the time is waiting for data"));
  EXPECT_TRUE(says("is not known: there is none"));
  for (LoggedUpdate &update : run.log.updates)
    update.seconds = LoggedUpdate::kUnknown;
  EXPECT_TRUE(says("The log does not say how long updates took"));
}

// The log of a run that is killed, goes on, or meets a disk that is full.

#include "tools/tcc-run/MetricsLog.h"
#include "tests/runtime/Fixture.h"
#include "tests/runtime/base/CrashDisk.h"
#include "tests/runtime/base/FailingCalls.h"

#include <cerrno>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools;
using nlohmann::json;

namespace {

class MetricsLogTest : public testing::Test {
protected:
  MetricsLog open(bool goesOn) {
    return unwrap(MetricsLog::open(folder / "log", goesOn));
  }

  static Status write(MetricsLog &log, int64_t step) {
    return log.write(describeUpdate({.step = step, .loss = 0.5}, {}, nullptr));
  }

  /// A run that makes these updates and is killed.
  void train(int64_t first, int64_t last, bool goesOn) {
    MetricsLog log = open(goesOn);
    for (int64_t step = first; step <= last; ++step)
      ASSERT_THAT(write(log, step), succeeds());
  }

  std::string read(const std::string &name = "metrics.jsonl") const {
    std::vector<char> bytes = readBytes(folder / ("log/" + name));
    return {bytes.begin(), bytes.end()};
  }

  void append(const std::string &text) const {
    std::ofstream(folder / "log/metrics.jsonl", std::ios::app) << text;
  }

  /// The steps of its lines; below 0 of those that are made again.
  static std::vector<int64_t> stepsOf(const std::string &text) {
    std::vector<int64_t> steps;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      json row = json::parse(line);
      steps.push_back(row["step"].get<int64_t>() *
                      (row.value("redone", false) ? -1 : 1));
    }
    return steps;
  }

  TemporaryFolder folder;
};

} // namespace

TEST_F(MetricsLogTest, SaysWhatAnUpdateDid) {
  MetricsLog log = open(/*goesOn=*/false);
  ASSERT_THAT(
      log.write(describeUpdate(
          {.step = 7, .loss = 2, .lr = 0.1, .skipped = true},
          {.samplesPerSecond = 3, .stall = 0.25, .dataWait = 0.5, .seconds = 4},
          {{"accuracy", 0.5}})),
      succeeds());
  json row = json::parse(read());
  uint64_t resident = row["resident_bytes"];
  EXPECT_GT(resident, 1u << 20);
  EXPECT_LT(resident, 1u << 30);
  row.erase("resident_bytes");
  json expected = {{"step", 7},
                   {"loss", 2.0},
                   {"lr", 0.1},
                   {"grad_norm", nullptr},
                   {"skipped", true},
                   {"loss_scale", nullptr},
                   {"samples_per_s", 3.},
                   {"stall_s", 0.25},
                   {"data_wait_s", 0.5},
                   {"update_s", 4.},
                   {"eval", {{"accuracy", 0.5}}}};
  EXPECT_EQ(row, expected);
  EXPECT_THAT(log.close(), succeeds());
  EXPECT_THAT(MetricsLog().write({}), succeeds());
}

TEST_F(MetricsLogTest, MarksWhatIsMadeAgain) {
  train(1, 5, /*goesOn=*/true);
  std::string before = read();
  train(3, 3, /*goesOn=*/true);
  train(3, 7, /*goesOn=*/true);
  train(7, 8, /*goesOn=*/true);
  EXPECT_THAT(stepsOf(read()),
              testing::ElementsAre(1, 2, 3, 4, 5, -3, -3, -4, -5, 6, 7, -7, 8));
  EXPECT_THAT(read(), testing::StartsWith(before));
}

TEST_F(MetricsLogTest, HasLinesOfEvaluationsAlone) {
  train(1, 3, /*goesOn=*/false);
  MetricsLog log = open(/*goesOn=*/true);
  std::string before = read();
  ASSERT_THAT(log.writeAgain(3, nullptr), succeeds());
  EXPECT_EQ(read(), before);
  ASSERT_THAT(log.writeAgain(3, {{"accuracy", 0.5}}), succeeds());
  json row = json::parse(read().substr(before.size()));
  EXPECT_EQ(
      row,
      json({{"step", 3}, {"redone", true}, {"eval", {{"accuracy", 0.5}}}}));
  train(3, 4, /*goesOn=*/true);
  EXPECT_THAT(stepsOf(read()), testing::ElementsAre(1, 2, 3, -3, -3, 4));
  EXPECT_THAT(MetricsLog().writeAgain(3, {{"accuracy", 0.5}}), succeeds());
}

TEST_F(MetricsLogTest, CutsATornTail) {
  using namespace std::string_literals;
  train(1, 2, /*goesOn=*/false);
  std::string before = read();
  for (const std::string &tail : {R"({"step":3,"lo)"s, R"({"step":3})"s,
                                  "\0\0\0\n"s, "{\"step\":3,\n\n{\"s"s}) {
    append(tail);
    MetricsLog log = open(/*goesOn=*/true);
    EXPECT_EQ(read(), before) << tail;
  }
  train(3, 3, /*goesOn=*/true);
  EXPECT_THAT(stepsOf(read()), testing::ElementsAre(1, 2, 3));
}

/// What is no line of an update, but before one, is left as it is.
TEST_F(MetricsLogTest, LeavesWhatComesBeforeTheTail) {
  train(1, 1, /*goesOn=*/false);
  append("notes\n{\"step\":2}\n");
  std::string before = read();
  train(3, 3, /*goesOn=*/true);
  EXPECT_THAT(read(), testing::StartsWith(before + "{\"step\":3,"));
  std::ofstream(folder / "log/metrics.jsonl") << "notes\n";
  train(1, 1, /*goesOn=*/true);
  EXPECT_THAT(stepsOf(read()), testing::ElementsAre(1));
}

TEST_F(MetricsLogTest, KeepsTheFileOfAnotherRun) {
  for (int64_t last : {2, 3, 4})
    train(1, last, /*goesOn=*/false);
  EXPECT_THAT(stepsOf(read("metrics.1.jsonl")), testing::ElementsAre(1, 2));
  EXPECT_THAT(stepsOf(read("metrics.2.jsonl")), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(stepsOf(read()), testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(MetricsLogTest, FailsWhereItCannotBegin) {
  std::ofstream(folder / "file") << "";
  for (bool goesOn : {false, true})
    EXPECT_THAT(MetricsLog::open(folder / "file/log", goesOn).takeStatus(),
                failsWith(Code::Io, "/file/log"));
}

/// Lines that one write does not take come with the next one.
TEST_F(MetricsLogTest, WritesAgainWhatFailed) {
  for (int reason : {ENOSPC, EIO, EINTR, 0})
    for (int first = 0; first < 3; ++first) {
      MetricsLog log = open(/*goesOn=*/false);
      FailingCalls calls(first, reason, /*forEver=*/false);
      int said = 0;
      {
        io::ScopedCalls scope(calls);
        for (int64_t step = 1; step <= 4; ++step)
          said += !write(log, step).ok();
      }
      EXPECT_THAT(log.close(), succeeds());
      EXPECT_TRUE(calls.hasFailed());
      EXPECT_EQ(said, reason == ENOSPC || reason == EIO) << first;
      EXPECT_THAT(stepsOf(read()), testing::ElementsAre(1, 2, 3, 4)) << first;
    }
}

/// A disk that has no room any more: said once, and at the end what it cost.
TEST_F(MetricsLogTest, GoesOnWithoutRoom) {
  MetricsLog log = open(/*goesOn=*/false);
  ASSERT_THAT(write(log, 1), succeeds());
  FailingCalls calls(0, ENOSPC, /*forEver=*/true);
  constexpr int64_t kLast = 20000; // more than a log keeps
  {
    io::ScopedCalls scope(calls);
    EXPECT_THAT(write(log, 2), failsWith(Code::Io, "No space left on device"));
    for (int64_t step = 3; step <= kLast; ++step)
      ASSERT_THAT(write(log, step), succeeds());
  }
  ASSERT_THAT(write(log, kLast + 1), succeeds()); // there was no room for it
  ASSERT_THAT(write(log, kLast + 2), succeeds());
  std::vector<int64_t> steps = stepsOf(read());
  EXPECT_GT(steps.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  EXPECT_EQ(steps.back(), kLast + 2);
  std::string lost =
      concat("lacks ", kLast + 2 - steps.size(), " lines: they were too many");
  EXPECT_THAT(log.close(), failsWith(Code::Io, lost));
}

TEST_F(MetricsLogTest, SaysAtTheEndWhatIsLost) {
  MetricsLog log = open(/*goesOn=*/false);
  FailingCalls calls(0, EIO, /*forEver=*/true);
  io::ScopedCalls scope(calls);
  for (int64_t step = 1; step <= 3; ++step)
    EXPECT_EQ(write(log, step).ok(), step > 1);
  EXPECT_THAT(log.close(), failsWith(Code::Io, "lacks 3 lines"));
}

/// Of a run that went on, after the power was lost: it goes on again behind
/// whole lines.
TEST_F(MetricsLogTest, GoesOnAfterALostDisk) {
  std::filesystem::create_directory(folder / "disk");
  CrashDisk disk(folder / "disk");
  {
    io::ScopedCalls scope(disk);
    for (int64_t first : {1, 4}) {
      MetricsLog log = unwrap(MetricsLog::open(folder / "disk/log", true));
      for (int64_t step = first; step < first + 6; ++step)
        ASSERT_THAT(write(log, step), succeeds());
      std::ofstream(folder / "disk/log/metrics.jsonl", std::ios::app) << "{";
    }
  }
  for (size_t count = 0; count <= disk.size(); ++count)
    for (double kept : {1.0, 0.5}) {
      std::mt19937 random(static_cast<unsigned>(count));
      TemporaryFolder lost;
      disk.restore(count, kept, random, lost / "disk");
      MetricsLog log = unwrap(MetricsLog::open(lost / "disk/log", true));
      ASSERT_THAT(write(log, 100), succeeds());
      std::vector<char> bytes = readBytes(lost / "disk/log/metrics.jsonl");
      std::string text(bytes.begin(), bytes.end());
      std::string line = text.substr(text.rfind('\n', text.size() - 2) + 1);
      EXPECT_EQ(json::parse(line)["step"], 100) << count << ", " << kept;
      if (kept == 1) {
        EXPECT_GE(stepsOf(text).size(), 1u);
      }
    }
}

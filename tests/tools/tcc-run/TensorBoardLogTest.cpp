// Event files of runs that are killed, go on, or meet a disk that is full.

#include "tools/tcc-run/TensorBoardLog.h"
#include "tests/runtime/Fixture.h"
#include "tests/runtime/base/CrashDisk.h"
#include "tests/runtime/base/FailingCalls.h"
#include "tests/tools/tcc-run/EventFile.h"
#include "tools/tcc-run/MetricsLog.h"

#include <cerrno>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

class TensorBoardLogTest : public testing::Test {
protected:
  TensorBoardLog open(int64_t stepCount = 0) {
    return unwrap(TensorBoardLog::open(folder / "tb", stepCount));
  }

  static Status write(TensorBoardLog &log, int64_t step, double loss = 0.5) {
    return log.write(describeUpdate({.step = step, .loss = loss}, {}, nullptr));
  }

  /// A process that makes these updates and is killed.
  void train(int64_t first, int64_t last, double loss = 0.5) {
    TensorBoardLog log = open(first - 1);
    for (int64_t step = first; step <= last; ++step)
      ASSERT_THAT(write(log, step, loss), succeeds());
  }

  /// In the order of readers.
  static std::vector<std::string> list(const std::string &path) {
    std::vector<std::string> names;
    for (const auto &entry : fs::directory_iterator(path))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  static EventFile readFile(const std::string &path) {
    std::vector<char> bytes = readBytes(path);
    return readEvents({bytes.data(), bytes.size()});
  }

  /// The only file, all of which must be records.
  EventFile read() const {
    std::vector<std::string> names = list(folder / "tb");
    EXPECT_EQ(names.size(), 1u);
    EventFile file = readFile(folder / ("tb/" + names.at(0)));
    EXPECT_EQ(file.size, fs::file_size(folder / ("tb/" + names[0])));
    return file;
  }

  /// The loss of each update that readers have in the end.
  static std::map<int64_t, double> findLosses(const std::string &path) {
    std::map<int64_t, double> losses;
    for (const std::string &name : list(path))
      for (const Event &event : readFile(path + "/" + name).events) {
        if (event.isStart)
          losses.erase(losses.lower_bound(event.step), losses.end());
        if (auto loss = event.numbers.find("train/loss");
            loss != event.numbers.end())
          EXPECT_TRUE(losses.emplace(event.step, loss->second).second);
      }
    return losses;
  }

  static std::vector<int64_t> stepsOf(const EventFile &file) {
    std::vector<int64_t> steps;
    for (const Event &event : file.events)
      if (event.numbers.contains("train/loss"))
        steps.push_back(event.step);
    return steps;
  }

  TemporaryFolder folder;
};

} // namespace

/// All that a line of metrics.jsonl has, by the same names.
TEST_F(TensorBoardLogTest, SaysWhatALineDoes) {
  UpdateRecord record =
      describeUpdate({.step = 7,
                      .loss = 2,
                      .gradNorm = 3,
                      .lr = 0.5,
                      .lossScale = 8,
                      .skipped = true},
                     {.samplesPerSecond = 3,
                      .tokensPerSecond = 48,
                      .exposed = 0.75,
                      .stall = 0.25,
                      .dataWait = 0.5,
                      .seconds = 4,
                      .isSpike = true,
                      .mfu = 0.125},
                     {{"accuracy", 0.5}, {"table", {{1, 2}, {3, 4}}}});
  TensorBoardLog log = open();
  MetricsLog metrics = unwrap(MetricsLog::open(folder / "log", false));
  ASSERT_THAT(log.write(record), succeeds());
  ASSERT_THAT(metrics.write(record), succeeds());
  std::vector<Event> events = read().events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_TRUE(events[1].isStart);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(events[2].step, 7);
  EXPECT_NEAR(events[2].time, double(std::time(nullptr)), 60);
  std::map<std::string, double> &numbers = events[2].numbers;
  double resident = numbers["memory/resident_bytes"];
  EXPECT_GT(resident, 1u << 20);
  std::map<std::string, double> expected = {
      {"train/loss", 2},
      {"train/lr", 0.5},
      {"train/grad_norm", 3},
      {"train/loss_scale", 8},
      {"train/skipped", 1},
      {"train/spike", 1},
      {"speed/samples_per_s", 3},
      {"speed/tokens_per_s", 48},
      {"speed/mfu", 0.125},
      {"speed/update_s", 4},
      {"speed/stall_s", 0.25},
      {"speed/data_wait_s", 0.5},
      {"speed/exposed_communication_s", 0.75},
      {"memory/resident_bytes", resident},
      {"eval/accuracy", 0.5}};
  EXPECT_EQ(numbers, expected);
  json line = json::parse(readBytes(folder / "log/metrics.jsonl"));
  line.erase("step");
  line["eval"].erase("table");
  std::set<std::string> keys, names;
  for (const auto &[key, value] : line.items())
    keys.insert(key == "eval" ? value.items().begin().key() : key);
  for (const auto &[tag, value] : numbers)
    names.insert(tag.substr(tag.find('/') + 1));
  EXPECT_EQ(keys, names);
  EXPECT_THAT(log.close(), succeeds());
  EXPECT_THAT(TensorBoardLog().write(record), succeeds());
  EXPECT_THAT(TensorBoardLog().writeEvaluation(1, {{"x", 1}}), succeeds());
}

/// What a package has not is no chart; what it has is a chart with a gap.
TEST_F(TensorBoardLogTest, LeavesOutWhatThereIsNot) {
  TensorBoardLog log = open();
  for (double loss : {1.0, double(NAN), double(INFINITY)})
    ASSERT_THAT(write(log, 1, loss), succeeds());
  std::vector<double> losses;
  for (Event &event : read().events) {
    EXPECT_FALSE(event.numbers.contains("train/grad_norm"));
    if (event.numbers.contains("train/loss"))
      losses.push_back(event.numbers["train/loss"]);
  }
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_TRUE(std::isnan(losses[1]));
  EXPECT_EQ(losses[2], INFINITY);
}

TEST_F(TensorBoardLogTest, HasEventsOfEvaluationsAlone) {
  TensorBoardLog log = open(/*stepCount=*/3);
  ASSERT_THAT(log.writeEvaluation(3, nullptr), succeeds());
  ASSERT_THAT(log.writeEvaluation(3, {{"accuracy", 0.5}}), succeeds());
  std::vector<Event> events = read().events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step, 4); // update 3 stays as it is
  EXPECT_EQ(events[2].step, 3);
  EXPECT_THAT(events[2].numbers,
              testing::ElementsAre(testing::Pair("eval/accuracy", 0.5)));
}

TEST_F(TensorBoardLogTest, MakesVoidWhatIsMadeAgain) {
  train(1, 5, /*loss=*/1);
  train(4, 6, /*loss=*/2);
  std::map<int64_t, double> expected = {{1, 1}, {2, 1}, {3, 1},
                                        {4, 2}, {5, 2}, {6, 2}};
  EXPECT_EQ(findLosses(folder / "tb"), expected);
  // One process that returns to an earlier state.
  TensorBoardLog log = open(/*stepCount=*/6);
  for (int64_t step : {7, 8, 9, 8, 9})
    ASSERT_THAT(write(log, step, 3), succeeds());
  for (int64_t step : {7, 8, 9})
    expected[step] = 3;
  EXPECT_EQ(findLosses(folder / "tb"), expected);
  // A run that begins anew.
  train(1, 2, /*loss=*/4);
  expected = {{1, 4}, {2, 4}};
  EXPECT_EQ(findLosses(folder / "tb"), expected);
}

/// Also where clocks stand still or went back.
TEST_F(TensorBoardLogTest, NamesFilesInTheirOrder) {
  fs::create_directory(folder / "tb");
  const std::string future = concat(kPrefix, "4000000000.host.99");
  std::ofstream(folder / ("tb/" + future)) << "";
  std::ofstream(folder / "tb/notes") << "";
  std::vector<std::string> names = {"notes", future};
  for (int i = 0; i < 3; ++i) {
    train(1, 1);
    std::vector<std::string> now = list(folder / "tb");
    std::erase(now, "notes");
    ASSERT_EQ(now.size(), names.size());
    EXPECT_THAT(names, testing::Contains(now[now.size() - 2]));
    names.push_back(now.back());
    EXPECT_THAT(now.back(), testing::EndsWith(concat(".", getpid())));
    EXPECT_THAT(now.back(),
                testing::StartsWith(concat(kPrefix, 4000000001 + i, ".")));
  }
}

/// Nothing is kept back: a process that is killed has lost no update.
TEST_F(TensorBoardLogTest, HasEachUpdateOnceItWasMade) {
  TensorBoardLog log = open();
  for (int64_t step = 1; step <= 5; ++step) {
    ASSERT_THAT(write(log, step), succeeds());
    EXPECT_EQ(stepsOf(read()).back(), step);
  }
}

TEST_F(TensorBoardLogTest, FailsWhereItCannotBegin) {
  std::ofstream(folder / "file") << "";
  EXPECT_THAT(TensorBoardLog::open(folder / "file/log", 0).takeStatus(),
              failsWith(Code::Io, "/file/log"));
  FailingCalls calls(0, ENOSPC, /*forEver=*/true);
  fs::create_directory(folder / "tb");
  io::ScopedCalls scope(calls);
  EXPECT_THAT(TensorBoardLog::open(folder / "tb", 0).takeStatus(),
              failsWith(Code::Io, "No space left on device"));
}

/// As a run does that goes on: without room it is without a log for now.
TEST_F(TensorBoardLogTest, BeginsWithoutRoom) {
  TensorBoardLog log = open(/*stepCount=*/6);
  {
    FailingCalls calls(0, ENOSPC, /*forEver=*/true);
    io::ScopedCalls scope(calls);
    EXPECT_THAT(write(log, 7), failsWith(Code::Io, "No space left on device"));
  }
  ASSERT_THAT(write(log, 8), succeeds());
  EXPECT_EQ(read().events.at(0).version, "brain.Event:2");
  EXPECT_TRUE(read().events.at(1).isStart);
  EXPECT_THAT(stepsOf(read()), testing::ElementsAre(7, 8));
}

/// A disk that has no room any more: said once, and at the end what it cost.
TEST_F(TensorBoardLogTest, GoesOnWithoutRoom) {
  TensorBoardLog log = open();
  ASSERT_THAT(write(log, 1), succeeds());
  FailingCalls calls(0, ENOSPC, /*forEver=*/true);
  constexpr int64_t kLast = 5000; // more than a log keeps
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
  std::string lost = concat("lacks ", kLast + 2 - steps.size(),
                            " records: they were too many");
  EXPECT_THAT(log.close(), failsWith(Code::Io, lost));
}

/// One record is kept whatever its size.
TEST_F(TensorBoardLogTest, KeepsALargeRecord) {
  TensorBoardLog log = open();
  Summary summary;
  summary.addText("text", std::string(3 << 20, 'x'));
  {
    FailingCalls calls(0, ENOSPC, /*forEver=*/true);
    io::ScopedCalls scope(calls);
    EXPECT_FALSE(log.write(1, summary).ok());
  }
  EXPECT_THAT(log.close(), succeeds());
  EXPECT_EQ(read().events.back().texts["text"].size(), size_t(3 << 20));
}

TEST_F(TensorBoardLogTest, SaysAtTheEndWhatIsLost) {
  TensorBoardLog log = open();
  FailingCalls calls(0, EIO, /*forEver=*/true);
  io::ScopedCalls scope(calls);
  for (int64_t step = 1; step <= 3; ++step)
    EXPECT_EQ(write(log, step).ok(), step > 1);
  EXPECT_THAT(log.close(), failsWith(Code::Io, "lacks 3 records"));
}

/// A run that went on, after the power was lost: what follows is a file of its
/// own, so that no reader stops at what is torn.
TEST_F(TensorBoardLogTest, GoesOnAfterALostDisk) {
  fs::create_directory(folder / "disk");
  CrashDisk disk(folder / "disk");
  {
    io::ScopedCalls scope(disk);
    for (int64_t first : {1, 4}) {
      TensorBoardLog log =
          unwrap(TensorBoardLog::open(folder / "disk/tb", first - 1));
      for (int64_t step = first; step < first + 6; ++step)
        ASSERT_THAT(write(log, step), succeeds());
    }
  }
  for (size_t count = 0; count <= disk.size(); ++count)
    for (double kept : {1.0, 0.5}) {
      std::mt19937 random(static_cast<unsigned>(count));
      TemporaryFolder lost;
      disk.restore(count, kept, random, lost / "disk");
      {
        TensorBoardLog log = unwrap(TensorBoardLog::open(lost / "disk/tb", 99));
        ASSERT_THAT(write(log, 100), succeeds());
      }
      std::vector<std::string> names = list(lost / "disk/tb");
      EXPECT_LE(names.size(), 3u);
      EventFile last = readFile(lost / ("disk/tb/" + names.back()));
      EXPECT_THAT(stepsOf(last), testing::ElementsAre(100));
      if (kept == 1) {
        EXPECT_TRUE(findLosses(lost / "disk/tb").contains(100));
      }
    }
}

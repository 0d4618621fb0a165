// Checkpoints that two ranks write, after the power was lost.

#include "runtime/train/Checkpoint.h"
#include "runtime/train/Session.h"
#include "tests/runtime/base/CrashDisk.h"
#include "tests/runtime/ranks/Ranks.h"
#include "tests/runtime/train/LineProgram.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

class RankedDurabilityTest : public testing::Test {
protected:
  RankedDurabilityTest() {
    dividedLineProgram().write(path);
    std::filesystem::create_directory(root);
  }

  std::unique_ptr<TrainingSession> open(Communicator *ranks) {
    return unwrap(TrainingSession::create(
        loadExecutable(path), {.threads = 1, .communicator = ranks}));
  }

  /// Runs of two updates, each with a checkpoint; the second run replaces those
  /// of the first.
  void train(Communicator &ranks) {
    for (int run = 0; run < 2; ++run) {
      auto session = open(&ranks);
      float x[kLineBatch] = {1, 2, 3, 4}, y[kLineBatch] = {};
      const int64_t shape[1] = {kLineBatch};
      const TensorView views[] = {{x, DType::f32, shape},
                                  {y, DType::f32, shape}};
      for (int64_t step = 1; step <= 2; ++step) {
        ASSERT_THAT(session->step(views), succeeds());
        unwrap(saveCheckpoint(*session, root + "/run"));
        if (ranks.rank() == 0 && run == 0)
          finished.emplace_back(disk.size(), step);
      }
    }
  }

  /// What is wrong with a state; empty if nothing is.
  std::string findLoss(size_t count, double kept, unsigned seed) {
    std::mt19937 random(seed);
    TemporaryFolder lost;
    disk.restore(count, kept, random, lost / "disk");
    std::string where = concat("after ", count, " calls, of the rest ", kept,
                               ", seed ", seed, ": ");
    std::string newest = unwrap(findNewestCheckpoint(lost / "disk/run"))
                             .newest.value_or("step-0");
    int64_t expected = 0;
    for (auto [calls, step] : finished)
      if (calls <= count)
        expected = std::max(expected, step);
    if (newest == "step-0")
      return expected > 0 ? where + "nothing is left" : "";
    int64_t step = newest[newest.rfind("step-") + 5] - '0';
    if (auto found = verifyCheckpoint(newest); !found.ok())
      return where + std::string(found.takeStatus().message());
    return step < expected ? concat(where, "update ", expected, " is lost")
                           : "";
  }

  TemporaryFolder folder;
  std::string path = folder / "line.tcc", root = folder / "disk";
  CrashDisk disk{root};
  std::vector<std::pair<size_t, int64_t>> finished; ///< after how many calls
};

} // namespace

TEST_F(RankedDurabilityTest, WithTwoWriters) {
  {
    io::ScopedCalls scope(disk);
    runRanks(2, [&](Communicator &ranks) { train(ranks); });
  }
  ASSERT_EQ(finished.size(), 2u);
  std::vector<std::string> losses;
  auto check = [&](size_t count, double kept, unsigned seed) {
    if (std::string loss = findLoss(count, kept, seed); !loss.empty())
      losses.push_back(std::move(loss));
  };
  for (size_t count = 0; count <= disk.size(); ++count)
    for (double kept : {0.0, 1.0})
      check(count, kept, 0);
  std::mt19937 random(1);
  for (int i = 0; i < countCrashStates(); ++i)
    check(random() % (disk.size() + 1), 0.1 + 0.2 * (i % 5), i);
  EXPECT_THAT(losses, testing::IsEmpty());
}

// Checkpoints after the power was lost: whatever the disk kept of what was not
// synced, the newest one that was finished is there, or a newer one.

#include "runtime/train/Checkpoint.h"
#include "runtime/train/Session.h"
#include "tests/runtime/base/CrashDisk.h"
#include "tests/runtime/train/LineProgram.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

class DurabilityTest : public testing::Test {
protected:
  DurabilityTest() {
    lineProgram().write(path);
    session = open();
    std::filesystem::create_directory(root);
  }

  std::unique_ptr<TrainingSession> open() {
    return unwrap(
        TrainingSession::create(loadExecutable(path), {.threads = 1}));
  }

  static float parameter(const TrainingSession &session) {
    float value = 0;
    EXPECT_THAT(session.variables().read(
                    0, std::as_writable_bytes(std::span(&value, 1))),
                succeeds());
    return value;
  }

  void step(float slope) {
    float x[kLineBatch] = {1, 2, -1, 0.5f}, y[kLineBatch];
    for (int i = 0; i < kLineBatch; ++i)
      y[i] = slope * x[i];
    const int64_t shape[1] = {kLineBatch};
    const TensorView views[] = {{x, DType::f32, shape}, {y, DType::f32, shape}};
    ASSERT_THAT(session->step(views), succeeds());
  }

  void save() {
    allowed[session->stepCount()].push_back(parameter(*session));
    unwrap(saveCheckpoint(*session, root + "/run"));
    finished.emplace_back(disk.size(), session->stepCount());
  }

  /// What must be there after so many calls.
  int64_t getNewest(size_t count) const {
    int64_t newest = 0;
    for (auto [calls, step] : finished)
      if (calls <= count)
        newest = std::max(newest, step);
    return newest;
  }

  /// What is wrong with a state of the disk; empty if nothing is.
  std::string findLoss(size_t count, double kept, unsigned seed) {
    std::mt19937 random(seed);
    TemporaryFolder lost;
    disk.restore(count, kept, random, lost / "disk");
    std::unique_ptr<TrainingSession> other = open();
    auto found = restoreLatestCheckpoint(*other, lost / "disk/run");
    std::string where = concat("after ", count, " calls, of the rest ", kept,
                               ", seed ", seed, ": ");
    if (!found.ok())
      return where + std::string(found.takeStatus().message());
    int64_t newest = getNewest(count), step = other->stepCount();
    if (newest == 0 && !found->newest)
      return "";
    if (!found->newest || step < newest)
      return concat(where, "update ", newest, " is lost");
    bool isRight = std::ranges::count(allowed[step], parameter(*other)) > 0;
    return isRight && !found->isAnyDamaged ? "" : where + "other bytes";
  }

  /// The losses over all states.
  std::vector<std::string> findLosses() {
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
    return losses;
  }

  TemporaryFolder folder;
  std::string path = folder / "line.tcc", root = folder / "disk";
  CrashDisk disk{root};
  std::unique_ptr<TrainingSession> session;
  std::map<int64_t, std::vector<float>> allowed;    ///< parameters by step
  std::vector<std::pair<size_t, int64_t>> finished; ///< after how many calls
};

} // namespace

TEST_F(DurabilityTest, OneCheckpointAfterTheOther) {
  {
    io::ScopedCalls scope(disk);
    for (float slope : {3, 2, 5}) {
      step(slope);
      save();
    }
  }
  EXPECT_GT(disk.size(), 30u);
  EXPECT_THAT(findLosses(), testing::IsEmpty());
}

/// Another run makes the same steps.
TEST_F(DurabilityTest, OneInThePlaceOfAnother) {
  {
    io::ScopedCalls scope(disk);
    for (float slope : {3, 2, 5}) {
      session = open();
      step(slope);
      save();
    }
    step(4);
    save();
  }
  EXPECT_THAT(findLosses(), testing::IsEmpty());
}

/// The states are such that it matters what is synced.
TEST_F(DurabilityTest, IsLostByADiskThatLies) {
  disk.ignoreSyncs();
  {
    io::ScopedCalls scope(disk);
    for (float slope : {3, 2}) {
      step(slope);
      save();
    }
  }
  EXPECT_THAT(findLosses(), testing::Contains(testing::HasSubstr("is lost")));
}

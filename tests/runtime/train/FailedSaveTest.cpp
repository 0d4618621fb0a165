// Saves of which a call fails: what was there stays, and the next one is good.

#include "runtime/train/Checkpoint.h"
#include "runtime/train/FolderLock.h"
#include "tests/runtime/base/FailingCalls.h"
#include "tests/runtime/train/LineProgram.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
namespace fs = std::filesystem;

namespace {

class FailedSaveTest : public testing::Test {
protected:
  FailedSaveTest() {
    lineProgram().write(folder / "line.tcc");
    session = open();
    step();
  }

  std::unique_ptr<TrainingSession> open() {
    return unwrap(TrainingSession::create(loadExecutable(folder / "line.tcc"),
                                          {.threads = 1}));
  }

  void step() {
    float x[kLineBatch] = {1, 2, 3, 4}, y[kLineBatch] = {};
    const int64_t shape[1] = {kLineBatch};
    const TensorView views[] = {{x, DType::f32, shape}, {y, DType::f32, shape}};
    ASSERT_THAT(session->step(views), succeeds());
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const fs::directory_entry &entry : fs::directory_iterator(root))
      found.push_back(entry.path().filename());
    std::ranges::sort(found);
    return found;
  }

  int64_t restore() {
    std::unique_ptr<TrainingSession> other = open();
    CheckpointSearch found = unwrap(restoreLatestCheckpoint(*other, root));
    EXPECT_TRUE(found.newest);
    EXPECT_FALSE(found.isAnyDamaged);
    return other->stepCount();
  }

  TemporaryFolder folder;
  std::string root = folder / "run";
  std::unique_ptr<TrainingSession> session;
};

} // namespace

/// Each call, once and from then on; of a new checkpoint, and of one in the
/// place of another.
TEST_F(FailedSaveTest, LeavesWhatWasThere) {
  for (bool replaces : {false, true})
    for (bool forEver : {false, true})
      for (int reason : {ENOSPC, EIO, EINTR, 0})
        for (int first = 0;; ++first) {
          if (forEver && reason == EINTR)
            break; // is tried until it is done
          fs::remove_all(root);
          session = open();
          step();
          unwrap(saveCheckpoint(*session, root));
          if (!replaces)
            step();
          FailingCalls calls(first, reason, forEver);
          Status status;
          {
            io::ScopedCalls scope(calls);
            auto saved = saveCheckpoint(*session, root);
            status = saved.ok() ? Status() : saved.takeStatus();
          }
          if (!calls.hasFailed()) {
            EXPECT_THAT(status, succeeds());
            EXPECT_GT(first, 10);
            break;
          }
          std::string where = concat("call ", first, ", ", reason,
                                     forEver ? " for ever" : " once",
                                     replaces ? ", replacing" : "");
          EXPECT_TRUE(status.ok() || status.code() == Code::Io) << where;
          if (reason == EINTR || reason == 0)
            EXPECT_THAT(status, succeeds()) << where;
          EXPECT_GE(restore(), 1) << where;
          ASSERT_THAT(cleanCheckpoints(root), succeeds()) << where;
          EXPECT_GE(restore(), status.ok() ? session->stepCount() : 1) << where;
          unwrap(saveCheckpoint(*session, root));
          EXPECT_EQ(restore(), session->stepCount()) << where;
          std::vector<std::string> expected = {"step-1"};
          if (!replaces)
            expected.push_back("step-2");
          EXPECT_EQ(names(), expected) << where;
        }
}

/// What other names there are is nobody's to remove.
TEST_F(FailedSaveTest, CleansWhatWasLeft) {
  unwrap(saveCheckpoint(*session, root));
  fs::create_directory(root + "/step-2.tmp77");
  std::ofstream(root + "/step-2.tmp77/state.safetensors") << "half";
  fs::copy(root + "/step-1", root + "/step-1.old");
  fs::copy(root + "/step-1", root + "/step-3.old");
  for (const char *name : {"/notes.txt", "/step-x.tmp1", "/step-4.txt"})
    std::ofstream(root + name) << "mine";
  ASSERT_THAT(cleanCheckpoints(root), succeeds());
  EXPECT_THAT(names(), testing::ElementsAre("notes.txt", "step-1", "step-3",
                                            "step-4.txt", "step-x.tmp1"));
  ASSERT_THAT(cleanCheckpoints(folder / "none"), succeeds());
}

/// The newest, and those of some steps; what is not whole is none of them.
TEST_F(FailedSaveTest, KeepsWhatItIsTold) {
  for (int i = 1; i < 7; ++i) {
    unwrap(saveCheckpoint(*session, root));
    step();
  }
  fs::remove(root + "/step-6/manifest.json");
  ASSERT_THAT(removeOldCheckpoints(root, {}), succeeds());
  EXPECT_EQ(names().size(), 6u);
  ASSERT_THAT(removeOldCheckpoints(root, {.keepLast = 2, .keepEvery = 3}),
              succeeds());
  EXPECT_THAT(names(),
              testing::ElementsAre("step-3", "step-4", "step-5", "step-6"));
  ASSERT_THAT(removeOldCheckpoints(root, {.keepLast = 1}), succeeds());
  EXPECT_THAT(names(), testing::ElementsAre("step-5", "step-6"));
}

/// The first of those that were evaluated best, if that was after their update.
TEST_F(FailedSaveTest, KeepsTheBest) {
  for (int64_t i = 1; i < 7; ++i) {
    double value = std::array{0., 2., 1., 3., 1., 0., 9.}[i];
    int64_t evaluated = i == 5 ? 4 : i;
    session->records().evaluation =
        EvaluationRecord{evaluated, {{"loss", value}}, {}};
    unwrap(saveCheckpoint(*session, root));
    step();
  }
  ASSERT_THAT(removeOldCheckpoints(root, {.keepLast = 3, .keepBest = "f1"}),
              succeeds());
  EXPECT_THAT(names(), testing::ElementsAre("step-4", "step-5", "step-6"));
}

TEST_F(FailedSaveTest, KeepsTheFirstBest) {
  for (double value : {2., 1., 3., 1., 9.}) {
    session->records().evaluation =
        EvaluationRecord{session->stepCount(), {{"loss", value}}, {}};
    unwrap(saveCheckpoint(*session, root));
    step();
  }
  ASSERT_THAT(removeOldCheckpoints(root, {.keepLast = 1, .keepBest = "loss"}),
              succeeds());
  EXPECT_THAT(names(), testing::ElementsAre("step-2", "step-5"));
}

TEST(FolderLock, IsOfOneProcess) {
  TemporaryFolder folder;
  std::string root = folder / "a/run";
  std::string process = concat("process ", getpid(), " of host ");
  {
    FolderLock lock = unwrap(FolderLock::take(root));
    EXPECT_EQ(lock.takenFrom(), "");
    EXPECT_THAT(FolderLock::take(root).takeStatus(),
                failsWith(Code::Usage, "are written by " + process));
    FolderLock moved = std::move(lock);
    EXPECT_FALSE(FolderLock::take(root).ok());
  }
  EXPECT_FALSE(fs::exists(root + "/lock"));
  EXPECT_EQ(unwrap(FolderLock::take(root)).takenFrom(), "");
}

/// One that was killed has it no longer.
TEST(FolderLock, IsTakenOver) {
  TemporaryFolder folder;
  std::string root = folder / "run";
  pid_t child = fork();
  if (child == 0) {
    auto lock = FolderLock::take(root);
    _exit(lock.ok() ? 0 : 1); // without giving it back
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(root + "/lock"));
  EXPECT_THAT(unwrap(FolderLock::take(root)).takenFrom(),
              testing::StartsWith(concat("process ", child, " of host ")));
  std::ofstream(root + "/lock") << "[1, 2";
  EXPECT_EQ(unwrap(FolderLock::take(root)).takenFrom(), "");
}

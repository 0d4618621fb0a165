// Checkpoints that are written while steps go on.

#include "runtime/train/Checkpoint.h"
#include "tests/runtime/base/FailingCalls.h"
#include "tests/runtime/train/LineProgram.h"

#include <cerrno>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
namespace fs = std::filesystem;

namespace {

class BackgroundSaveTest : public testing::Test {
protected:
  BackgroundSaveTest() {
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

  int64_t restore() {
    std::unique_ptr<TrainingSession> other = open();
    CheckpointSearch found = unwrap(restoreLatestCheckpoint(*other, root));
    return found.newest ? other->stepCount() : 0;
  }

  TemporaryFolder folder;
  std::string root = folder / "run";
  std::unique_ptr<TrainingSession> session;
};

} // namespace

/// The same files as of a step that waited, whatever came later.
TEST_F(BackgroundSaveTest, WritesWhatWasThere) {
  std::string waited = unwrap(saveCheckpoint(*session, folder / "waited"));
  BackgroundSave save(*session, root, {});
  ASSERT_THAT(save.begin(), succeeds());
  EXPECT_TRUE(save.isActive());
  for (int i = 0; i < 100; ++i)
    step();
  std::string path = unwrap(save.finish());
  EXPECT_FALSE(save.isActive());
  EXPECT_EQ(path, root + "/step-1");
  int files = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(waited)) {
    std::string name = entry.path().filename();
    EXPECT_EQ(readBytes(path + "/" + name), readBytes(waited + "/" + name))
        << name;
    ++files;
  }
  EXPECT_GE(files, 2);
}

TEST_F(BackgroundSaveTest, PlansItsCopy) {
  BackgroundSave save(*session, root, {});
  uint64_t before = session->planned().total();
  ASSERT_THAT(save.begin(), succeeds());
  EXPECT_EQ(session->planned().copies, session->variables().byteCount());
  EXPECT_EQ(session->planned().total(),
            before + session->variables().byteCount());
  unwrap(save.finish());
  ASSERT_THAT(save.begin(), succeeds());
  EXPECT_EQ(session->planned().copies, session->variables().byteCount());
  unwrap(save.finish());
}

TEST_F(BackgroundSaveTest, RemovesOlderOnes) {
  BackgroundSave save(*session, root, {.keepLast = 2});
  for (int i = 0; i < 4; ++i) {
    step();
    ASSERT_THAT(save.begin(), succeeds());
    unwrap(save.finish());
    EXPECT_THAT(save.removal(), succeeds());
  }
  EXPECT_EQ(listCheckpoints(root),
            (std::vector{root + "/step-5", root + "/step-4"}));
}

/// Who destroys an active one finds it written.
TEST_F(BackgroundSaveTest, EndsWithItsOwner) {
  {
    BackgroundSave save(*session, root, {});
    ASSERT_THAT(save.begin(), succeeds());
  }
  EXPECT_EQ(restore(), 1);
}

/// Each call: what was there stays, steps go on, and the next one is good.
TEST_F(BackgroundSaveTest, OutlivesFailures) {
  for (int first = 0;; ++first) {
    fs::remove_all(root);
    unwrap(saveCheckpoint(*session, root));
    int64_t before = session->stepCount();
    step();
    BackgroundSave save(*session, root, {});
    FailingCalls calls(first, ENOSPC, /*forEver=*/true);
    Status status;
    {
      io::ScopedCalls scope(calls);
      status = save.begin();
      EXPECT_EQ(save.isActive(), status.ok());
      step();
      if (status.ok()) {
        auto saved = save.finish();
        status = saved.ok() ? Status() : saved.takeStatus();
      }
      EXPECT_FALSE(save.isActive());
    }
    if (!calls.hasFailed()) {
      EXPECT_THAT(status, succeeds());
      EXPECT_GT(first, 10);
      break;
    }
    EXPECT_TRUE(status.ok() || status.code() == Code::Io) << first;
    EXPECT_GE(restore(), before) << first;
    ASSERT_THAT(save.begin(), succeeds());
    unwrap(save.finish());
    EXPECT_EQ(restore(), session->stepCount()) << first;
  }
}

// Checkpoints of several files.

#include "runtime/train/CheckpointFiles.h"

#include "runtime/package/Safetensors.h"
#include "runtime/train/Checkpoint.h"
#include "tests/runtime/train/LineProgram.h"

#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

class CheckpointFilesTest : public testing::Test {
protected:
  CheckpointFilesTest() {
    lineProgram().write(folder / "line.tcc");
    session = open();
    float x[kLineBatch] = {1, 2, 3, 4}, y[kLineBatch] = {};
    const int64_t shape[1] = {kLineBatch};
    const TensorView views[] = {{x, DType::f32, shape}, {y, DType::f32, shape}};
    EXPECT_THAT(session->step(views), succeeds());
  }

  std::unique_ptr<TrainingSession> open() {
    return unwrap(TrainingSession::create(loadExecutable(folder / "line.tcc"),
                                          {.threads = 1}));
  }

  std::string save(uint64_t mostFileBytes) {
    return unwrap(saveCheckpoint(
        *session, folder / std::to_string(mostFileBytes), mostFileBytes));
  }

  static std::vector<std::string> listFiles(const std::string &path) {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".safetensors")
        names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  static json readIndex(const std::string &path) {
    std::vector<char> text = readBytes(path + "/model.safetensors.index.json");
    return json::parse(text.begin(), text.end());
  }

  TemporaryFolder folder;
  std::unique_ptr<TrainingSession> session;
};

} // namespace

TEST_F(CheckpointFilesTest, AreOneWhereThatIsNotTooLarge) {
  std::string path = save(kMostFileBytes);
  EXPECT_THAT(listFiles(path), testing::ElementsAre("state.safetensors"));
}

/// No file has more bytes, and the index lists what the files have.
TEST_F(CheckpointFilesTest, AreSeveral) {
  constexpr uint64_t kMost = 320;
  std::string path = save(kMost);
  std::vector<std::string> names = listFiles(path);
  ASSERT_GT(names.size(), 2u);
  EXPECT_EQ(names.front(),
            concat("state-00001-of-0000", names.size(), ".safetensors"));
  json index = readIndex(path);
  uint64_t bytes = 0;
  size_t count = 0;
  for (const std::string &name : names) {
    auto file = unwrap(SafetensorsFile::open(path + "/" + name));
    EXPECT_LE(fs::file_size(path + "/" + name), kMost);
    for (const StoredTensor &tensor : file.tensors()) {
      EXPECT_EQ(index["weight_map"][tensor.name], name);
      bytes += tensor.bytes.size();
      ++count;
    }
  }
  EXPECT_EQ(index["weight_map"].size(), count);
  EXPECT_EQ(index["metadata"], json({{"total_size", bytes}}));
  EXPECT_EQ(unwrap(verifyCheckpoint(path)).bytes, bytes);
}

/// The same tensors as of one file, which are restored.
TEST_F(CheckpointFilesTest, HaveTheSameTensors) {
  auto tensorsOf = [](const std::string &path) {
    std::map<std::string, std::vector<std::byte>> tensors;
    for (const std::string &name : listFiles(path)) {
      auto file = unwrap(SafetensorsFile::open(path + "/" + name));
      for (const StoredTensor &tensor : file.tensors())
        tensors[tensor.name] = {tensor.bytes.begin(), tensor.bytes.end()};
    }
    return tensors;
  };
  auto whole = tensorsOf(save(kMostFileBytes));
  EXPECT_EQ(tensorsOf(save(1)), whole) << "a file for each";
  EXPECT_EQ(listFiles(folder / "1/step-1").size(), whole.size());
  EXPECT_EQ(tensorsOf(save(600)), whole);
  std::unique_ptr<TrainingSession> other = open();
  ASSERT_THAT(restoreCheckpoint(*other, folder / "1/step-1"), succeeds());
  EXPECT_EQ(tensorsOf(unwrap(saveCheckpoint(*other, folder / "other"))), whole);
}

TEST_F(CheckpointFilesTest, AreAllNeeded) {
  std::string path = save(320);
  std::string last = path + "/" + listFiles(path).back();
  std::vector<char> bytes = readBytes(last);
  bytes.back() ^= 1;
  writeBytes(last, bytes);
  EXPECT_THAT(verifyCheckpoint(path).takeStatus(),
              failsWith(Code::BadData, last + "' is damaged"));
  fs::remove(last);
  EXPECT_THAT(restoreCheckpoint(*session, path),
              failsWith(Code::BadData, "there is no '" + last));
}

/// Nothing is left of a checkpoint that had more files.
TEST_F(CheckpointFilesTest, ReplaceOthers) {
  std::string root = folder / "run";
  unwrap(saveCheckpoint(*session, root, 1));
  std::string path = unwrap(saveCheckpoint(*session, root));
  EXPECT_THAT(listFiles(path), testing::ElementsAre("state.safetensors"));
}

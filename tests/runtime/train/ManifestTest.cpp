#include "runtime/train/Manifest.h"

#include "runtime/package/Safetensors.h"
#include "runtime/train/Checkpoint.h"
#include "tests/runtime/train/LineProgram.h"

using namespace tcc::runtime;
using namespace tcc::tests;
using nlohmann::ordered_json;

namespace {

/// A checkpoint whose manifest a test changes.
class ManifestTest : public testing::Test {
protected:
  void SetUp() override {
    lineProgram().write(folder / "line.tcc");
    session = open();
    saved = unwrap(saveCheckpoint(*session, folder / "run"));
    std::vector<char> text = readBytes(saved + "/manifest.json");
    manifest = ordered_json::parse(text.begin(), text.end());
    ASSERT_FALSE(manifest["tensors"].empty());
  }

  std::unique_ptr<TrainingSession> open() {
    return unwrap(TrainingSession::create(loadExecutable(folder / "line.tcc"),
                                          {.threads = 1}));
  }

  ordered_json &slice(size_t tensor = 0) {
    return manifest["tensors"][tensor]["slices"][0];
  }

  Status restore() {
    std::string text = manifest.dump();
    writeBytes(saved + "/manifest.json", {text.begin(), text.end()});
    return restoreCheckpoint(*session, saved);
  }

  TemporaryFolder folder;
  std::unique_ptr<TrainingSession> session;
  std::string saved;
  ordered_json manifest;
};

} // namespace

/// Safetensors and manifest say the same of each tensor.
TEST_F(ManifestTest, ListsWhatTheFileHas) {
  auto file = unwrap(SafetensorsFile::open(saved + "/state.safetensors"));
  std::vector<char> bytes = readBytes(saved + "/state.safetensors");
  ASSERT_EQ(manifest["tensors"].size(), file.tensors().size());
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor &tensor = file.tensors()[i];
    EXPECT_EQ(manifest["tensors"][i]["name"], tensor.name);
    EXPECT_EQ(manifest["tensors"][i]["shape"], tensor.shape);
    EXPECT_EQ(slice(i)["file"], "state.safetensors");
    EXPECT_EQ(slice(i)["begin"], 0);
    EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(),
                           reinterpret_cast<std::byte *>(bytes.data()) +
                               slice(i)["offset"].get<size_t>()));
  }
  EXPECT_THAT(restore(), succeeds());
}

/// A tensor may lie in several files, as those who wrote it had it.
TEST_F(ManifestTest, PutsSlicesTogether) {
  ASSERT_THAT(session->initialize(), succeeds());
  ordered_json &tensor = manifest["tensors"][0];
  auto size = tensor["dtype"] == "f32" ? 4 : 8;
  ASSERT_EQ(slice()["count"], 1) << "a scalar";
  std::vector<char> bytes = readBytes(saved + "/state.safetensors");
  size_t begin = slice()["offset"];
  writeBytes(saved + "/other",
             {bytes.begin() + begin, bytes.begin() + begin + size});
  ordered_json none = slice();
  none["count"] = 0;
  none["digest"] = "";
  slice()["file"] = "other";
  slice()["offset"] = 0;
  tensor["slices"].insert(tensor["slices"].begin(), none);
  EXPECT_THAT(restore(), succeeds());
}

/// Nothing outside of the folder, of the file or of the tensor is read.
TEST_F(ManifestTest, RefusesWhatIsNotThere) {
  struct Case {
    const char *key;
    ordered_json value;
    const char *message;
  };
  const ordered_json kMost = uint64_t(INT64_MAX);
  const Case kCases[] = {
      {"file", "../run/state.safetensors", "in no file of this folder"},
      {"file", "/etc/passwd", "in no file of this folder"},
      {"file", "..", "in no file of this folder"},
      {"file", "", "in no file of this folder"},
      {"file", std::string("a\0b", 3), "in no file of this folder"},
      {"file", 7, "file of a slice of tensor"},
      {"file", "rank-1.safetensors", "there is no '"},
      {"begin", 1, "not in its order"},
      {"begin", -1, "is no count"},
      {"begin", 0.5, "is no count"},
      {"count", kMost, "not in its order"},
      {"count", 2, "not in its order"},
      {"count", 0, "lacks 1 elements of tensor"},
      {"offset", kMost, "too few for tensor"},
      {"offset", uint64_t(INT64_MAX) + 1, "is no count"},
      {"offset", 0, "is damaged: the digest of tensor"},
      {"digest", "00", "is damaged: the digest of tensor"},
      {"digest", nullptr, "is no text"},
  };
  ordered_json before = manifest;
  for (const Case &broken : kCases) {
    manifest = before;
    slice()[broken.key] = broken.value;
    EXPECT_THAT(restore().message(), testing::HasSubstr(broken.message))
        << broken.key << " = " << broken.value;
    manifest = before;
    slice().erase(broken.key);
    EXPECT_THAT(restore(), failsWith(Code::BadData, "has no")) << broken.key;
  }
}

TEST_F(ManifestTest, RefusesTensorsThatAreNone) {
  ordered_json before = manifest;
  auto expect = [&](auto change, const char *message) {
    manifest = before;
    change(manifest["tensors"]);
    EXPECT_THAT(restore().message(), testing::HasSubstr(message));
  };
  expect([](auto &all) { all.push_back(all[0]); }, "there are two tensors '");
  expect([](auto &all) { all[0]["dtype"] = "f24"; }, "unknown dtype 'f24'");
  expect([](auto &all) { all[0]["shape"] = {INT64_MAX, INT64_MAX}; },
         "not in its order");
  expect([](auto &all) { all[0]["shape"] = {-1}; }, "has what is no count");
  expect([](auto &all) { all[0]["slices"] = 1; }, "is no list");
  expect([](auto &all) { all[0]["slices"].clear(); }, "lacks 1 elements of");
  expect([](auto &all) { all[0] = "w"; }, "is no object");
  expect([](auto &all) { all = 3; }, "tensors of it is no list");
  expect([](auto &all) { all.clear(); }, "missing: ");
}

/// What is not finite is null.
TEST_F(ManifestTest, HasWhatWasEvaluated) {
  EXPECT_FALSE(manifest.contains("evaluation"));
  session->records().evaluation = EvaluationRecord{
      3, {{"accuracy", 0.5}, {"loss", NAN}}, "accuracy", 0.75, 2, 1};
  unwrap(saveCheckpoint(*session, folder / "run"));
  auto other = open();
  ASSERT_THAT(restoreCheckpoint(*other, saved), succeeds());
  ASSERT_TRUE(other->records().evaluation);
  const EvaluationRecord &record = *other->records().evaluation;
  EXPECT_EQ(record.step, 3);
  EXPECT_EQ(record.metrics.at("accuracy"), 0.5);
  EXPECT_TRUE(std::isnan(record.metrics.at("loss")));
  EXPECT_EQ(record.best, "accuracy");
  EXPECT_EQ(record.bestValue, 0.75);
  EXPECT_EQ(record.bestStep, 2);
  EXPECT_EQ(record.waited, 1);
  std::vector<char> text = readBytes(saved + "/manifest.json");
  manifest = ordered_json::parse(text.begin(), text.end());
  manifest["evaluation"]["metrics"]["loss"] = "small";
  EXPECT_THAT(restore(),
              failsWith(Code::BadData, "loss of metrics is no number"));
  manifest["evaluation"] = 3;
  EXPECT_THAT(restore(), failsWith(Code::BadData, "evaluation is no object"));
  manifest.erase("evaluation");
  ASSERT_THAT(restore(), succeeds());
  EXPECT_FALSE(session->records().evaluation);
}

TEST_F(ManifestTest, HasTheLossesAndWhatIsLeftOut) {
  EXPECT_FALSE(manifest.contains("spikes"));
  session->records().spikes = SpikeRecord{{0.1, 1.0 / 3}, {1, 4}};
  unwrap(saveCheckpoint(*session, folder / "run"));
  auto other = open();
  int64_t number = other->batchNumber();
  ASSERT_THAT(restoreCheckpoint(*other, saved), succeeds());
  ASSERT_TRUE(other->records().spikes);
  EXPECT_EQ(other->records().spikes->losses,
            (std::vector<double>{0.1, 1.0 / 3}));
  EXPECT_EQ(other->records().spikes->leftOut, (std::vector<int64_t>{1, 4}));
  EXPECT_FALSE(other->records().data);
  // Batches that are left out are passed over.
  EXPECT_EQ(number, 0);
  EXPECT_EQ(findBatch(0, {1, 4}), 0);
  EXPECT_EQ(findBatch(1, {1, 4}), 2);
  EXPECT_EQ(findBatch(3, {1, 4}), 5);
  EXPECT_EQ(findBatch(0, {0, 1}), 2);
  std::vector<char> text = readBytes(saved + "/manifest.json");
  ordered_json good = ordered_json::parse(text.begin(), text.end());
  auto expect = [&](const char *key, ordered_json value, const char *says) {
    manifest = good;
    manifest["spikes"][key] = std::move(value);
    EXPECT_THAT(restore(), failsWith(Code::BadData, says));
  };
  expect("losses", {"small"}, "losses of spikes has what is no number");
  expect("losses", 3, "losses of spikes is no list");
  expect("left_out", {4, 1}, "what is left out does not ascend");
  expect("left_out", {1, 1}, "what is left out does not ascend");
  expect("left_out", {-1}, "left_out of spikes has what is no count");
  manifest = good;
  manifest["spikes"] = 3;
  EXPECT_THAT(restore(), failsWith(Code::BadData, "spikes is no object"));
}

/// The first of its slices may have no elements, at the end of the file.
TEST_F(ManifestTest, HasWhichSamplesBatchesMean) {
  EXPECT_FALSE(manifest.contains("data"));
  session->records().data =
      DataRecord{.order = 2, .samples = 1'000'000'000, .batches = 31};
  unwrap(saveCheckpoint(*session, folder / "run"));
  auto other = open();
  ASSERT_THAT(restoreCheckpoint(*other, saved), succeeds());
  ASSERT_TRUE(other->records().data);
  EXPECT_EQ(other->records().data->order, 2);
  EXPECT_EQ(other->records().data->samples, 1'000'000'000);
  EXPECT_EQ(other->records().data->batches, 31);
  std::vector<char> text = readBytes(saved + "/manifest.json");
  manifest = ordered_json::parse(text.begin(), text.end());
  manifest["data"].erase("batches");
  EXPECT_THAT(restore(), succeeds());
  EXPECT_EQ(session->records().data->batches, 0);
  manifest["data"]["samples"] = -1;
  EXPECT_THAT(restore(), failsWith(Code::BadData, "samples of data"));
}

TEST_F(ManifestTest, ReadsThePlaceWhereItIs) {
  size_t end = readBytes(saved + "/state.safetensors").size();
  for (ordered_json &tensor : manifest["tensors"]) {
    ordered_json none = tensor["slices"][0];
    none["count"] = 0;
    none["offset"] = end;
    tensor["slices"].insert(tensor["slices"].begin(), none);
  }
  EXPECT_THAT(restore(), succeeds());
}

TEST_F(ManifestTest, RefusesRecipesOfOtherThanText) {
  std::string deep(100'000, '['), text = manifest.dump();
  deep += std::string(100'000, ']');
  size_t at = text.find("\"recipe\":{") + 10;
  text.insert(at, "\"a\":" + deep + (text[at] == '}' ? "" : ","));
  writeBytes(saved + "/manifest.json", {text.begin(), text.end()});
  EXPECT_THAT(restoreCheckpoint(*session, saved),
              failsWith(Code::BadData, "a of recipe is no text"));
}

/// Whatever byte is another, a checkpoint restores or fails with a message, and
/// never with other values.
TEST_F(ManifestTest, SurvivesEachByteChanged) {
  std::vector<char> text = readBytes(saved + "/manifest.json");
  Variables::Snapshot snapshot = unwrap(session->variables().snapshot());
  auto bytesOf = [&] {
    std::vector<std::byte> all;
    for (size_t i = 0; i < session->variables().size(); ++i)
      all.insert(all.end(), snapshot.bytes(i).begin(), snapshot.bytes(i).end());
    return all;
  };
  std::vector<std::byte> expected = bytesOf();
  for (size_t i = 0; i < text.size(); ++i)
    for (char other : {'0', '"', '}', '\x80'}) {
      std::vector<char> changed = text;
      changed[i] = other;
      writeBytes(saved + "/manifest.json", changed);
      Status status = restoreCheckpoint(*session, saved);
      EXPECT_TRUE(status.ok() || !status.message().empty());
      ASSERT_EQ(bytesOf(), expected) << "byte " << i << " is " << other;
    }
}

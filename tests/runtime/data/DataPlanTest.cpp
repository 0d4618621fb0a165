#include "runtime/data/DataPlan.h"

#include "runtime/data/Npy.h"
#include "runtime/data/Skipped.h"
#include "tests/runtime/Fixture.h"

#include <filesystem>
#include <numeric>
#include <set>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
namespace fs = std::filesystem;

namespace {

/// Sources whose samples are numbers, each another one.
class DataPlanTest : public testing::Test {
protected:
  /// `count` numbers from `first` on.
  std::string makeSource(int64_t first, int64_t count) {
    std::string path = folder / std::to_string(first);
    fs::create_directory(path);
    std::vector<int64_t> ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    EXPECT_THAT(writeNpy(path + "/id.npy", DType::i64,
                         std::vector<int64_t>{count}, ids.data()),
                succeeds());
    return "npy:" + path;
  }

  Status open(DataPhase phase = DataPhase::train) {
    auto opened = openData(plan, phase, tensors, /*seed=*/5, nullptr);
    if (!opened.ok())
      return opened.takeStatus();
    source = std::move(*opened);
    return Status();
  }

  int64_t read(int64_t epoch, int64_t number) {
    int64_t id = -1;
    std::span<std::byte> parts[] = {std::as_writable_bytes(std::span(&id, 1))};
    EXPECT_THAT(source->read(epoch, number, parts), succeeds());
    return id;
  }

  std::vector<int64_t> readAll(int64_t epoch = 0) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < source->sampleCount(); ++i)
      ids.push_back(read(epoch, i));
    return ids;
  }

  TemporaryFolder folder;
  DataPlan plan;
  std::vector<BatchTensor> tensors = {{"id", DType::i64, {4}}};
  std::unique_ptr<SampleSource> source;
};

/// A source some of whose samples are damaged.
class Damaged final : public SampleSource {
public:
  Damaged(int64_t count, std::set<int64_t> damaged)
      : count(count), damaged(std::move(damaged)) {}
  int64_t sampleCount() const override { return count; }
  Status read(int64_t, int64_t number, SampleParts parts) const override {
    if (damaged.contains(number))
      return makeError(Code::BadData, "sample ", number, " is damaged");
    std::memcpy(parts[0].data(), &number, sizeof(number));
    return Status();
  }

private:
  int64_t count;
  std::set<int64_t> damaged;
};

TEST_F(DataPlanTest, JoinsSourcesOneAfterTheOther) {
  plan.sources = {makeSource(0, 3), makeSource(10, 2)};
  ASSERT_THAT(open(), succeeds());
  EXPECT_EQ(readAll(), (std::vector<int64_t>{0, 1, 2, 10, 11}));
}

TEST_F(DataPlanTest, TakesSharesAndAllSamplesOfASourceAsOften) {
  plan.sources = {makeSource(0, 30), makeSource(100, 10)};
  plan.weights = {1, 3};
  ASSERT_THAT(open(), succeeds());
  ASSERT_EQ(source->sampleCount(), 40);
  std::map<int64_t, int> taken;
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    std::vector<int64_t> ids = readAll(epoch);
    EXPECT_EQ(std::ranges::count_if(ids, [](int64_t id) { return id < 100; }),
              10);
    for (int64_t id : ids)
      ++taken[id];
  }
  // Two passes over the one, eighteen over the other.
  EXPECT_EQ(taken.size(), 40u);
  for (auto [id, times] : taken)
    EXPECT_EQ(times, id < 100 ? 2 : 18) << id;
  // An evaluation has all samples once.
  ASSERT_THAT(open(DataPhase::eval), succeeds());
  EXPECT_EQ(readAll().back(), 109);
}

TEST_F(DataPlanTest, DividesSamplesForGood) {
  plan.sources = {makeSource(0, 1000)};
  plan.split = 0.2;
  ASSERT_THAT(open(), succeeds());
  std::vector<int64_t> train = readAll();
  ASSERT_THAT(open(DataPhase::eval), succeeds());
  std::vector<int64_t> kept = readAll();
  EXPECT_NEAR(double(kept.size()), 200, 50);
  std::set<int64_t> all(train.begin(), train.end());
  all.insert(kept.begin(), kept.end());
  EXPECT_EQ(all.size(), 1000u);
  EXPECT_EQ(train.size() + kept.size(), 1000u);
  // More samples change nothing of where the others are.
  plan.sources = {makeSource(0, 1500)};
  ASSERT_THAT(open(DataPhase::eval), succeeds());
  std::vector<int64_t> more = readAll();
  ASSERT_GT(more.size(), kept.size());
  EXPECT_TRUE(std::ranges::equal(std::span(more).first(kept.size()), kept));
}

TEST_F(DataPlanTest, TrainsOnNoSampleThatIsKeptWhateverTheWeights) {
  plan.sources = {makeSource(0, 300), makeSource(1000, 100)};
  plan.split = 0.3;
  ASSERT_THAT(open(DataPhase::eval), succeeds());
  std::vector<int64_t> kept = readAll();
  std::set<int64_t> all(kept.begin(), kept.end());
  EXPECT_EQ(all.size(), kept.size());
  plan.weights = {1, 2};
  ASSERT_THAT(open(), succeeds());
  for (int64_t epoch = 0; epoch < 5; ++epoch)
    for (int64_t id : readAll(epoch)) {
      EXPECT_FALSE(std::ranges::count(kept, id)) << id;
      all.insert(id);
    }
  EXPECT_EQ(all.size(), 400u);
}

TEST_F(DataPlanTest, RefusesWeightsOfOtherSources) {
  plan.sources = {makeSource(0, 3), makeSource(10, 2)};
  plan.weights = {1};
  EXPECT_THAT(open(), failsWith(Code::Usage, "data.weights has 1 numbers"));
  plan.weights = {};
  plan.sources.clear();
  EXPECT_THAT(open(), failsWith(Code::Usage, "give data.source"));
}

TEST_F(DataPlanTest, PutsOthersInTheirPlace) {
  auto skipped = std::make_shared<SkippedSamples>();
  source = skipDamaged(std::make_unique<Damaged>(20, std::set<int64_t>{3, 7}),
                       /*number=*/0, skipped);
  std::vector<int64_t> ids = readAll();
  EXPECT_EQ(ids, readAll());
  EXPECT_EQ(ids[4], 4);
  EXPECT_NE(ids[3], 3);
  EXPECT_EQ(skipped->count(), 2);
  EXPECT_EQ(
      skipped->takeProblems(),
      (std::vector<std::string>{"sample 3 is damaged", "sample 7 is damaged"}));
  EXPECT_TRUE(skipped->takeProblems().empty());
}

TEST_F(DataPlanTest, GivesUpWhereAllAreDamaged) {
  auto skipped = std::make_shared<SkippedSamples>();
  source = skipDamaged(std::make_unique<Damaged>(2, std::set<int64_t>{0, 1}),
                       /*number=*/0, skipped);
  int64_t id = 0;
  std::span<std::byte> parts[] = {std::as_writable_bytes(std::span(&id, 1))};
  EXPECT_THAT(source->read(0, 0, parts),
              failsWith(Code::BadData, "are damaged, too"));
}

TEST_F(DataPlanTest, ReadsAFileRelativeToItsFolder) {
  std::string text = R"([data]
source = ["npz:a.npz", "text:/b/c.txt,d.txt"]
weights = [2, 0.5]
map = {x = "image"}
workers = "auto"
depth = 3
on_bad = "skip"
split = 0.1
[data.train]
x = ["decode", "flip"]
[data.eval]
x = "resize 3 4"
)";
  std::string path = folder / "plan.toml";
  writeBytes(path, {text.begin(), text.end()});
  ASSERT_THAT(plan.use(path), succeeds());
  EXPECT_EQ(plan.sources,
            (std::vector<std::string>{"npz:" + folder / "a.npz",
                                      "text:/b/c.txt," + folder / "d.txt"}));
  EXPECT_EQ(plan.weights, (std::vector<double>{2, 0.5}));
  EXPECT_THAT(plan.fields.at("x"), testing::ElementsAre("image"));
  EXPECT_EQ(plan.workers, std::nullopt);
  EXPECT_EQ(plan.depth, 3);
  EXPECT_TRUE(plan.skipsBad);
  EXPECT_EQ(plan.split, 0.1);
  EXPECT_EQ(plan.train.at("x"), (std::vector<std::string>{"decode", "flip"}));
  EXPECT_EQ(plan.eval.at("x"), (std::vector<std::string>{"resize 3 4"}));
  ASSERT_THAT(plan.set("on_bad", "stop"), succeeds());
  ASSERT_THAT(plan.set("train.x", "['flip 1']"), succeeds());
  EXPECT_FALSE(plan.skipsBad);
  EXPECT_EQ(plan.train.at("x"), (std::vector<std::string>{"flip 1"}));
  EXPECT_THAT(plan.set("on bad", "stop"), failsWith(Code::Usage, ""));
  EXPECT_THAT(plan.set("train.x", std::string(100'000, '[')),
              failsWith(Code::Usage, "more than 2000"));
}

} // namespace

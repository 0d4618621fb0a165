#include "runtime/package/StateDict.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using testing::ElementsAre;

static const float kValues[] = {1, 2};
static const int64_t kCount = 7;

static StoredTensor makeTensor(const char *name, size_t place = 0) {
  return {name, DType::f32, {1}, std::as_bytes(std::span(kValues + place, 1))};
}

static StoredTensor makeCounter(const char *name) {
  return {name, DType::i64, {}, std::as_bytes(std::span(&kCount, 1))};
}

static std::vector<std::string> namesOf(std::span<const StoredTensor> tensors) {
  std::vector<std::string> names;
  for (const StoredTensor &tensor : tensors)
    names.push_back(tensor.name);
  return names;
}

TEST(StateDict, ParsesAliases) {
  EXPECT_TRUE(unwrap(parseAliases("")).empty());
  Aliases aliases = unwrap(parseAliases(R"({"wte": "head", "b": "c"})"));
  EXPECT_EQ(aliases.size(), 2u);
  EXPECT_EQ(aliases.find("wte")->second, "head");
  for (const char *text : {"[]", "3", "{", R"({"a": 1})", R"({"a": "a"})"})
    EXPECT_THAT(parseAliases(text).takeStatus(),
                failsWith(Code::BadData, "tcc.aliases"))
        << text;
}

TEST(StateDict, LeavesCountersOutAndKnowsAliases) {
  Aliases aliases = {{"wte", "head"}};
  std::vector<StoredTensor> tensors = {
      makeTensor("bn.running_mean"), makeCounter("bn.num_batches_tracked"),
      makeCounter("own.num_batches_tracked"), makeTensor("wte")};
  EXPECT_THAT(
      namesOf(unwrap(readStateDict(tensors, aliases, "f"))),
      ElementsAre("bn.running_mean", "own.num_batches_tracked", "head"));
  tensors.push_back(makeTensor("head"));
  EXPECT_THAT(
      namesOf(unwrap(readStateDict(tensors, aliases, "f"))),
      ElementsAre("bn.running_mean", "own.num_batches_tracked", "head"));
  tensors.back() = makeTensor("head", 1);
  EXPECT_THAT(readStateDict(tensors, aliases, "f").takeStatus(),
              failsWith(Code::Usage, "other values of 'head'"));
}

TEST(StateDict, AddsWhatPyTorchExpects) {
  Aliases aliases = {{"wte", "head"}, {"x", "absent"}};
  std::vector<StoredTensor> tensors =
      makeStateDict({makeTensor("head"), makeTensor("bn.running_mean"),
                     makeTensor("running_mean")},
                    aliases, kCount);
  EXPECT_THAT(namesOf(tensors),
              ElementsAre("head", "bn.running_mean", "running_mean", "wte",
                          "bn.num_batches_tracked", "num_batches_tracked"));
  EXPECT_EQ(tensors[3].bytes.data(), tensors[0].bytes.data());
  EXPECT_EQ(tensors[4].dtype, DType::i64);
  EXPECT_TRUE(tensors[4].shape.empty());
}

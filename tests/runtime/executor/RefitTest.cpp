// Weights replaced from a safetensors file.

#include "runtime/package/Digest.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

namespace {

struct NamedFloats {
  std::string name;
  std::vector<float> values;
};

void writeSafetensors(const std::string &path,
                      const std::vector<NamedFloats> &tensors) {
  std::string header = "{", data;
  for (const NamedFloats &tensor : tensors) {
    size_t bytes = tensor.values.size() * sizeof(float);
    header += concat(header.size() > 1 ? "," : "", "\"", tensor.name,
                     "\":{\"dtype\":\"F32\",\"shape\":[", tensor.values.size(),
                     "],\"data_offsets\":[", data.size(), ",",
                     data.size() + bytes, "]}");
    data.append(reinterpret_cast<const char *>(tensor.values.data()), bytes);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), sizeof(length));
  file << header << data;
}

/// y = held + packed, where packed = a + b comes from prepare.
class RefitTest : public testing::Test {
protected:
  void SetUp() override {
    builder.modelTensor("held", {2}, 0);
    builder.modelTensor("a", {2});
    builder.modelTensor("b", {2});
    builder.modelTensor("alias", {2}, 0);
    builder.weight("held", {1, 1});
    builder.weight("packed", {5, 5}, {1, 2});
    uint32_t out = builder.buffer(
        StorageClass::output, builder.output("y", DType::f32, twoFloats()), 8);
    uint32_t held = builder.buffer(StorageClass::constant, 0, 8);
    uint32_t packed = builder.buffer(StorageClass::constant, 1, 8);
    builder.launch("add", {held, packed, out}, sizes(), constant(2));
    builder.inEntry(EntryKind::prepare);
    uint32_t made = builder.output("packed", DType::f32, twoFloats());
    uint32_t a = builder.buffer(StorageClass::model, 1, 8);
    uint32_t b = builder.buffer(StorageClass::model, 2, 8);
    uint32_t to = builder.buffer(StorageClass::output, made, 8);
    builder.launch("add", {a, b, to}, sizes(), constant(2));
  }
  static std::vector<Expr> twoFloats() {
    std::vector<Expr> shape;
    shape.push_back(constant(2));
    return shape;
  }
  static std::vector<Expr> sizes() {
    std::vector<Expr> list;
    list.push_back(constant(2));
    list.push_back(constant(1));
    return list;
  }

  Status load(const std::vector<NamedFloats> &tensors) {
    builder.write(folder / "m.tcc");
    writeSafetensors(folder / "w.safetensors", tensors);
    ExecutableOptions options;
    options.weightsFile = folder / "w.safetensors";
    auto loaded =
        Executable::load(unwrap(Package::open(folder / "m.tcc")), options);
    if (!loaded.ok())
      return loaded.takeStatus();
    executable = std::move(*loaded);
    return Status();
  }
  std::vector<float> run() {
    ContextOptions options;
    options.threads = 1;
    auto context = unwrap(Context::create(executable, options));
    EXPECT_THAT(context->run(), succeeds());
    return floatsOf(context->output(0));
  }

  TemporaryFolder folder;
  ProgramBuilder builder;
  std::shared_ptr<const Executable> executable;
};

} // namespace

TEST_F(RefitTest, AbsentTensorsKeepTheirValues) {
  ASSERT_THAT(load({}), succeeds());
  EXPECT_EQ(run(), (std::vector<float>{6, 6}));
  ASSERT_THAT(load({{"held", {10, 20}}}), succeeds());
  EXPECT_EQ(run(), (std::vector<float>{15, 25}));
}

TEST_F(RefitTest, ComputedConstantsAreComputedAgain) {
  ASSERT_THAT(load({{"a", {100, 200}}, {"b", {1000, 2000}}}), succeeds());
  EXPECT_EQ(run(), (std::vector<float>{1101, 2201}));
}

TEST_F(RefitTest, SourcesOfAConstantComeTogether) {
  EXPECT_THAT(load({{"a", {100, 200}}}),
              failsWith(Code::Usage, "'a' and 'b' are computed into one"));
}

TEST_F(RefitTest, RefusesUnknownNamesAndShapes) {
  EXPECT_THAT(load({{"c", {1, 2}}}), failsWith(Code::Usage, "has 'c'"));
  EXPECT_THAT(load({{"held", {1, 2, 3}}}),
              failsWith(Code::Usage, "'held' has another shape"));
}

TEST_F(RefitTest, TiedNamesMustAgree) {
  ASSERT_THAT(load({{"held", {2, 3}}, {"alias", {2, 3}}}), succeeds());
  EXPECT_EQ(run(), (std::vector<float>{7, 8}));
  EXPECT_THAT(load({{"held", {2, 3}}, {"alias", {2, 4}}}),
              failsWith(Code::Usage, "another name of the same tensor"));
}

TEST_F(RefitTest, StructuralConstantsCannotChange) {
  std::vector<float> value = {1, 1};
  auto digest = digestOf(std::as_bytes(std::span(value)));
  builder.tables.model_tensors[0]->structural_digest.assign(digest.bytes,
                                                            digest.bytes + 16);
  EXPECT_THAT(load({{"held", {1, 1}}}), succeeds());
  EXPECT_THAT(load({{"held", {1, 2}}}),
              failsWith(Code::BadData, "'held' is a structural constant"));
}

TEST_F(RefitTest, WhatThePackageLacksIsComputedOrGiven) {
  builder.tables.weights[1]->digest.clear();
  EXPECT_THAT(load({}), failsWith(Code::Usage, "lacks 'b'"));
  ASSERT_THAT(load({{"a", {1, 2}}, {"b", {1, 2}}}), succeeds());
  EXPECT_EQ(run(), (std::vector<float>{3, 5}));
  // Neither a tensor of the model nor an output of prepare.
  builder.weight("table", {1, 2});
  builder.tables.weights[2]->digest.clear();
  EXPECT_THAT(load({{"a", {1, 2}}, {"b", {1, 2}}}),
              failsWith(Code::BadData, "no value of 'table'"));
}

TEST_F(RefitTest, PackagesWithoutWeightsNeedAllOfThem) {
  builder.withWeights = false;
  EXPECT_THAT(load({{"held", {1, 2}}}), failsWith(Code::Usage, "lacks"));
  EXPECT_THAT(load({{"a", {1, 2}}, {"b", {1, 2}}}),
              failsWith(Code::Usage, "lacks 'held'"));
  ASSERT_THAT(load({{"a", {1, 2}}, {"b", {1, 2}}, {"held", {3, 3}}}),
              succeeds());
  EXPECT_EQ(run(), (std::vector<float>{5, 7}));
  EXPECT_THAT(
      Executable::load(unwrap(Package::open(folder / "m.tcc"))).takeStatus(),
      failsWith(Code::Usage, "compiled without weights"));
}

#include "runtime/data/OnnxRewrite.h"
#include "runtime/data/OnnxMessages.h"
#include "runtime/data/TensorProto.h"
#include "tests/runtime/Fixture.h"

#include <fstream>
#include <protozero/pbf_builder.hpp>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::onnx;
using namespace tcc::tests;

namespace {

std::string bytesField(auto field, const std::string &content) {
  std::string text;
  protozero::pbf_writer(text).add_bytes(uint32_t(field), content);
  return text;
}

std::string varintField(auto field, uint64_t value) {
  std::string text;
  protozero::pbf_writer(text).add_uint64(uint32_t(field), value);
  return text;
}

std::string bytesOf(std::vector<float> values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(float)};
}

/// A TensorProto of two floats but for their values.
std::string namedTensor(const std::string &name) {
  return varintField(TensorField::dims, 2) +
         varintField(TensorField::data_type, 1) +
         bytesField(TensorField::name, name);
}

std::string rawTensor(const std::string &name, std::vector<float> values) {
  return namedTensor(name) + bytesField(TensorField::raw_data, bytesOf(values));
}

std::string externalTensor(const std::string &name, const std::string &location,
                           const std::string &offset,
                           const std::string &length = "8") {
  std::string tensor = namedTensor(name);
  for (const auto &[key, value] : {std::pair("location", location),
                                   {"offset", offset},
                                   {"length", length}})
    tensor += bytesField(TensorField::external_data,
                         bytesField(EntryField::key, key) +
                             bytesField(EntryField::value, value));
  return tensor + varintField(TensorField::data_location, 1);
}

/// Fields that no rewriting knows stand around those it does.
std::string modelOf(const std::string &graph) {
  return varintField(1, 10) + bytesField(2, "producer") +
         bytesField(ModelField::graph, graph + bytesField(2, "the graph")) +
         bytesField(8, varintField(2, 18));
}

std::string initializer(const std::string &tensor) {
  return bytesField(GraphField::initializer, tensor);
}

std::string constantNode(const std::string &output, const std::string &tensor) {
  return bytesField(GraphField::node,
                    bytesField(NodeField::attribute,
                               bytesField(1, "value") +
                                   bytesField(AttributeField::t, tensor)) +
                        bytesField(NodeField::output, output) +
                        bytesField(NodeField::op_type, "Constant"));
}

class OnnxRewriteTest : public testing::Test {
protected:
  void write(const std::string &name, const std::string &bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  std::string read(const std::string &name) {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The model with 5 and 6 in the tensors of these names, in out/model.onnx.
  Status rewrite(const std::string &model, std::vector<std::string> names) {
    write("model.onnx", model);
    auto rewrite = OnnxRewrite::open(
        folder / "model.onnx",
        [&](const OnnxTensor &tensor) -> Result<std::optional<OnnxValue>> {
          if (std::ranges::find(names, tensor.name) == names.end())
            return std::optional<OnnxValue>();
          return std::optional(OnnxValue{std::as_bytes(std::span(values)), {}});
        });
    return rewrite.ok() ? rewrite->write(folder / "out/model.onnx")
                        : rewrite.takeStatus();
  }
  std::string rewritten(const std::string &model,
                        std::vector<std::string> names) {
    EXPECT_THAT(rewrite(model, std::move(names)), succeeds());
    return read("out/model.onnx");
  }

  OnnxRewriteTest() { std::filesystem::create_directory(folder / "out"); }

  TemporaryFolder folder;
  std::vector<float> values = {5, 6};
};

} // namespace

TEST_F(OnnxRewriteTest, ChangesRawBytesAlone) {
  std::string before = modelOf(initializer(rawTensor("a", {1, 2})) +
                               initializer(rawTensor("b", {3, 4})));
  EXPECT_EQ(rewritten(before, {}), before);
  EXPECT_EQ(rewritten(before, {"b"}),
            modelOf(initializer(rawTensor("a", {1, 2})) +
                    initializer(rawTensor("b", {5, 6}))));
}

TEST_F(OnnxRewriteTest, MakesTypedValuesRaw) {
  std::string typed;
  protozero::pbf_writer writer(typed);
  for (float value : {1.f, 2.f})
    writer.add_float(uint32_t(TensorField::float_data), value);
  std::string doc = bytesField(12, "doc");
  EXPECT_EQ(
      rewritten(modelOf(initializer(namedTensor("a") + typed + doc)), {"a"}),
      modelOf(initializer(rawTensor("a", {5, 6}) + doc)));
}

TEST_F(OnnxRewriteTest, ChangesConstants) {
  std::string other = constantNode("b", rawTensor("", {3, 4}));
  EXPECT_EQ(rewritten(modelOf(constantNode("a", rawTensor("", {1, 2})) + other),
                      {"a"}),
            modelOf(constantNode("a", rawTensor("", {5, 6})) + other));
}

/// Names within other graphs are not the model's.
TEST_F(OnnxRewriteTest, LeavesSubgraphs) {
  std::string inner = initializer(rawTensor("a", {1, 2}));
  std::string model = modelOf(bytesField(
      GraphField::node,
      bytesField(NodeField::attribute, bytesField(AttributeField::g, inner))));
  EXPECT_EQ(rewritten(model, {"a"}), model);
}

TEST_F(OnnxRewriteTest, WritesExternalDataAnew) {
  std::filesystem::create_directory(folder / "w");
  std::string data = bytesOf({0, 1, 2, 3, 4, 5, 6, 7});
  write("w/data", data);
  write("other", "as it is");
  std::string model = modelOf(initializer(externalTensor("a", "w/data", "8")) +
                              initializer(externalTensor("b", "w/data", "24")) +
                              initializer(externalTensor("c", "other", "0")));
  EXPECT_EQ(rewritten(model, {"b", "a"}), model);
  EXPECT_EQ(read("out/w/data"), bytesOf({0, 1, 5, 6, 4, 5, 5, 6}));
  EXPECT_EQ(read("out/other"), "as it is");
  EXPECT_EQ(read("w/data"), data);
}

TEST_F(OnnxRewriteTest, RefusesExternalData) {
  write("data", bytesOf({0, 1, 2, 3}));
  auto refuses = [&](const std::string &tensors, const std::string &says,
                     Code code = Code::BadData) {
    EXPECT_THAT(rewrite(modelOf(tensors), {"a", "b"}), failsWith(code, says));
  };
  for (const char *location : {"../data", "/data", "", "w/../../data"})
    refuses(initializer(externalTensor("a", location, "0")), "are outside");
  refuses(initializer(externalTensor("a", "none", "0")), "none", Code::Io);
  for (const char *offset : {"12", "-1", "x", "99999999999999999999"})
    refuses(initializer(externalTensor("a", "data", offset)), "a wrong offset");
  refuses(initializer(externalTensor("a", "data", "0", "4")), "expected 8");
  refuses(initializer(externalTensor("a", "data", "0")) +
              initializer(externalTensor("b", "data", "4")),
          "are another tensor's, too");
  write("model.onnx", modelOf(initializer(externalTensor("a", "data", "0"))));
  auto beside =
      OnnxRewrite::open(folder / "model.onnx", [](const OnnxTensor &) {
        return Result<std::optional<OnnxValue>>(std::nullopt);
      });
  EXPECT_THAT(unwrap(std::move(beside)).write(folder / "new.onnx"),
              failsWith(Code::Usage, "write it to another folder"));
}

TEST_F(OnnxRewriteTest, RefusesWhatIsNoModel) {
  std::string model = modelOf(initializer(rawTensor("a", {1, 2})));
  for (size_t size = 0; size < model.size(); ++size)
    if (Status status = rewrite(model.substr(0, size), {"a"}); !status.ok())
      EXPECT_THAT(status, failsWith(Code::BadData, "model.onnx"));
  EXPECT_THAT(rewrite(modelOf(initializer(namedTensor("a"))), {"a"}),
              failsWith(Code::BadData, "tensor 'a' has no data"));
  std::string graph;
  for (int i = 0; i < 200; ++i)
    graph = bytesField(
        GraphField::node,
        bytesField(NodeField::attribute, bytesField(AttributeField::g, graph)));
  EXPECT_THAT(rewrite(modelOf(graph), {}),
              failsWith(Code::BadData, "graphs within graphs"));
}

TEST_F(OnnxRewriteTest, SurvivesAnyBytes) {
  std::mt19937 random(3);
  std::string model = modelOf(initializer(rawTensor("a", {1, 2})) +
                              constantNode("b", rawTensor("", {3, 4})));
  for (int i = 0; i < 1000; ++i) {
    std::string changed = model;
    for (int k = 0; k < 3; ++k)
      changed[random() % changed.size()] = char(random());
    Status status = rewrite(changed, {"a", "b"});
    EXPECT_TRUE(status.ok() || status.code() == Code::BadData ||
                status.code() == Code::Io);
  }
}

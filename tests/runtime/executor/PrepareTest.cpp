#include "runtime/executor/Prepare.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

/// prepare: packed = a + b.
static ProgramBuilder packingProgram() {
  ProgramBuilder builder;
  builder.modelTensor("a", {2});
  builder.modelTensor("b", {2});
  builder.weight("packed", {0, 0}, {0, 1});
  builder.inEntry(EntryKind::prepare);
  std::vector<Expr> shape, sizes;
  shape.push_back(constant(2));
  sizes.push_back(constant(2));
  sizes.push_back(constant(1));
  uint32_t output = builder.output("packed", DType::f32, std::move(shape));
  uint32_t a = builder.buffer(StorageClass::model, 0, 8);
  uint32_t b = builder.buffer(StorageClass::model, 1, 8);
  uint32_t out = builder.buffer(StorageClass::output, output, 8);
  builder.launch("add", {a, b, out}, std::move(sizes), constant(2));
  return builder;
}

TEST(Prepare, ComputesConstTensors) {
  ProgramBuilder builder = packingProgram();
  // The compiler runs it before there are digests and sections.
  builder.tables.weights[0]->digest.clear();
  std::vector<float> a = {1, 2}, b = {10, 20}, packed(2);
  std::vector<const void *> models = {a.data(), b.data()};
  std::vector<void *> constants = {packed.data()};
  EXPECT_THAT(runPrepare(builder.program(), 0,
                         std::as_bytes(std::span(kernelImage())), models,
                         constants, 2),
              succeeds());
  EXPECT_EQ(packed, (std::vector<float>{11, 22}));
}

TEST(Prepare, AbsentModelTensorsAreZeros) {
  ProgramBuilder builder = packingProgram();
  std::vector<float> a = {1, 2}, packed(2);
  std::vector<const void *> models = {a.data(), nullptr};
  std::vector<void *> constants = {packed.data()};
  auto image = std::as_bytes(std::span(kernelImage()));
  EXPECT_THAT(runPrepare(builder.program(), 0, image, models, constants, 1),
              succeeds());
  EXPECT_EQ(packed, a);
  constants = {nullptr};
  EXPECT_THAT(runPrepare(builder.program(), 0, image, models, constants, 1),
              succeeds());
}

TEST(Prepare, RefusesUnknownNames) {
  ProgramBuilder builder = packingProgram();
  builder.entry(EntryKind::prepare).outputs[0]->name = "other";
  std::vector<const void *> models(2);
  std::vector<void *> constants(1);
  EXPECT_THAT(runPrepare(builder.program(), 0,
                         std::as_bytes(std::span(kernelImage())), models,
                         constants, 1),
              failsWith(Code::BadData, "'other', which is no weight"));
}

TEST(Prepare, ReadsBackWhatItDrops) {
  ProgramBuilder builder;
  auto sizes = [] {
    std::vector<Expr> list;
    list.push_back(constant(2));
    list.push_back(constant(1));
    return list;
  };
  builder.modelTensor("a", {2});
  builder.modelTensor("b", {2});
  builder.inEntry(EntryKind::prepare);
  uint32_t buffers[3];
  for (const char *name : {"first", "second", "packed"}) {
    uint32_t index = builder.weight(name, {0, 0}, {0, 1});
    std::vector<Expr> shape;
    shape.push_back(constant(2));
    buffers[index] =
        builder.buffer(StorageClass::output,
                       builder.output(name, DType::f32, std::move(shape)), 8);
  }
  uint32_t a = builder.buffer(StorageClass::model, 0, 8);
  uint32_t b = builder.buffer(StorageClass::model, 1, 8);
  builder.launch("add_one", {a, buffers[0]}, sizes(), constant(2));
  builder.launch("add_one", {b, buffers[1]}, sizes(), constant(2));
  builder.launch("add", {buffers[0], buffers[1], buffers[2]}, sizes(),
                 constant(2));
  std::vector<float> first = {1, 2}, second = {10, 20}, packed(2);
  std::vector<const void *> models = {first.data(), second.data()};
  std::vector<void *> constants = {nullptr, nullptr, packed.data()};
  EXPECT_THAT(runPrepare(builder.program(), 0,
                         std::as_bytes(std::span(kernelImage())), models,
                         constants, 1),
              succeeds());
  EXPECT_EQ(packed, (std::vector<float>{13, 24}));
}

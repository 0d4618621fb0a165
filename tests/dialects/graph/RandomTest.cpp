#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/Evaluator.h"

#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tcc;
using testing::ElementsAre;

namespace {

using Words = std::array<uint32_t, 4>;

/// Philox4x32-10 as its paper has it.
Words philox(Words x, uint64_t seed) {
  uint32_t low = uint32_t(seed), high = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(x[0]) * 0xD2511F53;
    uint64_t second = uint64_t(x[2]) * 0xCD9E8D57;
    x = {uint32_t(second >> 32) ^ x[1] ^ low, uint32_t(second),
         uint32_t(first >> 32) ^ x[3] ^ high, uint32_t(first)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return x;
}

double toDouble(uint32_t high, uint32_t low) {
  return double(((uint64_t(high) << 32) | low) >> 11) * 0x1p-53;
}

/// All elements of the tensor of `type`.
std::vector<double> evaluate(const char *kind, const char *type, int64_t seed,
                             int64_t step, int64_t key) {
  MLIRContext context;
  DialectRegistry registry;
  registry.insert<func::FuncDialect, graph::GraphDialect>();
  registerEvaluatorDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  std::string source =
      std::string("func.func @f(%seed: tensor<i64>, %step: tensor<i64>) -> ") +
      type + "{\n%0 = graph.random <" + kind +
      "> %seed, %step {key = " + std::to_string(key) +
      " : i64} : (tensor<i64>, tensor<i64>) -> " + type +
      "\nreturn %0 : " + type + "\n}";
  auto module = parseSourceString<ModuleOp>(source, &context);
  auto scalar = RankedTensorType::get({}, IntegerType::get(&context, 64));
  HostTensor inputs[] = {{scalar, {Scalar{.i = seed}}},
                         {scalar, {Scalar{.i = step}}}};
  auto function = *module->getOps<func::FuncOp>().begin();
  auto results = Evaluator().evaluate(function, inputs);
  if (!results) {
    ADD_FAILURE() << toString(results.takeError());
    return {};
  }
  std::vector<double> values;
  for (Scalar element : results->front().elements)
    values.push_back(element.f);
  return values;
}

TEST(RandomTest, TheReferenceHasThePublishedWords) {
  EXPECT_THAT(philox({0, 0, 0, 0}, 0),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                     0x299f31d0a4093822),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(RandomTest, UniformNumbersAreTheHighBits) {
  int64_t seed = 0x123456789abcdef0, step = 41;
  auto wide = evaluate("uniform", "tensor<3x5xf64>", seed, step, 7);
  auto narrow = evaluate("uniform", "tensor<3x5xf32>", seed, step, 7);
  ASSERT_EQ(wide.size(), 15u);
  for (uint32_t i = 0; i < 15; ++i) {
    Words words = philox({i, 0, 41, 7}, seed);
    EXPECT_EQ(wide[i], toDouble(words[0], words[1]));
    EXPECT_EQ(narrow[i], double(words[0] >> 8) * 0x1p-24);
  }
}

TEST(RandomTest, NormalNumbersAreBoxAndMullers) {
  auto values = evaluate("normal", "tensor<2000xf64>", -1, 0, 3);
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < values.size(); ++i) {
    Words words = philox({i, 0, 0, 3}, uint64_t(-1));
    double radius = std::sqrt(-2 * std::log(1 - toDouble(words[0], words[1])));
    double angle = 2 * std::numbers::pi * toDouble(words[2], words[3]);
    EXPECT_NEAR(values[i], radius * std::cos(angle), 1e-12);
    sum += values[i];
    squares += values[i] * values[i];
  }
  EXPECT_NEAR(sum / values.size(), 0, 0.1);
  EXPECT_NEAR(squares / values.size(), 1, 0.1);
}

} // namespace

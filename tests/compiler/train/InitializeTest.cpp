#include "compiler/train/Initialize.h"
#include "tests/compiler/train/Fixture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace tcc;
using namespace tcc::train;

namespace {

/// The first value of a parameter of f64.
Values initialize(const std::string &rule, std::vector<int64_t> shape,
                  ParameterTraits traits = {"fc.weight"}) {
  Recipe recipe = parseRecipe(
      "loss.kind = 'mse'\noptimizer.kind = 'sgd'\nseed = 3\n" + rule);
  Problems problems;
  traits.rank = int64_t(shape.size());
  Initial initial = makeInitial(recipe, traits, problems);
  if (!initial)
    return {};
  MLIRContext context;
  DialectRegistry registry;
  registry.insert<func::FuncDialect, graph::GraphDialect>();
  registerEvaluatorDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  VariableTable table;
  table.declare({"w", graph::VariableKind::parameter,
                 RankedTensorType::get(shape, Float64Type::get(&context)),
                 initial});
  StepFunction init(*module, format::EntryKind::init, table);
  init.write("w",
             initial(init.getBuilder(), init.getLoc(), table.get("w").type));
  init.finish();
  auto results =
      Evaluator().evaluate(module->lookupSymbol<func::FuncOp>("init"), {});
  if (!results) {
    ADD_FAILURE() << toString(results.takeError());
    return {};
  }
  Values values;
  for (Scalar element : results->front().elements)
    values.push_back(element.f);
  return values;
}

/// Checks mean and variance, and that no value is beyond `bound`.
void expectMoments(const Values &values, double mean, double variance,
                   double bound) {
  double sum = 0, squares = 0;
  for (double value : values) {
    EXPECT_LE(std::abs(value), bound);
    sum += value;
    squares += (value - mean) * (value - mean);
  }
  double n = double(values.size());
  EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n, variance, 0.1 * variance);
}

TEST(InitializeTest, DrawsAsTorchDoes) {
  // Kaiming: 6 / fan_in; Xavier: 6 / (fan_in + fan_out).
  double kaiming = std::sqrt(6.0 / (30 * 9)), xavier = std::sqrt(6.0 / 120);
  expectMoments(initialize("init.'*' = 'kaiming'", {40, 30, 3, 3}), 0,
                kaiming * kaiming / 3, kaiming);
  expectMoments(initialize("init.'*' = 'xavier'", {40, 80}), 0,
                xavier * xavier / 3, xavier);
  expectMoments(initialize("init.'*' = 'normal'", {40, 80}), 0, 1, 10);
  expectMoments(initialize("init.'*' = 'uniform'", {40, 80}), 0.5, 1.0 / 12, 1);
}

TEST(InitializeTest, NamesAndSeedDecide) {
  const char *rule = "init.'*' = 'normal'";
  EXPECT_EQ(initialize(rule, {9}), initialize(rule, {9}));
  EXPECT_NE(initialize(rule, {9}), initialize(rule, {9}, {"fc.bias"}));
}

TEST(InitializeTest, ReinitChoosesByKind) {
  const char *rule = "params.reinit = '*'";
  EXPECT_THAT(initialize(rule, {2}, {"b", 1, false, true}),
              testing::ElementsAre(0, 0));
  EXPECT_THAT(initialize(rule, {2}, {"n", 1, true, false}),
              testing::ElementsAre(1, 1));
  // The first match wins, and [init] comes first.
  EXPECT_THAT(initialize("params.reinit = '*'\n[init]\n'fc*' = 'zeros'\n"
                         "'*' = 'ones'",
                         {1, 2}),
              testing::ElementsAre(0, 0));
  EXPECT_TRUE(initialize("", {2}).empty());
}

TEST(InitializeTest, RefusesFansOfVectors) {
  Recipe recipe = parseRecipe("loss.kind = 'mse'\noptimizer.kind = 'sgd'\n"
                              "init.'*' = 'xavier'");
  Problems problems;
  EXPECT_FALSE(makeInitial(recipe, {"fc.bias", 1}, problems));
  EXPECT_EQ(problems.getExitCode(), 3);
}

} // namespace

#include "tests/compiler/train/Fixture.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <fstream>

using namespace tcc::train;
using testing::ElementsAre;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

nlohmann::json readFixture(const std::string &name) {
  std::ifstream file(std::string(TCC_TRAIN_FIXTURES) + "/" + name);
  return nlohmann::json::parse(file);
}

void expectNear(double value, double expected, double tolerance) {
  EXPECT_NEAR(value, expected, tolerance * (1e-3 + std::abs(expected)));
}

UpdateProgram makeProgram(const std::string &recipe) {
  return UpdateProgram("loss.kind = 'mse'\nprecision.compute = 'f64'\n" +
                           recipe,
                       {{{"w"}, {2}, {1, -2}}, {{"b"}, {}, {0.5}}});
}

constexpr const char *kSgd = "optimizer = {kind = 'sgd', lr = 0.5}\n";

TEST(UpdateTest, SchedulesAreThoseOfPyTorch) {
  for (const auto &test : readFixture("schedules.json")) {
    std::string recipe = test["recipe"];
    SCOPED_TRACE(recipe);
    UpdateProgram program("precision.compute = 'f64'\n" + recipe,
                          {{{"w"}, {1}, {0}}});
    double buffer = 0;
    for (size_t i = 0; i < test["lr"].size(); ++i) {
      program.apply({{1}});
      EXPECT_NEAR(program.getMetric("lr"), test["lr"][i], 1e-12);
      // The buffer tells the momentum.
      buffer = double(test["momentum"][i]) * buffer + 1;
      EXPECT_NEAR(program.get("momentum_buffer/w")[0], buffer, 1e-12);
    }
  }
}

/// Compares with what torch.optim makes of the same gradients.
void compareUpdates(const std::string &name, double tolerance) {
  nlohmann::json fixture = readFixture(name);
  for (const auto &test : fixture["cases"]) {
    std::string recipe = test["recipe"];
    SCOPED_TRACE(recipe);
    UpdateProgram program("precision.compute = 'f64'\n" + recipe,
                          {{{"fc.weight"}, {2, 3}, fixture["parameters"][0]},
                           {{"fc.bias"}, {3}, fixture["parameters"][1]}});
    for (size_t i = 0; i < fixture["gradients"].size(); ++i) {
      program.apply(fixture["gradients"][i]);
      expectNear(program.getMetric("grad_norm"), test["norms"][i], 1e-15);
    }
    auto compare = [&](const std::string &prefix, const Values &expected) {
      Values values = program.get(prefix + "fc.weight");
      llvm::append_range(values, program.get(prefix + "fc.bias"));
      for (auto [value, wanted] : llvm::zip_equal(values, expected))
        expectNear(value, wanted, tolerance);
    };
    compare("", test["values"]);
    if (test.contains("ema")) {
      compare("ema/", test["ema"]);
      EXPECT_EQ(program.describe("ema/fc.bias").kind,
                tcc::format::VariableKind::ema);
    }
  }
}

TEST(UpdateTest, UpdatesAreThoseOfPyTorch) {
  compareUpdates("updates.json", 4e-15);
  // RMSprop's steps are large beside what they leave of some parameters.
  compareUpdates("more-updates.json", 1e-14);
}

TEST(UpdateTest, ScalesByTheTargetsThatCount) {
  UpdateProgram program = makeProgram(kSgd);
  // Half of the nominal targets: gradients count twice.
  program.apply({{1, 0}, {2}}, 2, 6);
  EXPECT_EQ(program.getMetric("loss"), 3);
  EXPECT_EQ(program.getMetric("grad_norm"), 2 * std::sqrt(5.0));
  EXPECT_THAT(program.get("w"), ElementsAre(0, -2));
  EXPECT_THAT(program.get("b"), ElementsAre(-1.5));
}

TEST(UpdateTest, ANonFiniteGradientStopsUntilItIsCleared) {
  UpdateProgram program = makeProgram(kSgd);
  program.apply({{kInfinity, 0}, {1}});
  EXPECT_EQ(program.getMetric("skipped"), 1);
  EXPECT_THAT(program.get("step/fault"), ElementsAre(1));
  program.apply({{1, 1}, {1}});
  EXPECT_EQ(program.getMetric("skipped"), 1);
  EXPECT_THAT(program.get("w"), ElementsAre(1, -2));
  EXPECT_THAT(program.get("step/iteration"), ElementsAre(1));
  EXPECT_THAT(program.get("step/updates"), ElementsAre(0));
  program.set("step/fault", {0});
  program.apply({{1, 1}, {1}});
  EXPECT_EQ(program.getMetric("skipped"), 0);
  EXPECT_THAT(program.get("w"), ElementsAre(0.5, -2.5));
}

TEST(UpdateTest, ANonFiniteGradientOrLossIsSkipped) {
  UpdateProgram program = makeProgram(
      "optimizer.kind = 'adam'\nnumerics.on_nan = 'skip'\nparams.ema = 0.5");
  program.apply({{1, 1}, {NAN}});
  program.apply({{1, 1}, {1}}, 4, NAN);
  EXPECT_EQ(program.getMetric("skipped"), 1);
  EXPECT_THAT(program.get("step/fault"), ElementsAre(0));
  EXPECT_THAT(program.get("exp_avg/w"), ElementsAre(0, 0));
  EXPECT_THAT(program.get("ema/w"), ElementsAre(1, -2));
  program.apply({{1, 1}, {1}});
  EXPECT_EQ(program.getMetric("skipped"), 0);
  // The first update that was applied: bias correction starts with it.
  EXPECT_NEAR(program.get("w")[0], 1 - 1e-3, 1e-10);
}

TEST(UpdateTest, WithoutTargetsAStepIsSkippedButNoFault) {
  UpdateProgram program = makeProgram(kSgd);
  program.apply({{0, 0}, {0}}, 0, 0);
  EXPECT_EQ(program.getMetric("skipped"), 1);
  EXPECT_THAT(program.get("step/fault"), ElementsAre(0));
  EXPECT_THAT(program.get("w"), ElementsAre(1, -2));
}

TEST(UpdateTest, ASkippedStepHoldsTheSchedule) {
  for (bool holds : {false, true}) {
    UpdateProgram program = makeProgram(
        std::string("numerics.on_nan = 'skip'\n[schedule]\nkind = 'step'\n"
                    "step_size = 1\non_skip = '") +
        (holds ? "hold" : "advance") + "'\n[optimizer]\nkind = 'sgd'\nlr = 1");
    program.apply({{NAN, 0}, {0}});
    program.apply({{1, 0}, {0}});
    EXPECT_DOUBLE_EQ(program.getMetric("lr"), holds ? 1 : 0.1);
  }
}

TEST(UpdateTest, SettingsAreRead) {
  UpdateProgram program = makeProgram(kSgd);
  program.set("set/lr", {2});
  program.set("set/clip_norm", {1});
  program.apply({{0, 0}, {1e9}});
  EXPECT_NEAR(program.get("b")[0], 0.5 - 2, 1e-14);
  program.set("set/schedule.kind", {double(int(ScheduleKind::Linear))});
  program.set("set/schedule.total_steps", {2});
  program.apply({{0, 0}, {0}});
  EXPECT_EQ(program.getMetric("lr"), 1);
  EXPECT_EQ(program.describeSetting("on_nan"),
            "<key = \"on_nan\", words = [\"stop\", \"skip\"], "
            "initial = dense<0> : tensor<i64>>");
  EXPECT_EQ(program.describeSetting("schedule.three_phase"),
            "<key = \"schedule.three_phase\", words = [\"false\", \"true\"], "
            "initial = dense<0> : tensor<i64>>");
  EXPECT_EQ(program.describeSetting("lr"),
            "<key = \"lr\", range = <min = 0.000000e+00 : f64, max = "
            "0x7FF0000000000000 : f64, opensAtMin = false, opensAtMax = true>, "
            "initial = dense<5.000000e-01> : tensor<f64>>");
  EXPECT_FALSE(program.has("set/betas"));
  EXPECT_FALSE(program.has("set/momentum"));
}

TEST(UpdateTest, TheScaleGrowsByNoMoreThanFloatsHold) {
  UpdateProgram program =
      makeProgram(std::string(kSgd) + "precision.loss_scale = 'dynamic'");
  EXPECT_THAT(program.describeSetting("loss_scale"),
              testing::HasSubstr("words = [\"dynamic\"]"));
  program.set("step/loss_scale", {0x1p126});
  for (double expected : {0x1p127, 0x1p127}) {
    program.set("step/growth_count", {1999});
    program.apply({{0, 0}, {0}});
    EXPECT_THAT(program.get("step/loss_scale"), ElementsAre(expected));
    EXPECT_THAT(program.get("step/growth_count"), ElementsAre(0));
  }
}

TEST(UpdateTest, ADynamicScaleIsForGradientsNotForTheLoss) {
  UpdateProgram program =
      makeProgram(std::string(kSgd) + "precision.loss_scale = 'dynamic'");
  program.apply({{kInfinity, 0}, {1}});
  EXPECT_EQ(program.getMetric("skipped"), 1);
  EXPECT_THAT(program.get("step/fault"), ElementsAre(0));
  program.apply({{0x1p15, 0}, {1}});
  EXPECT_EQ(program.getMetric("loss_scale"), 0x1p15);
  EXPECT_THAT(program.get("w"), ElementsAre(0.5, -2));
  // Without targets there is nothing to learn from.
  program.apply({{NAN, 0}, {1}}, 0, 0);
  EXPECT_THAT(program.get("step/loss_scale"), ElementsAre(0x1p15));
  EXPECT_THAT(program.get("step/growth_count"), ElementsAre(1));
  program.apply({{1, 0}, {1}}, 4, NAN);
  EXPECT_THAT(program.get("step/fault"), ElementsAre(1));
  program.apply({{kInfinity, 0}, {1}});
  EXPECT_THAT(program.get("step/loss_scale"), ElementsAre(0x1p15));
}

TEST(UpdateTest, LargeFloatsHaveANorm) {
  UpdateProgram program("loss.kind = 'mse'\nbatch.clip_norm = 1.0\n" +
                            std::string(kSgd),
                        {{{"w"}, {2}, {1, 1}}});
  program.apply({{1e30f, 0}});
  EXPECT_EQ(program.getMetric("skipped"), 0);
  EXPECT_THAT(program.get("w"), ElementsAre(0.5, 1));
}

} // namespace

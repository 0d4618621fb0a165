// Training through the public API's C++ layer.

#include "tcc/runtime.hpp"

#include "tests/runtime/train/LineProgram.h"

using namespace tcc;

TEST(TrainSession, IsThereInTheApi) {
  tests::TemporaryFolder folder;
  std::string path = folder / "line.tcc";
  tests::lineProgram().write(path);
  std::vector<float> x = {0.5f, -1, 1.5f, 0.25f}, y = {1, 2, 3, 4};
  Program program(Package::open(path));
  EXPECT_STREQ(program.output(0).name, "line");
  TrainSession api(program, {.threads = 1});
  api.bind("x", x.data());
  api.bind("y", y.data());
  int64_t called = 0;
  api.setCallback([&](const StepMetrics &metrics) { called = metrics.step; });
  EXPECT_EQ(api.step().step, 1);
  EXPECT_EQ(called, 1);
  api.accumulate();
  EXPECT_EQ(api.apply().step, 2);
  Evaluation sum = {};
  api.evaluate(sum);
  EXPECT_EQ(sum.correct, -1);
  api.predict();
  EXPECT_EQ(api.output(0).size(), 4u);

  EXPECT_EQ(api.variable(0).kind, TCC_PARAMETER);
  EXPECT_STREQ(api.variable(1).parameter, "w");
  api.write<float>("w", {2});
  api.save(folder / "api");
  api.write<float>("w", {4});
  EXPECT_EQ(api.read<float>("w"), std::vector<float>{4});
  api.restore(folder / "api");
  EXPECT_EQ(api.read<float>("w"), std::vector<float>{2});
  EXPECT_THROW(api.read<double>("w"), Error);
  EXPECT_THROW(api.bind("z", x.data()), Error);
}

TEST(TrainSession, HasSettings) {
  tests::TemporaryFolder folder;
  tests::ProgramBuilder builder = tests::lineProgram();
  builder.setting("betas",
                  builder.variable("set/betas", runtime::DType::f64, {2},
                                   format::VariableKind::setting));
  builder.setting("flag", builder.variable("set/flag", runtime::DType::i64, {},
                                           format::VariableKind::setting));
  builder.tables.settings.back()->range = nullptr;
  builder.tables.settings.back()->words = {"false", "true"};
  builder.write(folder / "line.tcc");
  Program program(Package::open(folder / "line.tcc"));
  TrainSession api(program, {.threads = 1});
  ASSERT_EQ(api.settingCount(), 4u);
  tcc_setting rate = api.setting(0);
  EXPECT_STREQ(rate.key, "lr");
  EXPECT_EQ(rate.dtype, TCC_F32);
  EXPECT_EQ(rate.count, 1u);
  EXPECT_TRUE(rate.is_number && !rate.opens_at_min && rate.opens_at_max);
  EXPECT_EQ(rate.word_count, 0u);
  EXPECT_EQ(tcc_session_setting_word(api.get(), 0, 0), nullptr);
  EXPECT_STREQ(api.variable(rate.variable).name, "set/lr");
  api.set("lr", 0.25);
  EXPECT_EQ(api.read<float>("set/lr"), std::vector<float>{0.25f});
  api.set("l?", "0.5");
  EXPECT_EQ(api.read<float>("set/lr"), std::vector<float>{0.5f});
  api.set("betas", {0.5, 0.75});
  EXPECT_EQ(api.read<double>("set/betas"), (std::vector<double>{0.5, 0.75}));
  api.set("flag", true);
  EXPECT_EQ(api.read<int64_t>("set/flag"), std::vector<int64_t>{1});
  api.set("flag", false);
  EXPECT_EQ(api.read<int64_t>("set/flag"), std::vector<int64_t>{0});
  api.set("flag", "true");
  EXPECT_EQ(api.read<int64_t>("set/flag"), std::vector<int64_t>{1});
  EXPECT_THROW(api.set("lr", -1), Error);
  EXPECT_THROW(api.set("lr", true), Error);
  EXPECT_THROW(api.setting(4), Error);
}

TEST(TrainSession, SavesBesideSteps) {
  tests::TemporaryFolder folder;
  tests::lineProgram().write(folder / "line.tcc");
  Program program(Package::open(folder / "line.tcc"));
  TrainSession api(program, {.threads = 1});
  std::vector<float> x = {0.5f, -1, 1.5f, 0.25f}, y = {1, 2, 3, 4};
  api.bind("x", x.data());
  api.bind("y", y.data());
  std::string run = folder / "run";
  EXPECT_EQ(api.wait(), "");
  EXPECT_EQ(api.restoreLatest(run), "");
  std::vector<float> saved;
  for (int step = 1; step <= 3; ++step) {
    api.step();
    api.saveAsync(run, /*keepLast=*/2);
    saved = api.read<float>("w");
  }
  api.write<float>("w", {9});
  EXPECT_EQ(api.wait(), run + "/step-3");
  EXPECT_EQ(api.wait(), "");
  EXPECT_FALSE(std::filesystem::exists(run + "/step-1"));
  EXPECT_EQ(api.restoreLatest(run), run + "/step-3");
  EXPECT_EQ(api.read<float>("w"), saved);

  // Older ones stand in for one that is not whole.
  std::filesystem::resize_file(run + "/step-3/state.safetensors", 10);
  tcc_restored restored = {};
  tcc_status status =
      tcc_session_restore_latest(api.get(), run.c_str(), &restored);
  EXPECT_EQ(status, nullptr);
  EXPECT_EQ(restored.path, run + "/step-2");
  EXPECT_THAT(restored.passed_over, testing::HasSubstr("step-3"));
  EXPECT_EQ(api.step().step, 3);
}

TEST(TrainSession, SaysWhatBecameOfASave) {
  tests::TemporaryFolder folder;
  tests::lineProgram().write(folder / "line.tcc");
  Program program(Package::open(folder / "line.tcc"));
  TrainSession api(program, {.threads = 1}), other(program, {.threads = 1});
  std::string run = folder / "run";
  api.saveAsync(run);
  api.wait();
  // The folder is one session's; a file is no folder.
  EXPECT_THROW(other.saveAsync(run), Error);
  EXPECT_THROW(other.saveAsync(folder / "line.tcc"), Error);
  api.saveAsync(folder / "elsewhere");
  other.saveAsync(run);
  EXPECT_EQ(other.wait(), run + "/step-0");
  std::filesystem::resize_file(run + "/step-0/manifest.json", 10);
  EXPECT_THROW(other.restoreLatest(run), Error);
}

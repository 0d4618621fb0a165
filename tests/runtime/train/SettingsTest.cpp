#include "runtime/train/Settings.h"

#include "runtime/devices/cpu/CpuDevice.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// Settings of each type.
class SettingsTest : public testing::Test {
protected:
  void SetUp() override {
    declare("lr", DType::f64, {});
    declare("betas", DType::f64, {2}).range =
        std::make_unique<format::Range>(0, 1, false, true);
    declare("steps", DType::i64, {}).range =
        std::make_unique<format::Range>(1, HUGE_VAL, false, true);
    format::SettingT &kind = declare("schedule.kind", DType::i64, {});
    kind.words = {"constant", "cosine"};
    kind.range = nullptr;
    format::SettingT &scale = declare("loss_scale", DType::f64, {});
    scale.words = {"dynamic"};
    scale.range = std::make_unique<format::Range>(0, HUGE_VAL, true, true);
    declare("schedule.warmup_steps", DType::i64, {});
    declare("schedule.total_steps", DType::i64, {}).range =
        std::make_unique<format::Range>(1, HUGE_VAL, false, true);
    declare("dropout.a", DType::f64, {});
    declare("dropout.b", DType::f32, {});
    bytes = builder.program();
    const format::Program &program = *format::GetProgram(bytes.data());
    variables.emplace(
        unwrap(Variables::allocate(program, device, systemAllocator())));
    settings.emplace(program, *variables);
  }

  format::SettingT &declare(const std::string &key, DType dtype,
                            std::vector<int64_t> shape) {
    builder.setting(key, builder.variable("set/" + key, dtype, shape));
    return *builder.tables.settings.back();
  }
  double get(const std::string &key) { return unwrap(settings->get(key)); }
  Status setNumbers(const std::string &key, std::vector<double> numbers) {
    return settings->set(key, std::span<const double>(numbers));
  }

  ProgramBuilder builder;
  std::vector<std::byte> bytes;
  CpuDevice device{{}};
  std::optional<Variables> variables;
  std::optional<Settings> settings;
};

} // namespace

TEST_F(SettingsTest, TakeTextAndNumbers) {
  ASSERT_THAT(settings->set("lr", "0.5"), succeeds());
  EXPECT_EQ(get("lr"), 0.5);
  ASSERT_THAT(setNumbers("lr", {0.25}), succeeds());
  EXPECT_EQ(get("lr"), 0.25);
  ASSERT_THAT(settings->set("betas", "0.5,0.75"), succeeds());
  EXPECT_EQ(get("betas"), 0.5);
  ASSERT_THAT(setNumbers("steps", {7}), succeeds());
  EXPECT_EQ(get("steps"), 7);
  ASSERT_THAT(settings->set("schedule.kind", "cosine"), succeeds());
  EXPECT_EQ(get("schedule.kind"), 1);
  ASSERT_THAT(settings->set("loss_scale", "8"), succeeds());
  EXPECT_EQ(get("loss_scale"), 8);
  ASSERT_THAT(settings->set("loss_scale", "dynamic"), succeeds());
  EXPECT_EQ(get("loss_scale"), 0);
}

/// Setting the text again changes nothing.
TEST_F(SettingsTest, AreText) {
  auto text = [&](const std::string &key) {
    return unwrap(settings->text(*settings->find(key)));
  };
  for (auto [key, value] :
       std::map<std::string, std::string>{{"lr", "0.1"},
                                          {"betas", "0.9,0.95"},
                                          {"steps", "1000000"},
                                          {"schedule.kind", "cosine"},
                                          {"loss_scale", "65536"},
                                          {"dropout.b", "0.1"}}) {
    ASSERT_THAT(settings->set(key, value), succeeds());
    EXPECT_EQ(text(key), value);
  }
  ASSERT_THAT(settings->set("loss_scale", "dynamic"), succeeds());
  EXPECT_EQ(text("loss_scale"), "dynamic");
  EXPECT_EQ(text("schedule.total_steps"), ""); // 0, out of its range
}

TEST_F(SettingsTest, APatternSetsAllOrNothing) {
  ASSERT_THAT(settings->set("dropout.*", "0.5"), succeeds());
  EXPECT_EQ(get("dropout.a"), 0.5);
  EXPECT_EQ(get("dropout.b"), 0.5);
  EXPECT_THAT(settings->set("*", "0.75"), failsWith(Code::Usage, "expected"));
  EXPECT_EQ(get("dropout.a"), 0.5);
}

TEST_F(SettingsTest, SayWhatIsExpected) {
  auto expect = [&](const char *key, const char *text, const char *message) {
    EXPECT_THAT(settings->set(key, text), failsWith(Code::Usage, message));
  };
  expect("lr", "fast", "'lr=fast': expected a number (f64) in [0,inf)");
  expect("lr", "nan", "expected a number");
  expect("lr", "", "expected a number");
  expect("lr", "0.5,", "expected a number");
  expect("betas", "0.5", "expected 2 numbers (f64) with commas between them");
  expect("betas", "0.5,1", "in [0,1)");
  expect("betas", "0.5,", "expected 2 numbers");
  expect("betas", "0.5,0.5,", "expected 2 numbers");
  expect("betas", "0.5,0.5,0.5", "expected 2 numbers");
  expect("steps", "1.5", "a number (i64) in [1,inf)");
  expect("schedule.kind", "1", "expected one of: constant cosine");
  expect("loss_scale", "static", ", or dynamic");
  expect("lt", "1", "did you mean 'lr'?");
  expect("unheard", "1", "these do: lr, betas, steps");
  EXPECT_THAT(setNumbers("steps", {1.5}), failsWith(Code::Usage, "'steps': "));
  EXPECT_THAT(setNumbers("schedule.kind", {1}),
              failsWith(Code::Usage, "expected one of"));
  EXPECT_THAT(setNumbers("betas", {0.5}), failsWith(Code::Usage, "2 numbers"));
}

TEST_F(SettingsTest, GoTogetherAsInARecipe) {
  ASSERT_THAT(settings->check(), succeeds());
  ASSERT_THAT(settings->set("schedule.kind", "cosine"), succeeds());
  EXPECT_THAT(settings->check(),
              failsWith(Code::Usage, "schedule.kind = 'cosine' needs "
                                     "schedule.total_steps"));
  ASSERT_THAT(settings->set("schedule.total_steps", "9"), succeeds());
  EXPECT_THAT(settings->check(), succeeds());
  ASSERT_THAT(settings->set("schedule.warmup_steps", "9"), succeeds());
  EXPECT_THAT(settings->check(),
              failsWith(Code::Usage, "schedule.warmup_steps is 9, expected "
                                     "less than the 9 steps in total"));
  ASSERT_THAT(settings->set("schedule.warmup_steps", "9223372036854775807"),
              succeeds());
  EXPECT_THAT(settings->check(), failsWith(Code::Usage, "9223372036854775807"));
  // A constant rate has no end.
  ASSERT_THAT(settings->set("schedule.kind", "constant"), succeeds());
  EXPECT_THAT(settings->check(), succeeds());
}

// Of several plans of a kernel the one that was measured to be the fastest
// runs.

#include "runtime/base/CpuFeatures.h"
#include "runtime/package/Verify.h"
#include "tests/runtime/Fixture.h"

#include <functional>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

constexpr char kWork[] = "0123", kOwn[] = "{own}", kOther[] = "{other}";

/// A launch of `own`, for which `other` is a candidate: they add 1 or 2 to rows
/// of 4 floats.
ProgramBuilder makePlans(const std::string &own, const std::string &other) {
  ProgramBuilder builder = addOneProgram();
  format::LaunchT first = *builder.block().commands[0]->action.AsLaunch();
  builder.block().commands.clear();
  builder.tables.kernels.clear();
  builder.tables.variants[0]->kernel_offsets.clear();
  auto launch = [&](const std::string &kernel) -> format::LaunchT & {
    format::LaunchT copy = first;
    return builder.launch(kernel, copy.buffers, std::move(copy.sizes), slot(0));
  };
  launch(other);
  builder.block().commands.clear();
  auto candidate = std::make_unique<format::CandidateT>();
  candidate->kernel = 0;
  candidate->tasks = slot(0);
  launch(own).candidates.push_back(std::move(candidate));
  const char *plans[] = {kOther, kOwn};
  for (size_t i = 0; i < std::size(plans); ++i) {
    builder.tables.kernels[i]->work = kWork;
    builder.tables.kernels[i]->plan = plans[i];
  }
  return builder;
}

std::unique_ptr<Context> load(ProgramBuilder &builder,
                              const std::string &tuneCache = "") {
  TemporaryFolder folder;
  builder.write(folder / "m.tcc");
  ExecutableOptions options;
  options.tuneCache = tuneCache;
  ContextOptions own;
  own.threads = 1;
  return unwrap(
      Context::create(loadExecutable(folder / "m.tcc", options), own));
}

/// What is added to so many rows.
float runRows(Context &context, int64_t rows) {
  std::vector<float> x(rows * 4, 10);
  EXPECT_THAT(bind(context, 0, x, {rows, 4}), succeeds());
  EXPECT_THAT(context.run(), succeeds());
  return floatsOf(context.output(0)).back() - 10;
}

std::vector<Measurement> tune(Context &context) {
  std::vector<Measurement> measured;
  Stream &stream = context.walker().getStream();
  EXPECT_THAT(stream.tune(&measured), succeeds());
  runRows(context, 2);
  runRows(context, 2);
  EXPECT_THAT(stream.tune(nullptr), succeeds());
  return measured;
}

} // namespace

TEST(KernelPlans, TheFastestThatWasMeasuredRuns) {
  ProgramBuilder builder = makePlans("add_one", "add_two");
  auto context = load(builder);
  EXPECT_EQ(runRows(*context, 2), 1);
  std::string cpu =
      concat(getCpuName(), " by code for ", builder.tables.variants[0]->cpu);
  int64_t sizes[] = {8, 4};
  Tunings tunings;
  tunings.set(nameKernelWork(kWork, sizes, cpu, 1),
              {.microseconds = 1, .plan = kOther});
  TemporaryFolder folder;
  ASSERT_THAT(tunings.write(folder / "fast"), succeeds());
  context = load(builder, folder / "fast");
  EXPECT_EQ(runRows(*context, 2), 2);
  EXPECT_EQ(runRows(*context, 3), 1) << "nothing is known of these sizes";
  EXPECT_EQ(runRows(*context, 2), 2);
}

TEST(KernelPlans, OneThatIsFasterIsFound) {
  ProgramBuilder builder = makePlans("add_one_slowly", "add_two");
  auto context = load(builder);
  std::vector<Measurement> measured = tune(*context);
  ASSERT_EQ(measured.size(), 2) << "once for a work";
  EXPECT_EQ(measured[0].tuning.plan, kOwn);
  EXPECT_EQ(measured[1].tuning.plan, kOther);
  EXPECT_EQ(measured[0].work, measured[1].work);
  EXPECT_LT(measured[1].tuning.microseconds, measured[0].tuning.microseconds);
}

TEST(KernelPlans, OneThatIsNotFasterDoesNotCount) {
  ProgramBuilder builder = makePlans("add_one", "add_one_slowly");
  auto context = load(builder);
  std::vector<Measurement> measured = tune(*context);
  ASSERT_EQ(measured.size(), 1);
  EXPECT_EQ(measured[0].tuning.plan, kOwn);
}

TEST(KernelPlans, OnePlanOfEachKernelIsNothingToMeasure) {
  ProgramBuilder builder = addOneProgram();
  auto context = load(builder);
  std::vector<Measurement> measured;
  EXPECT_THAT(context->walker().getStream().tune(&measured),
              failsWith(Code::Unsupported,
                        "several plans to measure: tcc --candidates=K"));
}

TEST(KernelPlans, OthersWorkIsRefused) {
  using Spoil = std::function<void(ProgramBuilder &)>;
  auto launchOf = [](ProgramBuilder &b) -> format::LaunchT & {
    return *b.block().commands[0]->action.AsLaunch();
  };
  const std::pair<const char *, Spoil> spoiled[] = {
      {"has no such candidate",
       [&](auto &b) { launchOf(b).candidates[0]->kernel = 2; }},
      {"has a bad size",
       [&](auto &b) { launchOf(b).candidates[0]->tasks = slot(7); }},
      {"does other work", [](auto &b) { b.tables.kernels[0]->work = "4567"; }},
      {"does other work", [](auto &b) { b.tables.kernels[0]->plan.clear(); }},
      {"does other work", [](auto &b) { b.tables.kernels[1]->work.clear(); }},
      {"has no plan in braces",
       [](auto &b) { b.tables.kernels[0]->plan = "{a\tb}"; }},
      {"has no plan in braces",
       [](auto &b) { b.tables.kernels[0]->plan = "a"; }},
      {"does other work",
       [](auto &b) { b.tables.kernels[0]->results.push_back(DType::f32); }},
  };
  for (const auto &[message, spoil] : spoiled) {
    ProgramBuilder builder = makePlans("add_one", "add_two");
    spoil(builder);
    EXPECT_THAT(verifyProgram(builder.program(), {}),
                failsWith(Code::BadData, message));
  }
}

TEST(Tunings, TheLongestWorkOnSuchAMachineTellsAKernelsPlan) {
  int64_t few[] = {1}, many[] = {64};
  Tunings tunings;
  auto add = [&](const char *hash, std::span<const int64_t> sizes, int threads,
                 double microseconds, const char *plan) {
    tunings.set(nameKernelWork(hash, sizes, "a cpu by code for it", threads),
                {.microseconds = microseconds, .plan = plan});
  };
  add("ab", few, 4, 1, "{few}");
  add("ab", many, 4, 9, "{many}");
  add("ab", many, 1, 30, "{alone}");
  add("abc", many, 4, 99, "{another}");
  EXPECT_EQ(tunings.findPlan("ab", "a cpu", 4), "{many}");
  EXPECT_EQ(tunings.findPlan("ab", "a cpu", 1), "{alone}");
  EXPECT_EQ(tunings.findPlan("ab", "a cpu", 2), "{alone}") << "of all";
  EXPECT_EQ(tunings.findPlan("ab", "another cpu", 4), "{alone}");
  EXPECT_EQ(tunings.findPlan("a", "a cpu", 4), "");
  TemporaryFolder folder;
  ASSERT_THAT(tunings.write(folder / "fast"), succeeds());
  Tunings read = unwrap(Tunings::read(folder / "fast"));
  EXPECT_EQ(read.size(), 4);
  EXPECT_EQ(read.findPlan("ab", "a cpu", 4), "{many}");
  EXPECT_NE(read.digest(), tunings.digest());
}

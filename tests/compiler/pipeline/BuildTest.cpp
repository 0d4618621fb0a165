// Programs as values: what a variant becomes, and that nothing else changes.

#include "compiler/decisions/Decisions.h"
#include "compiler/pipeline/Batch.h"
#include "compiler/pipeline/Chunks.h"
#include "compiler/pipeline/Machines.h"
#include "compiler/pipeline/Register.h"
#include "compiler/pipeline/RunPasses.h"
#include "tcc/compiler.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace tcc;

namespace {

/// A layer of 32 features; BATCH is an extent, and SYMBOLS the module's.
constexpr llvm::StringLiteral kModule = R"(
module attributes {graph.symbols = [SYMBOLS]} {
  func.func @main(%x: INPUT {graph.name = "x"})
      -> (OUTPUT {graph.name = "y"}) {
    %w = graph.weight "w" : tensor<16x32xf32>
    %0 = graph.matmul %x, %w : (INPUT, tensor<16x32xf32>) -> HIDDEN
    %1 = graph.tanh %0 : (HIDDEN) -> HIDDEN
    %v = graph.weight "v" : tensor<32x4xf32>
    %2 = graph.matmul %1, %v : (HIDDEN, tensor<32x4xf32>) -> OUTPUT
    return %2 : OUTPUT
  }
})";

constexpr char kRecipe[] = R"(
[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
)";

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

class BuildTest : public testing::Test {
protected:
  BuildTest() {
    mlir::DialectRegistry registry;
    registerAllTccDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Recognised, with so many samples or, if 0, an open number of them.
  Model makeModel(int64_t samples) {
    auto type = [&](int width) {
      std::string extents = std::to_string(width) + "xf32";
      return samples ? "tensor<" + std::to_string(samples) + "x" + extents + ">"
                     : "tensor<?x" + extents + ", affine_map<()[s0] -> (s0, " +
                           std::to_string(width) + ")>>";
    };
    std::string text = kModule.str();
    auto replace = [&](llvm::StringRef word, const std::string &by) {
      for (size_t at; (at = text.find(word)) != std::string::npos;)
        text.replace(at, word.size(), by);
    };
    replace("SYMBOLS", samples ? "" : "#graph.symbol<\"n\", 1 to 4096 by 1>");
    replace("INPUT", type(16));
    replace("HIDDEN", type(32));
    replace("OUTPUT", type(4));
    Model model;
    model.path = "model";
    model.batch = samples ? "" : "n";
    model.module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    auto f32 = mlir::Float32Type::get(&context);
    for (auto [name, rows, columns] : {std::tuple("w", 16, 32), {"v", 32, 4}}) {
      Weight weight;
      weight.name = name;
      weight.type = mlir::RankedTensorType::get({rows, columns}, f32);
      weight.role = WeightRole::parameter;
      model.weights.add(weight);
    }
    Messages messages(&context, model.path);
    EXPECT_FALSE(runPasses(*model.module, addRecognition,
                           runtime::Code::Internal, messages));
    return model;
  }

  Variant makeVariant(std::optional<int64_t> budget = std::nullopt) {
    Variant variant;
    variant.target = &getHostTarget();
    Problems problems;
    variant.recipe = train::readRecipe(kRecipe, "recipe.toml", problems);
    EXPECT_TRUE(variant.recipe);
    if (budget)
      variant.budget = Budget{*budget, 0};
    return variant;
  }

  mlir::MLIRContext context;
};

} // namespace

TEST_F(BuildTest, KnowsTargetsByName) {
  CompileOptions options;
  options.target = "nil";
  Machines machines;
  EXPECT_EQ(resolveMachines(options, machines),
            "--target: there is no 'nil', expected cpu or cuda");
}

TEST_F(BuildTest, IsAFunctionOfModelAndVariant) {
  Model model = makeModel(0);
  std::string before = print(*model.module);
  Variant variant = makeVariant();
  variant.samples = 8;
  Variant other = makeVariant(1 << 20);
  other.samples = 4;
  BuildResult first = build(model, variant);
  BuildResult between = build(model, other);
  BuildResult second = build(model, variant);
  ASSERT_TRUE(first.getProgram() && between.getProgram() &&
              second.getProgram());
  EXPECT_FALSE(print(*first.getProgram()->module) ==
               print(*between.getProgram()->module));
  EXPECT_TRUE(print(*first.getProgram()->module) ==
              print(*second.getProgram()->module));
  EXPECT_EQ(first.getProgram()->variant.samples, 8);
  EXPECT_GT(first.getProgram()->memory.variables, 0);
  EXPECT_TRUE(print(*model.module) == before);
}

TEST_F(BuildTest, GivesAnOpenBatchItsSamples) {
  for (int64_t samples : {1, 2, 7, 64}) {
    Variant variant = makeVariant();
    variant.recipe->batch.takeMicro(samples);
    BuildResult fixed = build(makeModel(samples), variant);
    variant.samples = samples;
    BuildResult bound = build(makeModel(0), variant);
    ASSERT_TRUE(fixed.getProgram() && bound.getProgram());
    EXPECT_TRUE(print(*fixed.getProgram()->module) ==
                print(*bound.getProgram()->module));
  }
}

TEST_F(BuildTest, StopsAfterAPhase) {
  Model model = makeModel(4);
  BuildResult built = build(model, makeVariant(), Phase::Fuse);
  ASSERT_TRUE(built.getProgram());
  std::string text = print(*built.getProgram()->module);
  EXPECT_NE(text.find("graph.fused"), std::string::npos);
  EXPECT_EQ(text.find("exec.entry"), std::string::npos);
  std::vector<std::string> phases;
  for (const auto &row : built.phases.list())
    phases.push_back(row.first);
  EXPECT_EQ(phases,
            (std::vector<std::string>{"differentiate", "simplify", "fuse"}));
}

TEST_F(BuildTest, NamesTheStepThatFailsWithoutAWord) {
  Model model = makeModel(4);
  Messages messages(&context, model.path);
  Refusal refusal = messages.takeRefusal(runtime::Code::Unsupported,
                                         *model.module, "recompute-values");
  EXPECT_EQ(refusal.code, runtime::Code::Internal);
  EXPECT_EQ(
      refusal.problems,
      (std::vector<std::string>{"model: internal error in recompute-values"}));
  EXPECT_EQ(refusal.reproducer, print(*model.module));
  messages.problems = {"model: too wide"};
  refusal = messages.takeRefusal(runtime::Code::Unsupported, *model.module,
                                 "recompute-values");
  EXPECT_EQ(refusal.code, runtime::Code::Unsupported);
  EXPECT_TRUE(refusal.reproducer.empty());
}

TEST_F(BuildTest, RefusesWithWhatASearchNeeds) {
  Model model = makeModel(64);
  BuildResult small = build(model, makeVariant(1000));
  ASSERT_TRUE(small.getRefusal());
  EXPECT_TRUE(small.isTooLarge());
  EXPECT_GT(small.leastBytes, 1000);
  const std::vector<std::string> &problems = small.getRefusal()->problems;
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(llvm::StringRef(problems[0])
                  .starts_with("model: does not fit into 1000 bytes"));
  EXPECT_TRUE(build(model, makeVariant(1 << 20)).getProgram());
}

TEST_F(BuildTest, KnowsWhatABudgetCostsWithoutTheLog) {
  Model model = makeModel(64);
  Variant variant = makeVariant(1 << 20);
  BuildResult recorded = build(model, variant);
  stopRecording(*model.module);
  BuildResult unrecorded = build(model, variant);
  ASSERT_TRUE(recorded.getProgram() && unrecorded.getProgram());
  EXPECT_TRUE(getDecisions(*unrecorded.getProgram()->module).empty());
  const std::vector<EntryRecompute> &entries = unrecorded.recomputed.entries;
  ASSERT_EQ(entries.size(), recorded.recomputed.entries.size());
  ASSERT_FALSE(entries.empty());
  for (auto [entry, other] :
       llvm::zip_equal(entries, recorded.recomputed.entries)) {
    EXPECT_EQ(entry.entry, other.entry);
    EXPECT_EQ(entry.possible.size(), other.possible.size());
    ASSERT_TRUE(entry.chosen && other.chosen);
    EXPECT_EQ(entry.chosen->bytes, other.chosen->bytes);
    EXPECT_EQ(entry.recomputed.size(), other.recomputed.size());
  }
}

TEST_F(BuildTest, FindsTheLargestBatch) {
  Model model = makeModel(0);
  constexpr int64_t kBudget = 60'000;
  Variant variant = makeVariant(kBudget);
  variant.recipe->batch.micro = train::BatchRecipe::kAuto;
  BuildResult found = buildLargestBatch(model, variant, "recipe.toml");
  ASSERT_TRUE(found.getProgram());
  int64_t samples = found.getProgram()->variant.samples.value_or(0);
  EXPECT_GT(samples, 1);
  EXPECT_LE(found.getProgram()->memory.getTotal(), kBudget);
  BuildResult rebuilt = build(model, found.getProgram()->variant);
  ASSERT_TRUE(rebuilt.getProgram());
  EXPECT_TRUE(print(*found.getProgram()->module) ==
              print(*rebuilt.getProgram()->module));
  variant.samples = samples + 1;
  EXPECT_TRUE(buildFaster(model, variant).isTooLarge());
  variant.samples = samples;
  BuildResult again = buildFaster(model, variant);
  ASSERT_TRUE(again.getProgram());
  EXPECT_TRUE(print(*found.getProgram()->module) ==
              print(*again.getProgram()->module));
}

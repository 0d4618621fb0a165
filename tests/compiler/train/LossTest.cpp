#include "compiler/train/Loss.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "tests/compiler/train/Fixture.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

#include <fstream>

using namespace mlir;
using namespace tcc;
using namespace tcc::train;
using namespace tcc::graph;

namespace {

/// The entry @eval of logits and target: the sum of the losses and its
/// gradient.
class LossProgram {
public:
  LossProgram(const Recipe &recipe, const std::vector<int64_t> &shape) {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, GraphDialect>();
    registerEvaluatorDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(&context));
    table.declare(StepField::iteration, IntegerType::get(&context, 64), 0);
    declareSettings(table, recipe);
    StepFunction step(*module, format::EntryKind::eval, table);
    build(step, recipe,
          RankedTensorType::get(shape, Float64Type::get(&context)));
    step.finish();
  }

  void set(const std::string &key, double value) { settings[key] = value; }

  Evaluator::Tensors run(const Values &x, const Values &t) {
    auto function = module->lookupSymbol<func::FuncOp>(
        format::nameOf(format::EntryKind::eval));
    Evaluator::Tensors inputs = {makeTensor(function, 0, x),
                                 makeTensor(function, 1, t)};
    for (unsigned i = 2; i < function.getNumArguments(); ++i) {
      auto name =
          function.getArgAttrOfType<StringAttr>(i, GraphDialect::kVariableAttr);
      SettingAttr setting = table.get(name).setting;
      auto range = setting.getInitial().getValues<double>();
      Values values(range.begin(), range.end());
      auto changed = settings.find(setting.getKey().str());
      if (changed != settings.end())
        values = {changed->second};
      inputs.push_back(makeTensor(function, i, values));
    }
    auto results = Evaluator().evaluate(function, inputs);
    if (results)
      return std::move(*results);
    ADD_FAILURE() << toString(results.takeError());
    return {};
  }

private:
  void build(StepFunction &step, const Recipe &recipe, RankedTensorType type) {
    Problems problems;
    auto empty = DictionaryAttr::get(&context);
    Value logits = step.addInput(type, empty);
    Value target =
        step.addInput(getTargetType(recipe.loss, type, problems), empty);
    TensorEmitter emitter(step.getBuilder(), step.getLoc());
    Loss loss = emitLoss(Settings(step, emitter), recipe.loss,
                         {logits, target, /*weights=*/{}});
    Value one = emitter.splat(loss.total, 1.0);
    SmallVector<Value> gradients;
    EXPECT_TRUE(succeeded(
        differentiate(step.getBuilder(), loss.total, one, logits, gradients)));
    step.addOutput("loss", loss.total);
    step.addOutput("gradient", gradients[0]);
  }

  static HostTensor makeTensor(func::FuncOp function, unsigned argument,
                               ArrayRef<double> values) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[argument]);
    HostTensor tensor{type, {}};
    for (double value : values)
      tensor.elements.push_back(tensor.isFloat() ? Scalar{.f = value}
                                                 : Scalar{.i = int64_t(value)});
    return tensor;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  VariableTable table;
  std::map<std::string, double> settings; ///< that were changed
};

nlohmann::json readCases() {
  std::ifstream file(std::string(TCC_TRAIN_FIXTURES) + "/losses.json");
  return nlohmann::json::parse(file);
}

void compare(LossProgram &program, const nlohmann::json &test) {
  Evaluator::Tensors found = program.run(test["logits"], test["target"]);
  ASSERT_EQ(found.size(), 2u);
  double loss = test["loss"];
  EXPECT_NEAR(found[0].elements[0].f, loss, 4e-15 * std::abs(loss));
  Values gradient = test["gradient"];
  for (auto [value, expected] : llvm::zip_equal(found[1].elements, gradient))
    EXPECT_NEAR(value.f, expected, 4e-15);
}

TEST(LossTest, LossesAndGradientsAreThoseOfPyTorch) {
  for (const auto &test : readCases()) {
    std::string recipe = test["recipe"];
    SCOPED_TRACE(recipe);
    LossProgram program(parseRecipe(recipe), test["shape"]);
    compare(program, test);
  }
}

TEST(LossTest, SmoothingChangesAtRunTime) {
  nlohmann::json test = readCases().back();
  std::string recipe = test["recipe"];
  size_t at = recipe.find("0.25");
  ASSERT_NE(at, std::string::npos);
  LossProgram program(parseRecipe(recipe.replace(at, 4, "0.5")), test["shape"]);
  program.set("label_smoothing", 0.25);
  compare(program, test);
}

} // namespace

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

/// @main of logits and target: the sum of the losses and its gradient.
class LossProgram {
public:
  LossProgram(const Recipe &recipe, ArrayRef<int64_t> shape) {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, GraphDialect>();
    registerEvaluatorDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    Problems problems;
    logits = RankedTensorType::get(shape, builder.getF64Type());
    target = getTargetType(recipe.loss, logits, problems);
    function = builder.create<func::FuncOp>(
        module->getLoc(), "main",
        builder.getFunctionType({logits, target}, {}));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);
    Location loc = function.getLoc();
    Loss loss = emitLoss(builder, loc, recipe.loss,
                         {block->getArgument(0), block->getArgument(1), {}});
    Value one = TensorEmitter(builder, loc).splat(loss.total, 1.0);
    SmallVector<Value> gradients;
    EXPECT_TRUE(succeeded(differentiate(builder, loss.total, one,
                                        block->getArgument(0), gradients)));
    Value results[] = {loss.total, gradients[0]};
    builder.create<func::ReturnOp>(loc, results);
    function.setType(builder.getFunctionType(block->getArgumentTypes(),
                                             ValueRange(results).getTypes()));
  }

  Evaluator::Tensors run(const Values &x, const Values &t) {
    HostTensor inputs[] = {{logits, {}}, {target, {}}};
    for (double value : x)
      inputs[0].elements.push_back(Scalar{.f = value});
    for (double value : t)
      inputs[1].elements.push_back(inputs[1].isFloat()
                                       ? Scalar{.f = value}
                                       : Scalar{.i = int64_t(value)});
    auto results = Evaluator().evaluate(function, inputs);
    if (results)
      return std::move(*results);
    ADD_FAILURE() << toString(results.takeError());
    return {};
  }

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  RankedTensorType logits, target;
  func::FuncOp function;
};

TEST(LossTest, LossesAndGradientsAreThoseOfPyTorch) {
  std::ifstream file(std::string(TCC_TRAIN_FIXTURES) + "/losses.json");
  for (const auto &test : nlohmann::json::parse(file)) {
    std::string recipe = test["recipe"];
    SCOPED_TRACE(recipe);
    std::vector<int64_t> shape = test["shape"];
    LossProgram program(parseRecipe(recipe), shape);
    Evaluator::Tensors found = program.run(test["logits"], test["target"]);
    ASSERT_EQ(found.size(), 2u);
    double loss = test["loss"];
    EXPECT_NEAR(found[0].elements[0].f, loss, 4e-15 * std::abs(loss));
    Values gradient = test["gradient"];
    for (auto [value, expected] : llvm::zip_equal(found[1].elements, gradient))
      EXPECT_NEAR(value.f, expected, 4e-15);
  }
}

} // namespace

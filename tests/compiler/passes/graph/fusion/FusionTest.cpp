// Fusion keeps what a graph computes: random graphs are evaluated before and
// after, and fused twice. Functions of libraries are ops of the graph dialect.

#include "compiler/codegen/Targets.h"
#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/Evaluator.h"
#include "runtime/package/LibraryRules.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;

namespace {

using Shape = SmallVector<int64_t>;

/// All of 24 elements, so that values often meet again at another shape. An
/// extent -n is n / 2 times the symbol, or n.
const Shape kShapes[] = {{-2, 3, 4},    {-6, 4},    {-2, 12},      {-24},
                         {1, -2, 3, 4}, {4, 3, -2}, {-2, 3, 1, 4}, {3, -8}};

/// Adds one random op after another to a function.
class RandomGraph {
public:
  RandomGraph(MLIRContext *context, unsigned seed, unsigned ops)
      : random(seed), builder(context), loc(builder.getUnknownLoc()),
        isDynamic(seed % 2) {
    module = ModuleOp::create(loc);
    setSymbols(*module,
               SymbolAttr::get(context, builder.getStringAttr("n"), 2, 64, 1));
    builder.setInsertionPointToEnd(module->getBody());
    auto type = getType({-2, 3, 4});
    function = builder.create<func::FuncOp>(
        loc, "f", builder.getFunctionType({type, type}, {}));
    builder.setInsertionPointToEnd(function.addEntryBlock());
    llvm::append_range(values, function.getArguments());
    for (unsigned i = 0; i < ops; ++i)
      addOp();
    finish();
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;

private:
  RankedTensorType getType(ArrayRef<int64_t> shape) {
    Extents extents;
    for (int64_t extent : shape)
      extents.push_back(extent < 0 && isDynamic
                            ? builder.getAffineSymbolExpr(0) * (-extent / 2)
                            : builder.getAffineConstantExpr(std::abs(extent)));
    return makeTensorType(extents, builder.getF32Type());
  }
  unsigned pick(unsigned count) { return random() % count; }
  /// Recent values more often.
  Value pickValue() {
    unsigned back =
        std::min(pick(4) ? pick(3) : pick(64), unsigned(values.size()) - 1);
    return values[values.size() - 1 - back];
  }
  template <typename Op, typename... Args> Value add(Args &&...args) {
    values.push_back(builder.create<Op>(loc, std::forward<Args>(args)...));
    return values.back();
  }
  Value reshape(Value value, RankedTensorType type) {
    return type == value.getType()
               ? value
               : builder.create<ReshapeOp>(loc, type, value);
  }
  RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  void addOp();
  void addReduction(Value x);
  void addMatmul(Value x);
  void addNorm(Value x);
  Value sliceRows(Value x, int64_t rows);
  void addTranspose(Value x);
  void finish();

  std::mt19937 random;
  OpBuilder builder;
  Location loc;
  bool isDynamic;
  SmallVector<Value> values; // all of 24 elements
};

} // namespace

/// A row's value goes back to the elements, through an axis of extent 1.
void RandomGraph::addReduction(Value x) {
  RankedTensorType type = getType(x);
  int64_t axis = pick(type.getRank());
  Value sum =
      builder.create<ReduceOp>(loc, pick(2) ? ReduceKind::sum : ReduceKind::max,
                               x, ArrayRef<int64_t>(axis));
  if (pick(2))
    sum = builder.create<TanhOp>(loc, sum);
  Extents kept = getExtents(type);
  kept[axis] = builder.getAffineConstantExpr(1);
  Value back = builder.create<BroadcastOp>(
      loc, type, reshape(sum, makeTensorType(kept, builder.getF32Type())));
  add<SubOp>(pick(2) ? x : reshape(pickValue(), type), back);
}

/// `x` as [6, 4], or its first rows.
Value RandomGraph::sliceRows(Value x, int64_t rows) {
  Value all = reshape(x, getType({-6, 4}));
  auto starts = makeSizeMap(
      {builder.getAffineConstantExpr(0), builder.getAffineConstantExpr(0)},
      builder.getContext());
  return builder.create<SliceOp>(loc, getType({rows, 4}), all, starts,
                                 ArrayRef<int64_t>{1, 1});
}

void RandomGraph::addMatmul(Value x) {
  Value rhs = sliceRows(pickValue(), 4);
  if (pick(2))
    rhs = builder.create<TransposeOp>(loc, rhs, ArrayRef<int64_t>{1, 0});
  add<MatmulOp>(reshape(x, getType({-6, 4})), rhs);
  if (pick(2))
    values.back() = reshape(values.back(), getType({-2, 3, 4}));
}

void RandomGraph::addNorm(Value x) {
  Value scale = reshape(sliceRows(pickValue(), 1), getType({4}));
  add<LayerNormOp>(reshape(x, getType({-2, 3, 4})), scale, Value(),
                   builder.getI64IntegerAttr(2), builder.getF64FloatAttr(1e-5));
}

void RandomGraph::addTranspose(Value x) {
  Shape permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, getType(x).getRank()));
  std::shuffle(permutation.begin(), permutation.end(), random);
  add<TransposeOp>(x, permutation);
}

void RandomGraph::addOp() {
  Value x = pickValue();
  switch (pick(11)) {
  case 0:
    return void(add<TanhOp>(x));
  case 1:
    return void(add<NegOp>(x));
  case 2:
  case 3:
    return void(add<AddOp>(x, reshape(pickValue(), getType(x))));
  case 4:
    return void(add<MulOp>(x, reshape(pickValue(), getType(x))));
  case 5:
    return void(values.push_back(
        reshape(x, getType(kShapes[pick(std::size(kShapes))]))));
  case 6:
    return addReduction(x);
  case 7:
    return void(add<SoftmaxOp>(x, int64_t(getType(x).getRank() - 1)));
  case 8:
    return addTranspose(x);
  case 9:
    return addNorm(x);
  default:
    return addMatmul(x);
  }
}

/// Some values are results, the last one among them.
void RandomGraph::finish() {
  SmallVector<Value> results{values.back()};
  for (unsigned i = 0; i < 3; ++i)
    results.push_back(pickValue());
  builder.create<func::ReturnOp>(loc, results);
  function.setFunctionType(builder.getFunctionType(
      function.getArgumentTypes(), ValueRange(results).getTypes()));
}

namespace {

class FusionTest : public testing::Test {
protected:
  FusionTest() {
    registerAllTargets();
    DialectRegistry registry;
    registry.insert<func::FuncDialect, GraphDialect>();
    registerEvaluatorDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  LogicalResult fuse(ModuleOp module) {
    PassManager manager(&context);
    manager.addPass(createFuseOpsPass());
    manager.addPass(createVerifyFusionPass());
    return manager.run(module);
  }

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

  /// The elements of all results, one after the other.
  static std::vector<double> evaluate(func::FuncOp function) {
    Evaluator::Tensors inputs;
    for (Type type : function.getArgumentTypes()) {
      HostTensor &input = inputs.emplace_back();
      input.type = RankedTensorType::get({2, 3, 4}, getElementTypeOrSelf(type));
      for (int64_t i = 0; i < input.type.getNumElements(); ++i)
        input.elements.push_back({.f = double((i * 7) % 11) / 8 - 0.5});
    }
    std::vector<double> elements;
    auto results = Evaluator({2}).evaluate(function, inputs);
    if (!results) {
      ADD_FAILURE() << llvm::toString(results.takeError());
      return elements;
    }
    for (const HostTensor &result : *results)
      for (Scalar scalar : result.elements)
        elements.push_back(scalar.f);
    return elements;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
};

TEST_F(FusionTest, KeepsWhatGraphsCompute) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomGraph graph(&context, seed, 4 + seed % 28);
    ASSERT_TRUE(succeeded(verify(*graph.module))) << seed;
    std::string before = print(*graph.module);
    std::vector<double> expected = evaluate(graph.function);
    ASSERT_TRUE(succeeded(fuse(*graph.module))) << seed << before;
    std::vector<double> found = evaluate(graph.function);
    ASSERT_EQ(found.size(), expected.size()) << seed;
    for (size_t i = 0; i < found.size(); ++i)
      if (!(found[i] == expected[i]) && expected[i] == expected[i])
        FAIL() << "seed " << seed << " element " << i << ": " << found[i]
               << " instead of " << expected[i] << before;
  }
}

TEST_F(FusionTest, DependsOnTheGraphAlone) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    RandomGraph first(&context, seed, 30), second(&context, seed, 30);
    ASSERT_TRUE(succeeded(fuse(*first.module)));
    ASSERT_TRUE(succeeded(fuse(*second.module)));
    EXPECT_EQ(print(*first.module), print(*second.module));
  }
}

} // namespace

TEST(Fusion, KnowsEachFunctionOfLibraries) {
  MLIRContext context;
  context.loadDialect<GraphDialect>();
  for (format::StepKind kind : format::EnumValuesStepKind()) {
    const runtime::StepTraits &traits = runtime::traitsOf(kind);
    if (!traits.isFunction)
      continue;
    auto name = RegisteredOperationName::lookup(
        (Twine("graph.") + format::nameOf(kind)).str(), &context);
    EXPECT_TRUE(name && name->hasInterface<PointwiseOpInterface>())
        << format::nameOf(kind);
  }
}

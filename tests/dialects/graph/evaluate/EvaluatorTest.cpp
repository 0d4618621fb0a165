#include "dialects/graph/evaluate/Evaluator.h"
#include "dialects/graph/GraphOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tcc;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class EvaluatorTest : public testing::Test {
protected:
  EvaluatorTest() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, graph::GraphDialect>();
    registerEvaluatorDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The elements of the only result of @f in `source`, as doubles.
  std::vector<double> run(llvm::StringRef source,
                          ArrayRef<std::vector<double>> inputs = {},
                          ArrayRef<int64_t> symbols = {}) {
    auto results = evaluate(source, inputs, symbols);
    if (!results) {
      ADD_FAILURE() << toString(results.takeError());
      return {};
    }
    return toDoubles(results->front());
  }

  std::string getError(llvm::StringRef source,
                       ArrayRef<std::vector<double>> inputs = {},
                       ArrayRef<int64_t> symbols = {}) {
    auto results = evaluate(source, inputs, symbols);
    return results ? "" : toString(results.takeError());
  }

  llvm::Expected<Evaluator::Tensors>
  evaluate(llvm::StringRef source, ArrayRef<std::vector<double>> inputs,
           ArrayRef<int64_t> symbols) {
    module = parseSourceString<ModuleOp>(source, &context);
    if (!module)
      return llvm::createStringError("the test does not parse");
    auto function = *module->getOps<func::FuncOp>().begin();
    Evaluator::Tensors tensors;
    for (auto [values, argument] :
         llvm::zip_equal(inputs, function.getArguments()))
      tensors.push_back(makeInput(argument, values, symbols));
    auto read = [](StringRef name,
                   RankedTensorType type) -> llvm::Expected<HostTensor> {
      return HostTensor{
          type, std::vector<Scalar>(type.getNumElements(), Scalar{.f = 2.0})};
    };
    return Evaluator(symbols, read, limits).evaluate(function, tensors);
  }

  static HostTensor makeInput(Value argument, ArrayRef<double> values,
                              ArrayRef<int64_t> symbols) {
    auto type = cast<RankedTensorType>(argument.getType());
    SmallVector<int64_t> shape;
    for (AffineExpr extent : graph::getExtents(type))
      shape.push_back(graph::evaluate(extent, symbols));
    HostTensor tensor{RankedTensorType::get(shape, type.getElementType()), {}};
    for (double value : values)
      tensor.elements.push_back(tensor.isFloat() ? Scalar{.f = value}
                                                 : Scalar{.i = int64_t(value)});
    return tensor;
  }

  static std::vector<double> toDoubles(const HostTensor &tensor) {
    std::vector<double> values;
    for (Scalar element : tensor.elements)
      values.push_back(tensor.isFloat() ? element.f : double(element.i));
    return values;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  EvaluationLimits limits;
};

TEST_F(EvaluatorTest, RoundsEachResultToItsElementType) {
  auto result = run(R"(func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = graph.mul %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32> })",
                    {{0.1f, 1e30}});
  EXPECT_THAT(result, ElementsAre(double(0.1f * 0.1f), kInfinity));
}

TEST_F(EvaluatorTest, WrapsIntegersAndReadsUnsignedOnes) {
  auto result = run(R"(func.func @f(%x: tensor<2xui8>) -> tensor<2xi32> {
    %y = graph.add %x, %x : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
    %z = graph.cast %y : (tensor<2xui8>) -> tensor<2xi32>
    return %z : tensor<2xi32> })",
                    {{200, 100}});
  EXPECT_THAT(result, ElementsAre(144, 200));
}

TEST_F(EvaluatorTest, DividesByZeroAsDocumented) {
  auto result = run(R"(func.func @f(%x: tensor<3xi8>, %y: tensor<3xi8>)
      -> tensor<3xi8> {
    %z = graph.div %x, %y : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
    return %z : tensor<3xi8> })",
                    {{7, -128, -7}, {0, -1, 2}});
  EXPECT_THAT(result, ElementsAre(0, -128, -3));
}

TEST_F(EvaluatorTest, MovesElements) {
  auto result = run(R"(func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %y = graph.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %y : tensor<3x2xf32> })",
                    {{1, 2, 3, 4, 5, 6}});
  EXPECT_THAT(result, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(EvaluatorTest, ConcatenatesAndPads) {
  auto result = run(R"(func.func @f(%x: tensor<2xf32>, %y: tensor<1xf32>)
      -> tensor<5xf32> {
    %c = graph.concat %x, %y {axis = 0}
      : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>
    %v = graph.constant dense<9.0> : tensor<f32>
    %p = graph.pad %c, %v {low = array<i64: 1>, high = array<i64: 1>,
      interior = array<i64: 0>} : (tensor<3xf32>, tensor<f32>) -> tensor<5xf32>
    return %p : tensor<5xf32> })",
                    {{1, 2}, {3}});
  EXPECT_THAT(result, ElementsAre(9, 1, 2, 3, 9));
}

TEST_F(EvaluatorTest, ReducesWithNaNPropagation) {
  llvm::StringRef source =
      R"(func.func @f(%x: tensor<2x2xf32>) -> tensor<2xf32> {
    %y = graph.reduce <max> %x [1] : (tensor<2x2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32> })";
  auto result = run(source, {{1, 2, NAN, 3}});
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0], 2);
  EXPECT_TRUE(std::isnan(result[1]));
}

TEST_F(EvaluatorTest, MultipliesMatrices) {
  llvm::StringRef source = R"(func.func @f(%a: tensor<2x2xf32>,
      %b: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %y = graph.matmul %a, %b {transpose_rhs}
      : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %y : tensor<2x2xf32> })";
  EXPECT_THAT(run(source, {{1, 2, 3, 4}, {5, 6, 7, 8}}),
              ElementsAre(17, 23, 39, 53));
}

TEST_F(EvaluatorTest, SumsAnOperandOfAProductAlongItsDepth) {
  auto run = [&](llvm::StringRef flags) {
    std::string source = R"(func.func @f(%a: tensor<3x2xf32>,
        %b: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {
      %y:2 = graph.matmul_sums %a, %b {transpose_lhs)" +
                         flags.str() + R"(}
        : (tensor<3x2xf32>, tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
      return %y#0, %y#1 : tensor<2x2xf32>, tensor<2xf32> })";
    auto results =
        evaluate(source, {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 1, 1}}, {});
    EXPECT_TRUE(bool(results));
    return std::pair(toDoubles((*results)[0]), toDoubles((*results)[1]));
  };
  EXPECT_THAT(run("").first, ElementsAre(6, 8, 8, 10));
  EXPECT_THAT(run("").second, ElementsAre(2, 2));
  EXPECT_THAT(run(", of_lhs").second, ElementsAre(9, 12));
}

TEST_F(EvaluatorTest, ConvolvesWithPaddingAndGroups) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<1x2x3xf32>,
      %w: tensor<2x1x2xf32>) -> tensor<1x2x4xf32> {
    %y = graph.conv %x, %w {filters = 2, groups = 2, window = array<i64: 2>,
      strides = array<i64: 1>, pad_low = array<i64: 1>,
      pad_high = array<i64: 1>, dilations = array<i64: 1>}
      : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
    return %y : tensor<1x2x4xf32> })";
  EXPECT_THAT(run(source, {{1, 2, 3, 4, 5, 6}, {1, 10, 1, 1}}),
              ElementsAre(10, 21, 32, 3, 4, 9, 11, 6));
}

TEST_F(EvaluatorTest, AveragesWithoutPadding) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<1x1x3xf32>)
      -> tensor<1x1x2xf32> {
    %y = graph.pool <average> %x {window = array<i64: 2>,
      strides = array<i64: 2>, pad_low = array<i64: 0>,
      pad_high = array<i64: 1>, dilations = array<i64: 1>,
      count_low = array<i64: 0>, count_high = array<i64: 1>}
      : (tensor<1x1x3xf32>) -> tensor<1x1x2xf32>
    return %y : tensor<1x1x2xf32> })";
  EXPECT_THAT(run(source, {{1, 3, 5}}), ElementsAre(2, 5));
}

TEST_F(EvaluatorTest, EvaluatesCompositesByDecomposition) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<1x2xf32>)
      -> tensor<1x2xf32> {
    %y = graph.softmax %x {axis = 1} : (tensor<1x2xf32>) -> tensor<1x2xf32>
    return %y : tensor<1x2xf32> })";
  auto result = run(source, {{1000, 1000}});
  EXPECT_THAT(result, ElementsAre(0.5, 0.5));
}

TEST_F(EvaluatorTest, ReadsSymbolsAndWeights) {
  llvm::StringRef source = R"(
    #n = affine_map<()[s0] -> (s0)>
    func.func @f(%x: tensor<?xf32, #n>) -> tensor<?xf32, #n> {
      %w = graph.weight "w" : tensor<1xf32>
      %b = graph.broadcast %w : (tensor<1xf32>) -> tensor<?xf32, #n>
      %y = graph.add %x, %b : (tensor<?xf32, #n>, tensor<?xf32, #n>)
        -> tensor<?xf32, #n>
      return %y : tensor<?xf32, #n> })";
  EXPECT_THAT(run(source, {{1, 2, 3}}, {3}), ElementsAre(3, 4, 5));
}

TEST_F(EvaluatorTest, RunsLoopsAndStacksSlices) {
  llvm::StringRef source = R"(func.func @f(%n: tensor<i64>, %x: tensor<f32>)
      -> tensor<3xf32> {
    %r, %s = graph.loop trips %n : tensor<i64> inits %x : tensor<f32>
        -> tensor<f32>, tensor<3xf32> {
    ^bb0(%i: tensor<i64>, %c: tensor<f32>):
      %true = graph.constant dense<true> : tensor<i1>
      %d = graph.add %c, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
      graph.yield %true, %d, %d : tensor<i1>, tensor<f32>, tensor<f32>
    }
    return %s : tensor<3xf32> })";
  EXPECT_THAT(run(source, {{3}, {1}}), ElementsAre(2, 4, 8));
}

TEST_F(EvaluatorTest, ReportsIndicesOutOfRange) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<2xf32>,
      %i: tensor<1xi64>) -> tensor<1xf32> {
    %y = graph.gather %x, %i {axis = 0}
      : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32> loc("node_7")
    return %y : tensor<1xf32> })";
  EXPECT_THAT(run(source, {{1, 2}, {-1}}), ElementsAre(2));
  EXPECT_THAT(getError(source, {{1, 2}, {2}}),
              testing::AllOf(HasSubstr("node_7"), HasSubstr("out of range")));
}

TEST_F(EvaluatorTest, CountsNoIndexFromTheEndWhereNoneMayBeNegative) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<2xf32>,
      %i: tensor<1xi64>) -> tensor<1xf32> {
    %y = graph.gather %x, %i {axis = 0, nonnegative}
      : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
    return %y : tensor<1xf32> })";
  EXPECT_THAT(run(source, {{1, 2}, {1}}), ElementsAre(2));
  EXPECT_THAT(getError(source, {{1, 2}, {-1}}), HasSubstr("out of range"));
}

TEST_F(EvaluatorTest, RefusesUnboundedWorkAndMemory) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<f32>) -> tensor<f32> {
    %r = graph.loop inits %x : tensor<f32> -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %c: tensor<f32>):
      %true = graph.constant dense<true> : tensor<i1>
      graph.yield %true, %c : tensor<i1>, tensor<f32>
    }
    return %r : tensor<f32> })";
  limits.work = 1000;
  EXPECT_THAT(getError(source, {{1}}), HasSubstr("more work"));
  llvm::StringRef large = R"(func.func @f(%x: tensor<f32>)
      -> tensor<1048576x1048576xf32> {
    %y = graph.broadcast %x : (tensor<f32>) -> tensor<1048576x1048576xf32>
    return %y : tensor<1048576x1048576xf32> })";
  EXPECT_THAT(getError(large, {{1}}), HasSubstr("more memory"));
}

TEST_F(EvaluatorTest, SumsOverOneRank) {
  llvm::StringRef source = R"(func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
    %y = graph.all_reduce %x : tensor<3xf32>
    return %y : tensor<3xf32> })";
  EXPECT_THAT(run(source, {{1, 2, 3}}), ElementsAre(1, 2, 3));
}

TEST_F(EvaluatorTest, NeedsValuesForSymbols) {
  llvm::StringRef source = R"(func.func @f() -> tensor<i64> {
    %n = graph.size affine_map<()[s0] -> (s0 * 2)>
    return %n : tensor<i64> })";
  EXPECT_THAT(run(source, {}, {4}), ElementsAre(8));
  EXPECT_THAT(getError(source), HasSubstr("has no value"));
}

} // namespace

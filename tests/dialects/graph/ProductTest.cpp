// The loops that a product says of itself, walked one by one, give what the
// reference evaluator computes.

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/Evaluator.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;

namespace {

class ProductTest : public testing::TestWithParam<const char *> {
protected:
  ProductTest() {
    context.loadDialect<GraphDialect, func::FuncDialect>();
    DialectRegistry registry;
    registerEvaluatorDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The op of the parameter, whose operands are the function's.
  ProductOpInterface parse() {
    module = parseSourceString<ModuleOp>(GetParam(), &context);
    ProductOpInterface found;
    if (module)
      module->walk([&](ProductOpInterface op) { found = op; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// Small integers, whose sums are exact.
HostTensor makeTensor(Value value, int64_t seed) {
  HostTensor tensor{cast<RankedTensorType>(value.getType()), {}};
  for (int64_t i = 0; i < tensor.type.getNumElements(); ++i)
    tensor.elements.push_back({double((i * 7 + seed) % 11 - 5)});
  return tensor;
}

/// The element of a side where the loops are; zero in the padding.
double read(const ProductSide &side, ArrayRef<HostTensor> operands,
            ArrayRef<int64_t> loops) {
  const HostTensor &tensor = operands[side.operand];
  SmallVector<int64_t> at = side.map.compose(loops);
  for (int64_t axis = 0; axis < int64_t(at.size()); ++axis) {
    bool isInside = at[axis] >= 0 && at[axis] < tensor.extent(axis);
    bool isPadded =
        axis >= side.firstPadded && axis < side.firstPadded + side.padded;
    EXPECT_TRUE(isInside || isPadded) << "axis " << axis;
    if (!isInside)
      return 0;
  }
  return tensor.elements[tensor.offset(at)].f;
}

} // namespace

TEST_P(ProductTest, ComputesWhatTheOpDoes) {
  ProductOpInterface op = parse();
  ASSERT_TRUE(op);
  SmallVector<HostTensor> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    operands.push_back(makeTensor(operand, int64_t(i) + 1));
  auto expected = Evaluator().evaluate(op, operands);
  ASSERT_TRUE(bool(expected)) << toString(expected.takeError());

  ProductView view = op.getProduct();
  SmallVector<int64_t> extents;
  for (const Extents *loops :
       {&view.batch, &view.rows, &view.columns, &view.depth})
    for (AffineExpr extent : *loops)
      extents.push_back(*getConstant(extent));
  ASSERT_EQ(extents.size(), view.countLoops());
  unsigned rows = view.batch.size(), columns = rows + view.rows.size(),
           depth = columns + view.columns.size();
  for (unsigned loop = rows; loop < depth; ++loop)
    for (const ProductSide *side : {&view.lhs, &view.rhs})
      if ((side == &view.lhs) == (loop >= columns))
        EXPECT_FALSE(side->map.isFunctionOfDim(loop)) << loop;
  HostTensor found = makeTensor(op->getResult(0), 0);
  for (Scalar &element : found.elements)
    element.f = 0;
  cantFail(forEachIndex(extents, [&](ArrayRef<int64_t> loops) {
    int64_t at = found.offset(view.result.compose(loops));
    found.elements[at].f +=
        read(view.lhs, operands, loops) * read(view.rhs, operands, loops);
    return llvm::Error::success();
  }));
  for (size_t i = 0; i < found.elements.size(); ++i)
    ASSERT_EQ(found.elements[i].f, expected->front().elements[i].f) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Ops, ProductTest,
    testing::Values(
        R"(func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>) {
  %c = graph.matmul %a, %b {transpose_rhs}
    : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x3x5xf32>
  return })",
        // Batches of the left side alone are rows.
        R"(func.func @f(%a: tensor<2x3x4xf32>, %b: tensor<4x5xf32>) {
  %c = graph.matmul %a, %b
    : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return })",
        R"(func.func @f(%a: tensor<2x3x2x4xf32>, %b: tensor<2x1x4x5xf32>) {
  %c = graph.matmul %a, %b
    : (tensor<2x3x2x4xf32>, tensor<2x1x4x5xf32>) -> tensor<2x3x2x5xf32>
  return })",
        // The loop of these rows comes before that of the batch.
        R"(func.func @f(%a: tensor<2x3x2x4xf32>, %b: tensor<3x4x5xf32>) {
  %c = graph.matmul %a, %b
    : (tensor<2x3x2x4xf32>, tensor<3x4x5xf32>) -> tensor<2x3x2x5xf32>
  return })",
        R"(func.func @f(%a: tensor<4x3xf32>, %b: tensor<6x4x5xf32>) {
  %c = graph.matmul %a, %b {transpose_lhs}
    : (tensor<4x3xf32>, tensor<6x4x5xf32>) -> tensor<6x3x5xf32>
  return })",
        R"(func.func @f(%x: tensor<2x7x6x4xf32>, %w: tensor<6x3x2x2xf32>) {
  %c = graph.conv %x, %w {filters = 6 : i64, groups = 2 : i64,
    window = array<i64: 3, 2>, strides = array<i64: 2, 1>,
    pad_low = array<i64: 1, 0>, pad_high = array<i64: 1, 2>,
    dilations = array<i64: 1, 3>, channels_last}
    : (tensor<2x7x6x4xf32>, tensor<6x3x2x2xf32>) -> tensor<2x4x5x6xf32>
  return })",
        R"(func.func @f(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  %c = graph.conv %x, %w {filters = 4 : i64, groups = 1 : i64,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 2>,
    pad_high = array<i64: 0>, dilations = array<i64: 1>}
    : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x8xf32>
  return })",
        R"(func.func @f(%x: tensor<2x8x3xf32>, %g: tensor<2x4x5xf32>) {
  %c = graph.conv_filter_gradient %x, %g {window = array<i64: 3>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, dilations = array<i64: 1>,
    groups = 1 : i64}
    : (tensor<2x8x3xf32>, tensor<2x4x5xf32>) -> tensor<5x3x3xf32>
  return })",
        R"(func.func @f(%x: tensor<1x6x4xf32>, %g: tensor<1x6x6xf32>) {
  %c = graph.conv_filter_gradient %x, %g {window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>,
    groups = 2 : i64}
    : (tensor<1x6x4xf32>, tensor<1x6x6xf32>) -> tensor<6x3x2xf32>
  return })",
        R"(func.func @f(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) {
  %c, %s = graph.matmul_sums %a, %b {transpose_lhs}
    : (tensor<4x3xf32>, tensor<4x5xf32>) -> (tensor<3x5xf32>, tensor<5xf32>)
  return })"));

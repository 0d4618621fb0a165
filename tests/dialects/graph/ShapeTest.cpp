#include "dialects/graph/Shape.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc::graph;

namespace {

class ShapeTest : public testing::Test {
protected:
  ShapeTest() {
    context.loadDialect<GraphDialect>();
    symbols = {makeSymbol("batch", 1, 8, 1), makeSymbol("length", 16, 128, 16)};
  }

  SymbolAttr makeSymbol(StringRef name, int64_t min, int64_t max,
                        int64_t divisor) {
    return SymbolAttr::get(&context, builder.getStringAttr(name), min, max,
                           divisor);
  }

  AffineExpr constant(int64_t value) {
    return getAffineConstantExpr(value, &context);
  }

  MLIRContext context;
  Builder builder{&context};
  AffineExpr s0 = getAffineSymbolExpr(0, &context);
  AffineExpr s1 = getAffineSymbolExpr(1, &context);
  /// s0 in [1, 8], s1 in [16, 128] by 16.
  SmallVector<SymbolAttr> symbols;
};

TEST_F(ShapeTest, staticTypesHaveNoEncoding) {
  auto type = makeTensorType({constant(2), constant(3)}, builder.getF32Type());
  EXPECT_EQ(type, RankedTensorType::get({2, 3}, builder.getF32Type()));
}

TEST_F(ShapeTest, symbolicExtentsAreKeptAndSimplified) {
  auto type = makeTensorType({s0 + s0, constant(3)}, builder.getF32Type());
  EXPECT_EQ(type.getShape(), ArrayRef<int64_t>({ShapedType::kDynamic, 3}));
  EXPECT_EQ(getExtents(type)[0], s0 * 2);
  EXPECT_EQ(type, makeTensorType({s0 * 2, constant(3)}, builder.getF32Type()));
}

TEST_F(ShapeTest, extentsThatCancelAreStatic) {
  auto type = makeTensorType({s0 * 4 - s0 * 4 + 5}, builder.getF32Type());
  EXPECT_TRUE(type.hasStaticShape());
}

TEST_F(ShapeTest, limitsBoundProductsThatHaveAllTheirSymbols) {
  auto product = AffineMapAttr::get(makeSizeMap({s0 * s1}, &context));
  auto limit = LimitAttr::get(&context, product, 24);
  for (SymbolAttr &symbol : symbols)
    symbol = SymbolAttr::get(&context, symbol.getName(), 0, 24, 1,
                             /*isComputed=*/true, limit);
  EXPECT_EQ(getRange(s0 * s1, symbols).max, 24);
  EXPECT_EQ(getRange(s1 * 4 * s0, symbols).max, 96);
  EXPECT_EQ(getRange(s0 * s0 * s1, symbols).max, 24 * 24);
  EXPECT_EQ(getRange(s0 * 4, symbols).max, 96);
  EXPECT_EQ(getMaxProduct({s0, constant(2), s1}, symbols), 48);
  EXPECT_EQ(getMaxProduct({s0 + 1, s1}, symbols), 25 * 24);
}

TEST_F(ShapeTest, equalityLooksThroughTheForm) {
  EXPECT_TRUE(isEqual(s0 * 2 + 4, (s0 + 2) * 2));
  EXPECT_TRUE(isEqual(s0 * s1 * 4, s1 * 2 * s0 * 2));
  EXPECT_TRUE(isEqual(s0 * (s1 + 1), s1 * s0 + s0));
  EXPECT_FALSE(isEqual(s0 * s1 * 4, s0 * s1 * 2));
  EXPECT_FALSE(isEqual(s0, s1));
}

TEST_F(ShapeTest, broadcastTakesTheExtentThatIsNotOne) {
  auto both = broadcastExtents({s0, constant(1)}, {constant(7)});
  ASSERT_TRUE(both);
  EXPECT_EQ(ArrayRef(*both), ArrayRef<AffineExpr>({s0, constant(7)}));
  EXPECT_FALSE(broadcastExtents({constant(2)}, {constant(3)}));
  EXPECT_FALSE(broadcastExtents({s0}, {s1}));
}

TEST_F(ShapeTest, rangesFollowTheSymbols) {
  Range halved = getRange((s1 + 1).floorDiv(2), symbols);
  EXPECT_EQ(halved.min, 8);
  EXPECT_EQ(halved.max, 64);
  Range negated = getRange(s0 * -3 + 2, symbols);
  EXPECT_EQ(negated.min, -22);
  EXPECT_EQ(negated.max, -1);
}

TEST_F(ShapeTest, evaluateRoundsAsTheExpressionSays) {
  EXPECT_EQ(evaluate(s0.floorDiv(4), {-3, 0}), -1);
  EXPECT_EQ(evaluate(s0.ceilDiv(4) + s1 % 5, {5, 17}), 4);
}

} // namespace

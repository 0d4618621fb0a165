#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

#include <cmath>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

bool isInteger(Value x) {
  return isa<IntegerType>(getTensorType(x).getElementType());
}

/// -0.0 and 0.0 differ: x + 0.0 is not x, as it turns -0.0 into 0.0.
bool isExactly(Value tensor, double expected) {
  std::optional<double> value = getSplat(tensor);
  return value && *value == expected &&
         std::signbit(*value) == std::signbit(expected);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// An op that its neutral right operand leaves out.
struct NeutralRow {
  StringLiteral op;
  double onIntegers, onFloats;
};
constexpr NeutralRow kNeutralRows[] = {
    {MaxOp::getOperationName(), kNone, -kInfinity},
    {MinOp::getOperationName(), kNone, kInfinity},
    {AddOp::getOperationName(), 0.0, -0.0},
    {SubOp::getOperationName(), 0.0, 0.0},
    {MulOp::getOperationName(), 1.0, 1.0},
    {DivOp::getOperationName(), 1.0, 1.0},
    {PowOp::getOperationName(), 1.0, 1.0},
    {OrOp::getOperationName(), 0.0, 0.0},
    {XorOp::getOperationName(), 0.0, 0.0},
    {ShiftLeftOp::getOperationName(), 0.0, 0.0},
    {ShiftRightOp::getOperationName(), 0.0, 0.0},
};

/// A sum of products starts at 0.0: it is not -0.0, but for an underflow.
bool isSumOfProducts(Value x) {
  auto op = x.getDefiningOp<PrecisionOpInterface>();
  return op && op.getPrecision() == Precision::narrow;
}

/// True if `rhs` leaves `lhs` as it is.
bool isNeutral(Operation *op, Value lhs, Value rhs) {
  if (isa<AddOp>(op) && isSumOfProducts(lhs) && isExactly(rhs, 0.0))
    return true;
  for (const NeutralRow &row : kNeutralRows)
    if (op->getName().getStringRef() == row.op)
      return isExactly(rhs, isInteger(rhs) ? row.onIntegers : row.onFloats);
  return false;
}

/// x + 0, x * 1, x / 1, x - 0, pow(x, 1), max(x, -inf) = x
struct DropNeutralOperand : RewritePattern {
  explicit DropNeutralOperand(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<PointwiseOpInterface>(op) || op->getNumOperands() != 2)
      return failure();
    Value lhs = op->getOperand(0), rhs = op->getOperand(1);
    bool commutes = op->hasTrait<OpTrait::IsCommutative>();
    Value kept = isNeutral(op, lhs, rhs)               ? lhs
                 : commutes && isNeutral(op, rhs, lhs) ? rhs
                                                       : Value();
    if (!kept || kept.getType() != op->getResult(0).getType())
      return rewriter.notifyMatchFailure(op, "no operand is neutral");
    rewriter.replaceOp(op, kept);
    return success();
  }
};

/// pow(x, 2) = x * x, pow(x, 3) = x * x * x
struct ExpandSmallPower : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<double> exponent = getSplat(op.getRhs());
    if (!exponent || (*exponent != 2.0 && *exponent != 3.0))
      return rewriter.notifyMatchFailure(op, "exponent is not 2 or 3");
    Value x = op.getLhs();
    Value square = rewriter.create<MulOp>(op.getLoc(), x, x);
    if (*exponent == 2.0)
      rewriter.replaceOp(op, square);
    else
      rewriter.replaceOpWithNewOp<MulOp>(op, square, x);
    return success();
  }
};

/// x / 2^n = x * 2^-n, exactly
struct DivideByPowerOfTwo : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DivOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<double> divisor = getSplat(op.getRhs());
    int exponent = 0;
    if (!divisor || isInteger(op.getRhs()) ||
        std::abs(std::frexp(*divisor, &exponent)) != 0.5 ||
        std::abs(exponent) > 12)
      return rewriter.notifyMatchFailure(op, "divisor is no power of two");
    Value factor =
        makeSplat(rewriter, op.getLoc(), op.getType(), 1.0 / *divisor);
    rewriter.replaceOpWithNewOp<MulOp>(op, op.getLhs(), factor);
    return success();
  }
};

/// f(f(x)) = x
template <typename Op> struct CancelWithItself : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().template getDefiningOp<Op>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "operand is another op");
    rewriter.replaceOp(op, inner.getX());
    return success();
  }
};

/// f(f(x)) = f(x)
template <typename Op> struct MergeWithItself : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getX().template getDefiningOp<Op>())
      return rewriter.notifyMatchFailure(op, "operand is another op");
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

// --- Casts -------------------------------------------------------------------

/// True if every value of `from` is one of `to`.
bool isLossless(Type from, Type to) {
  if (from == to || from.isInteger(1))
    return true;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat)
    return fromFloat.getWidth() < toFloat.getWidth();
  auto fromInteger = dyn_cast<IntegerType>(from);
  if (!fromInteger)
    return false;
  unsigned bits = fromInteger.getWidth();
  if (toFloat)
    return bits < toFloat.getFPMantissaWidth();
  auto toInteger = cast<IntegerType>(to);
  if (fromInteger.isUnsigned() == toInteger.isUnsigned())
    return bits <= toInteger.getWidth();
  return fromInteger.isUnsigned() && bits < toInteger.getWidth();
}

/// True if cast(cast(x : from) : via) : to = cast(x : from) : to.
bool canSkip(Type from, Type via, Type to) {
  if (!isLossless(from, via))
    return false;
  // The same number is converted, but not in the same way: floats saturate
  // where integers wrap, and integers are rounded to f32 before a narrower
  // float.
  bool becomesFloat = isa<IntegerType>(from) && isa<FloatType>(via);
  if (!becomesFloat || to.isInteger(1))
    return true;
  if (isa<IntegerType>(to))
    return isLossless(from, to);
  return via.isF32() || to.getIntOrFloatBitWidth() >= 32;
}

/// cast(cast(x)) = cast(x) where the first one makes no difference
struct ComposeCasts : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<CastOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "not a cast of a cast");
    if (!canSkip(inner.getX().getType().getElementType(),
                 op.getX().getType().getElementType(),
                 op.getType().getElementType()))
      return rewriter.notifyMatchFailure(op, "the first cast matters");
    rewriter.replaceOpWithNewOp<CastOp>(op, op.getType(), inner.getX());
    return success();
  }
};

// --- Choice ------------------------------------------------------------------

/// select(true, a, b) = a; select(not c, a, b) = select(c, b, a)
struct DecideSelect : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op,
                                PatternRewriter &rewriter) const override {
    if (std::optional<double> condition = getSplat(op.getCondition())) {
      rewriter.replaceOp(op,
                         *condition != 0.0 ? op.getOnTrue() : op.getOnFalse());
      return success();
    }
    auto negation = op.getCondition().getDefiningOp<NotOp>();
    if (!negation)
      return rewriter.notifyMatchFailure(op, "condition is not known");
    rewriter.replaceOpWithNewOp<SelectOp>(op, negation.getX(), op.getOnFalse(),
                                          op.getOnTrue());
    return success();
  }
};

/// compare(x, x) for types without NaN
struct CompareWithItself : OpRewritePattern<CompareOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CompareOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getLhs() != op.getRhs() || !isInteger(op.getLhs()))
      return rewriter.notifyMatchFailure(op, "operands differ or may be NaN");
    bool holds = llvm::is_contained(
        {CompareKind::eq, CompareKind::le, CompareKind::ge}, op.getKind());
    rewriter.replaceOp(op, makeSplat(rewriter, op.getLoc(),
                                     getTensorType(op.getResult()), holds));
    return success();
  }
};

} // namespace

void addAlgebraPatterns(RewritePatternSet &patterns) {
  patterns.add<DropNeutralOperand, ExpandSmallPower, DivideByPowerOfTwo,
               ComposeCasts, DecideSelect, CompareWithItself,
               CancelWithItself<NegOp>, CancelWithItself<NotOp>,
               MergeWithItself<ReluOp>, MergeWithItself<AbsOp>,
               MergeWithItself<FloorOp>, MergeWithItself<CeilOp>,
               MergeWithItself<RoundOp>, MergeWithItself<SignOp>>(
      patterns.getContext());
}

} // namespace tcc

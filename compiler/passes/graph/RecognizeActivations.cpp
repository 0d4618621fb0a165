//===- RecognizeActivations.cpp - Activations that exporters wrote out ----===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_RECOGNIZEACTIVATIONSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// Products written out by exporters have a few factors.
constexpr int kMaxFactors = 6;
/// They take as many ops, counted with their operands.
constexpr int kMaxVisits = 4 * kMaxFactors;

/// A tree of multiplications: coefficient * factors.
struct Product {
  double coefficient = 1.0;
  SmallVector<Value, kMaxFactors> factors;
  int visits = 0;
};

void flattenInto(Product &product, Value value, Value stop) {
  if (value == stop || ++product.visits > kMaxVisits) {
    product.factors.push_back(value);
    return;
  }
  if (std::optional<double> splat = getSplat(value)) {
    product.coefficient *= *splat;
    return;
  }
  if (auto mul = value.getDefiningOp<MulOp>()) {
    flattenInto(product, mul.getLhs(), stop);
    flattenInto(product, mul.getRhs(), stop);
    return;
  }
  auto div = value.getDefiningOp<DivOp>();
  std::optional<double> divisor = div ? getSplat(div.getRhs()) : std::nullopt;
  if (!divisor) {
    product.factors.push_back(value);
    return;
  }
  product.coefficient /= *divisor;
  flattenInto(product, div.getLhs(), stop);
}

/// The factors of `value`; `stop` is not taken apart.
Product flatten(Value value, Value stop) {
  Product product;
  flattenInto(product, value, stop);
  return product;
}

/// True if `value` = coefficient * x^power.
bool isPower(Value value, Value x, size_t power, double coefficient) {
  Product product = flatten(value, x);
  return isClose(product.coefficient, coefficient, x) &&
         product.factors.size() == power &&
         llvm::all_of(product.factors, [&](Value f) { return f == x; });
}

/// The other side of a sum with a constant: y of y + constant.
Value matchPlus(Value value, double constant) {
  auto add = value.getDefiningOp<AddOp>();
  auto sides =
      add ? matchEither(add, [&](Value v) { return isSplat(v, constant); })
          : std::nullopt;
  return sides ? sides->second : Value();
}

/// x of min(max(x, low), high), in either order, and of min(relu(x), high).
Value matchClip(Value value, double low, double high) {
  auto isBound = [](double bound) {
    return [bound](Value v) { return isSplat(v, bound); };
  };
  auto peel = [&]<typename Op>(Value v, double bound) -> Value {
    auto op = v.getDefiningOp<Op>();
    auto sides = op ? matchEither(op, isBound(bound)) : std::nullopt;
    return sides ? sides->second : Value();
  };
  if (Value inner = peel.operator()<MinOp>(value, high)) {
    if (auto relu = inner.getDefiningOp<ReluOp>(); relu && low == 0.0)
      return relu.getX();
    return peel.operator()<MaxOp>(inner, low);
  }
  if (auto relu = value.getDefiningOp<ReluOp>(); relu && low == 0.0)
    return peel.operator()<MinOp>(relu.getX(), high);
  if (Value inner = peel.operator()<MaxOp>(value, low))
    return peel.operator()<MinOp>(inner, high);
  return {};
}

// --- The factor beside x -----------------------------------------------------

// Each is true if `factor` * coefficient * x is the activation.

/// 1 + erf(x / sqrt 2)
bool isGelu(Value factor, double coefficient, Value x) {
  Value erf = matchPlus(factor, 1.0);
  auto op = erf ? erf.getDefiningOp<ErfOp>() : ErfOp();
  return op && isClose(coefficient, 0.5, x) &&
         isPower(op.getX(), x, 1, M_SQRT1_2);
}

/// 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)), also with x factored out
bool isGeluTanh(Value factor, double coefficient, Value x) {
  constexpr double kCubic = 0.044715;
  const double scale = std::sqrt(2.0 / M_PI);
  Value tanh = matchPlus(factor, 1.0);
  auto op = tanh ? tanh.getDefiningOp<TanhOp>() : TanhOp();
  if (!op || !isClose(coefficient, 0.5, x))
    return false;
  Product inner = flatten(op.getX(), x);
  if (!isClose(inner.coefficient, scale, x))
    return false;
  if (inner.factors.size() == 1) {
    auto sum = inner.factors[0].getDefiningOp<AddOp>();
    auto sides =
        sum ? matchEither(sum, [&](Value v) { return v == x; }) : std::nullopt;
    return sides && isPower(sides->second, x, 3, kCubic);
  }
  if (inner.factors.size() != 2 || !llvm::is_contained(inner.factors, x))
    return false;
  Value square = matchPlus(
      inner.factors[0] == x ? inner.factors[1] : inner.factors[0], 1.0);
  return square && isPower(square, x, 2, kCubic);
}

bool isSilu(Value factor, double coefficient, Value x) {
  auto sigmoid = factor.getDefiningOp<SigmoidOp>();
  return sigmoid && sigmoid.getX() == x && isClose(coefficient, 1.0, x);
}

/// clip(x + 3, 0, 6) / 6, or the hard sigmoid of slope 1/6
bool isHardSwish(Value factor, double coefficient, Value x) {
  if (auto sigmoid = factor.getDefiningOp<HardSigmoidOp>())
    return sigmoid.getX() == x && isClose(coefficient, 1.0, x) &&
           isClose(sigmoid.getAlpha().convertToDouble(), 1.0 / 6, x) &&
           isClose(sigmoid.getBeta().convertToDouble(), 0.5, x);
  Value clipped = matchClip(factor, 0.0, 6.0);
  return clipped && isClose(coefficient, 1.0 / 6, x) &&
         matchPlus(clipped, 3.0) == x;
}

using IsActivation = bool (*)(Value factor, double coefficient, Value x);

/// The values in the tree of multiplications under `value`: one of them is x.
void collectCandidates(Value value, SmallVectorImpl<Value> &candidates) {
  auto *op = value.getDefiningOp();
  bool isScaling = isa_and_present<MulOp>(op) ||
                   (isa_and_present<DivOp>(op) && getSplat(op->getOperand(1)));
  if (candidates.size() >= kMaxFactors)
    return;
  candidates.push_back(value);
  if (!isScaling)
    return;
  for (Value operand : op->getOperands())
    if (!getSplat(operand))
      collectCandidates(operand, candidates);
}

/// A product that contains x and a function of x = the activation
template <typename Root, typename Activation>
struct RecognizeProduct : OpRewritePattern<Root> {
  RecognizeProduct(MLIRContext *context, DecisionLog &log, IsActivation matches)
      : OpRewritePattern<Root>(context), log(log), matches(matches) {}

  LogicalResult matchAndRewrite(Root op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat(op.getResult()))
      return rewriter.notifyMatchFailure(op, "of integers");
    SmallVector<Value> candidates;
    for (Value operand : op->getOperands())
      collectCandidates(operand, candidates);
    for (Value x : candidates) {
      Product product = flatten(op.getResult(), x);
      if (product.factors.size() != 2 || x.getType() != op.getType())
        continue;
      auto *found = llvm::find(product.factors, x);
      if (found == product.factors.end())
        continue;
      Value factor = product.factors[found == product.factors.begin() ? 1 : 0];
      if (!matches(factor, product.coefficient, x))
        continue;
      log.add(op, "recognised", Activation::getOperationName());
      rewriter.replaceOpWithNewOp<Activation>(op, x);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no function of a factor");
  }

  DecisionLog &log;
  IsActivation matches;
};

// --- Others ------------------------------------------------------------------

/// 1 / (1 + exp(-x)) = sigmoid(x)
template <typename Root> struct RecognizeSigmoid : OpRewritePattern<Root> {
  RecognizeSigmoid(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern<Root>(context), log(log) {}

  LogicalResult matchAndRewrite(Root op,
                                PatternRewriter &rewriter) const override {
    if (op->getNumOperands() == 2 && !isSplat(op->getOperand(0), 1.0))
      return rewriter.notifyMatchFailure(op, "not a reciprocal");
    Value sum = op->getOperands().back();
    Value exp = matchPlus(sum, 1.0);
    auto power = exp ? exp.getDefiningOp<ExpOp>() : ExpOp();
    auto negation = power ? power.getX().getDefiningOp<NegOp>() : NegOp();
    if (!negation)
      return rewriter.notifyMatchFailure(op, "not of 1 + exp(-x)");
    log.add(op, "recognised", SigmoidOp::getOperationName());
    rewriter.replaceOpWithNewOp<SigmoidOp>(op, negation.getX());
    return success();
  }

  DecisionLog &log;
};

/// clip(x + 3, 0, 6) / 6 = hard_sigmoid(x, 1/6, 1/2); clip(a x + b, 0, 1)
template <typename Root> struct RecognizeHardSigmoid : OpRewritePattern<Root> {
  RecognizeHardSigmoid(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern<Root>(context), log(log) {}

  LogicalResult matchAndRewrite(Root op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat(op.getResult()))
      return rewriter.notifyMatchFailure(op, "of integers");
    double scale = 1.0;
    Value clipped = matchClip(op.getResult(), 0.0, 1.0);
    if (!clipped) {
      Product product = flatten(op.getResult(), Value());
      scale = product.coefficient;
      if (product.factors.size() != 1 ||
          !isClose(scale, 1.0 / 6, op.getResult()))
        return rewriter.notifyMatchFailure(op, "not a sixth of a clip");
      clipped = matchClip(product.factors[0], 0.0, 6.0);
    }
    auto sum = clipped ? clipped.getDefiningOp<AddOp>() : AddOp();
    auto sides =
        sum ? matchEither(sum, [](Value v) { return getSplat(v).has_value(); })
            : std::nullopt;
    if (!sides)
      return rewriter.notifyMatchFailure(op, "not of a x + b");
    Product line = flatten(sides->second, Value());
    if (line.factors.size() != 1)
      return rewriter.notifyMatchFailure(op, "not of a x + b");
    log.add(op, "recognised", HardSigmoidOp::getOperationName());
    rewriter.replaceOpWithNewOp<HardSigmoidOp>(
        op, op.getType(), line.factors[0],
        rewriter.getF64FloatAttr(line.coefficient * scale),
        rewriter.getF64FloatAttr(*getSplat(sides->first) * scale));
    return success();
  }

  DecisionLog &log;
};

struct RecognizeActivationsPass
    : impl::RecognizeActivationsPassBase<RecognizeActivationsPass> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    DecisionLog log(getOperation(), "recognize-activations");
    RewritePatternSet patterns(context);
    addProduct<MulOp>(patterns, log);
    addProduct<DivOp>(patterns, log);
    patterns.add<RecognizeSigmoid<ReciprocalOp>, RecognizeSigmoid<DivOp>,
                 RecognizeHardSigmoid<MulOp>, RecognizeHardSigmoid<DivOp>,
                 RecognizeHardSigmoid<MinOp>, RecognizeHardSigmoid<MaxOp>>(
        context, log);
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

  template <typename Root>
  static void addProduct(RewritePatternSet &patterns, DecisionLog &log) {
    MLIRContext *context = patterns.getContext();
    patterns.add<RecognizeProduct<Root, GeluOp>>(context, log, isGelu);
    patterns.add<RecognizeProduct<Root, GeluTanhOp>>(context, log, isGeluTanh);
    patterns.add<RecognizeProduct<Root, SiluOp>>(context, log, isSilu);
    patterns.add<RecognizeProduct<Root, HardSwishOp>>(context, log,
                                                      isHardSwish);
  }
};

} // namespace
} // namespace tcc

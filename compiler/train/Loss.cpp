#include "compiler/train/Loss.h"

#include "compiler/train/Optimizer.h"
#include "compiler/train/RowChunks.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

static std::string print(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static int64_t getRank(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getRank();
}

static const LossRule &getRule(const LossRecipe &recipe) {
  return getLosses()[int(recipe.kind)];
}

LossTarget getTarget(const LossRecipe &recipe) {
  return getRule(recipe).target;
}

bool hasTarget(const LossRecipe &recipe) {
  return getTarget(recipe) != LossTarget::None;
}

LossRecipe LossRecipe::getDefaults(LossKind kind) {
  LossRecipe recipe;
  recipe.kind = kind;
  if (auto *setDefaults = getRule(recipe).setDefaults)
    setDefaults(recipe);
  return recipe;
}

int64_t getClassAxis(const LossRecipe &recipe, RankedTensorType logits) {
  return getTarget(recipe) == LossTarget::Tokens ? logits.getRank() - 1 : 1;
}

bool mayMistakePositions(const LossRecipe &recipe, RankedTensorType logits,
                         Type places) {
  return getTarget(recipe) == LossTarget::Classes && logits.getRank() > 2 &&
         cast<RankedTensorType>(places).getShape() ==
             logits.getShape().drop_back();
}

RankedTensorType getTargetType(const LossRecipe &recipe,
                               RankedTensorType logits, Problems &problems) {
  auto refuse = [&](const char *expected) {
    problems.add(ProblemClass::usage, std::string("[loss]: the logits are ") +
                                          print(logits) + ", expected " +
                                          expected);
    return RankedTensorType();
  };
  if (!isa<FloatType>(logits.getElementType()) || !logits.hasStaticShape())
    return refuse("floats of a static shape");
  LossTarget target = getTarget(recipe);
  switch (target) {
  case LossTarget::Classes:
  case LossTarget::Tokens: {
    bool isText = target == LossTarget::Tokens;
    if (logits.getRank() < (isText ? 3 : 2))
      return refuse(isText ? "[batch, position, token]"
                           : "[batch, class, ...]");
    if (isText && recipe.shift && logits.getDimSize(logits.getRank() - 2) < 2)
      return refuse("two positions or more");
    SmallVector<int64_t> shape(logits.getShape());
    shape.erase(shape.begin() + getClassAxis(recipe, logits));
    return RankedTensorType::get(shape,
                                 IntegerType::get(logits.getContext(), 64));
  }
  case LossTarget::Shares:
    if (logits.getRank() < 2)
      return refuse("[batch, class, ...]");
    return logits;
  case LossTarget::Values:
  case LossTarget::Truths:
    return logits;
  case LossTarget::None:
    if (logits.getNumElements() != 1)
      return refuse("one element");
    return nullptr;
  }
  llvm_unreachable("covered switch");
}

class LossEmitter {
public:
  LossEmitter(const Settings &settings, const LossRecipe &recipe, Value weights)
      : settings(settings), emitter(settings.getEmitter()), recipe(recipe),
        weights(weights) {}

  Loss emit(Value logits, Value target);

  // What rules compute with.
  const LossRecipe &getRecipe() const { return recipe; }
  Expr wrap(Value value) const { return {value, &emitter}; }
  Loss crossEntropy(Value logits, Value target, int64_t axis);
  Loss nextTokens(Value logits, Value target);
  Loss softCrossEntropy(Value logits, Value shares);
  /// The mean of what each element loses.
  Loss makeMean(Value losses);

private:
  Expr smooth(Expr loss, Value logProbabilities, int64_t axis);
  Value lookUp(Value logProbabilities, Value classes, int64_t axis);
  void shiftPositions(Value &logits, Value &target);
  Value sum(Value value) {
    return emitter.emit<ReduceOp>(
        ReduceKind::sum, value,
        llvm::to_vector(llvm::seq<int64_t>(0, getRank(value))));
  }
  /// The weights of the samples, with x's type.
  Value spreadWeights(Value x);
  /// The sum over elements, each times the weight of its sample.
  Value sumWeighted(Value x) {
    return sum(weights ? emitter.emit<MulOp>(x, spreadWeights(x)) : x);
  }
  Loss average(Loss loss);

  const Settings &settings;
  const TensorEmitter &emitter;
  const LossRecipe &recipe;
  Value weights;
};

Value LossEmitter::spreadWeights(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  Extents extents = getExtents(weights);
  extents.resize(type.getRank(), emitter.builder.getAffineConstantExpr(1));
  Value column = emitter.reshape(emitter.castTo(weights, type), extents);
  return emitter.emit<BroadcastOp>(type, column);
}

/// Position i predicts the token at i + 1.
void LossEmitter::shiftPositions(Value &logits, Value &target) {
  int64_t axis = getRank(target) - 1;
  int64_t count = cast<RankedTensorType>(target.getType()).getDimSize(axis) - 1;
  logits = emitSlice(emitter, logits, axis, 0, count);
  target = emitSlice(emitter, target, axis, 1, count);
}

/// The element of each row that `classes` says, as the sum of it and zeros:
/// that is part of the kernel which computes the rows, so that they need not be
/// stored. Classes out of range are found where they are looked up in the list
/// of all; none counts from the end.
Value LossEmitter::lookUp(Value logProbabilities, Value classes, int64_t axis) {
  auto type = cast<RankedTensorType>(logProbabilities.getType());
  auto indices = withElementType(type, emitter.builder.getI64Type());
  auto list = RankedTensorType::get({type.getDimSize(axis)},
                                    emitter.builder.getI64Type());
  Value all = emitter.builder.create<IotaOp>(emitter.loc, list, 0);
  Value known = emitter.emit<GatherOp>(all, classes, 0, /*nonnegative=*/true);
  Value places = emitter.builder.create<IotaOp>(emitter.loc, indices, axis);
  Expr isPlace =
      compare(CompareKind::eq, {places, &emitter},
              {emitter.broadcastBack(known, places, axis), &emitter});
  Expr picked = select(isPlace, Expr{logProbabilities, &emitter}, 0.0);
  return emitter.emit<ReduceOp>(ReduceKind::sum, picked.value, axis);
}

/// A share of each target is that of all classes alike.
Expr LossEmitter::smooth(Expr loss, Value logProbabilities, int64_t axis) {
  if (recipe.labelSmoothing <= 0)
    return loss;
  int64_t classCount =
      cast<RankedTensorType>(logProbabilities.getType()).getDimSize(axis);
  Expr all{emitter.emit<ReduceOp>(ReduceKind::sum, logProbabilities, axis),
           &emitter};
  Expr smoothing = settings.get("label_smoothing");
  Expr smoothed = loss * spread(1.0 - smoothing, loss) -
                  all * spread(smoothing / double(classCount), all);
  // Where it is set to 0 no logit of -inf makes 0 times infinity.
  return select(spread(smoothing, loss) > 0.0, smoothed, loss);
}

Loss LossEmitter::crossEntropy(Value logits, Value target, int64_t axis) {
  Value logProbabilities = emitter.emit<LogSoftmaxOp>(logits, axis);
  auto isValid = emitter.emit<CompareOp>(
      CompareKind::ne, target,
      emitter.splat(target, double(recipe.ignoreIndex)));
  Value classes =
      emitter.emit<SelectOp>(isValid, target, emitter.splat(target, 0.0));
  Expr surprise = -Expr{lookUp(logProbabilities, classes, axis), &emitter};
  Expr loss = smooth(surprise, logProbabilities, axis);
  Expr counted = select(Expr{isValid, &emitter}, loss, 0.0);
  Value best = emitter.emit<ArgReduceOp>(ReduceKind::max, logits, axis,
                                         /*select_last=*/false);
  Value isCounted = isValid, weightOfEach;
  if (weights) {
    weightOfEach = spreadWeights(counted.value);
    isCounted = emitter.emit<AndOp>(isValid,
                                    (Expr{weightOfEach, &emitter} > 0.0).value);
  }
  Value isRight = emitter.emit<AndOp>(
      isCounted, emitter.emit<CompareOp>(CompareKind::eq, best, target));
  Type elementType = getElementTypeOrSelf(logits);
  Type i64 = emitter.builder.getI64Type();
  return {sumWeighted(counted.value),
          sumWeighted(emitter.emit<CastOp>(isValid, elementType)),
          sum(emitter.emit<CastOp>(isRight, i64)),
          cast<RankedTensorType>(target.getType()).getNumElements(),
          {logits, target, axis, isCounted, surprise.value, weightOfEach}};
}

/// All places count; what metrics compare is the class with the largest share.
Loss LossEmitter::softCrossEntropy(Value logits, Value shares) {
  constexpr int64_t kAxis = 1;
  Value logProbabilities = emitter.emit<LogSoftmaxOp>(logits, kAxis);
  Expr product = Expr{shares, &emitter} * Expr{logProbabilities, &emitter};
  Expr surprise = -Expr{
      emitter.emit<ReduceOp>(ReduceKind::sum, product.value, kAxis), &emitter};
  Loss loss = makeMean(smooth(surprise, logProbabilities, kAxis).value);
  auto findBest = [&](Value of) {
    return emitter.emit<ArgReduceOp>(ReduceKind::max, of, kAxis,
                                     /*select_last=*/false);
  };
  Value target = findBest(shares), weightOfEach = loss.compared.weights;
  auto booleans = withElementType(cast<RankedTensorType>(target.getType()),
                                  emitter.builder.getI1Type());
  Value isCounted = weightOfEach ? (Expr{weightOfEach, &emitter} > 0.0).value
                                 : emitter.splat(booleans, 1.0);
  Value isRight = emitter.emit<AndOp>(
      isCounted,
      emitter.emit<CompareOp>(CompareKind::eq, findBest(logits), target));
  loss.correct =
      sum(emitter.emit<CastOp>(isRight, emitter.builder.getI64Type()));
  loss.compared = {logits,    target,         kAxis,
                   isCounted, surprise.value, weightOfEach};
  return loss;
}

/// All elements count.
Loss LossEmitter::makeMean(Value losses) {
  auto type = cast<RankedTensorType>(losses.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  int64_t count = type.getNumElements();
  Loss loss = {sumWeighted(losses), emitter.splat(scalar, double(count)),
               nullptr, count};
  if (weights) {
    loss.compared.weights = spreadWeights(losses);
    loss.count = sum(loss.compared.weights);
  }
  return loss;
}

/// The mean of a batch as one loss, none where no target is valid.
Loss LossEmitter::average(Loss loss) {
  Expr total{loss.total, &emitter}, count{loss.count, &emitter};
  Expr hasTargets = count > 0.0;
  loss.total = select(hasTargets, total / count, 0.0).value;
  loss.count = select(hasTargets, count.like(1.0), 0.0).value;
  loss.nominalCount = 1;
  return loss;
}

Loss LossEmitter::nextTokens(Value logits, Value target) {
  if (recipe.shift)
    shiftPositions(logits, target);
  return crossEntropy(logits, target, getRank(logits) - 1);
}

Loss LossEmitter::emit(Value logits, Value target) {
  Loss loss = getRule(recipe).emit(*this, logits, target);
  if (!loss.compared.logits && target) {
    loss.compared.logits = logits;
    loss.compared.target = target;
  }
  bool isMean = recipe.reduction == LossReduction::MeanOfMeans;
  return isMean ? average(loss) : loss;
}

// --- The table ---------------------------------------------------------------

static Loss emitSquares(LossEmitter &emitter, Value logits, Value target) {
  Expr difference = emitter.wrap(logits) - emitter.wrap(target);
  return emitter.makeMean((difference * difference).value);
}

/// -t log s(x) - (1 - t) log(1 - s(x)), where s is the sigmoid.
static Loss emitBinary(LossEmitter &emitter, Value logits, Value target) {
  Expr x = emitter.wrap(logits), t = emitter.wrap(target);
  return emitter.makeMean((softplus(x) - x * t).value);
}

/// Squares up to a distance of delta, from there on straight lines.
static Loss emitHuber(LossEmitter &emitter, Value logits, Value target) {
  double delta = emitter.getRecipe().own.numbers.at("delta");
  Expr difference = emitter.wrap(logits) - emitter.wrap(target);
  Expr distance = difference.make<AbsOp>();
  Expr square = difference * difference * 0.5;
  Expr line = (distance - 0.5 * delta) * delta;
  return emitter.makeMean(select(distance < delta, square, line).value);
}

static const Key kHuberKeys[] = {
    {.name = "loss.delta",
     .field = [](Recipe &recipe) -> Field {
       return &recipe.loss.own.numbers["delta"];
     },
     .initial = "1",
     .summary = "distance from which the loss is linear",
     .range = &kPositive},
};

ArrayRef<LossRule> getLosses() {
  static const LossRule rules[] = {
      {.kind = {"cross_entropy", "target label_smoothing ignore_index"},
       .target = LossTarget::Classes,
       .emit =
           [](LossEmitter &emitter, Value logits, Value target) {
             return emitter.crossEntropy(logits, target, 1);
           }},
      {.kind = {"causal_lm", "target label_smoothing ignore_index shift"},
       .target = LossTarget::Tokens,
       .emit = [](LossEmitter &emitter, Value logits,
                  Value target) { return emitter.nextTokens(logits, target); }},
      {.kind = {"soft_cross_entropy", "target label_smoothing"},
       .target = LossTarget::Shares,
       .emit =
           [](LossEmitter &emitter, Value logits, Value target) {
             return emitter.softCrossEntropy(logits, target);
           }},
      {.kind = {"mse", "target"},
       .target = LossTarget::Values,
       .emit = emitSquares},
      {.kind = {"bce", "target"},
       .target = LossTarget::Truths,
       .emit = emitBinary},
      {.kind = {"huber", "target", kHuberKeys},
       .target = LossTarget::Values,
       .setDefaults =
           [](LossRecipe &recipe) { recipe.own.numbers["delta"] = 1; },
       .emit = emitHuber},
      {.kind = {"output"},
       .target = LossTarget::None,
       .emit = [](LossEmitter &emitter, Value loss,
                  Value) { return emitter.makeMean(loss); }},
  };
  return rules;
}

Loss emitLoss(const Settings &settings, const LossRecipe &recipe,
              const LossOperands &operands) {
  return LossEmitter(settings, recipe, operands.weights)
      .emit(operands.logits, operands.target);
}

} // namespace tcc::train

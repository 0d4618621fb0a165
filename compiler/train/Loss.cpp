#include "compiler/train/Loss.h"

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

int64_t getClassAxis(const LossRecipe &recipe, RankedTensorType logits) {
  return recipe.kind == LossKind::CausalLm ? logits.getRank() - 1 : 1;
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
  switch (recipe.kind) {
  case LossKind::CrossEntropy:
  case LossKind::CausalLm: {
    bool isText = recipe.kind == LossKind::CausalLm;
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
  case LossKind::Mse:
  case LossKind::Bce:
    return logits;
  case LossKind::Output:
    if (logits.getNumElements() != 1)
      return refuse("one element");
    return nullptr;
  }
  llvm_unreachable("covered switch");
}

namespace {

class LossEmitter {
public:
  LossEmitter(OpBuilder &builder, Location loc, const LossRecipe &recipe,
              Value weights)
      : emitter(builder, loc), recipe(recipe), weights(weights) {}

  Loss emit(Value logits, Value target);

private:
  Loss crossEntropy(Value logits, Value target, int64_t axis);
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
  Loss makeMean(Value losses);
  Loss emitSum(Value logits, Value target);
  Loss average(Loss loss);

  TensorEmitter emitter;
  const LossRecipe &recipe;
  Value weights;
};

} // namespace

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
/// of all.
Value LossEmitter::lookUp(Value logProbabilities, Value classes, int64_t axis) {
  auto type = cast<RankedTensorType>(logProbabilities.getType());
  auto indices = withElementType(type, emitter.builder.getI64Type());
  auto list = RankedTensorType::get({type.getDimSize(axis)},
                                    emitter.builder.getI64Type());
  Value all = emitter.builder.create<IotaOp>(emitter.loc, list, 0);
  Value known = emitter.emit<GatherOp>(all, classes, 0);
  Value places = emitter.builder.create<IotaOp>(emitter.loc, indices, axis);
  Expr isPlace =
      compare(CompareKind::eq, {places, &emitter},
              {emitter.broadcastBack(known, places, axis), &emitter});
  Expr picked = select(isPlace, Expr{logProbabilities, &emitter}, 0.0);
  return emitter.emit<ReduceOp>(ReduceKind::sum, picked.value, axis);
}

Loss LossEmitter::crossEntropy(Value logits, Value target, int64_t axis) {
  Value logProbabilities = emitter.emit<LogSoftmaxOp>(logits, axis);
  auto isValid = emitter.emit<CompareOp>(
      CompareKind::ne, target,
      emitter.splat(target, double(recipe.ignoreIndex)));
  Value classes =
      emitter.emit<SelectOp>(isValid, target, emitter.splat(target, 0.0));
  Expr loss = -Expr{lookUp(logProbabilities, classes, axis), &emitter};
  if (double smoothing = recipe.labelSmoothing; smoothing > 0) {
    int64_t classCount =
        cast<RankedTensorType>(logits.getType()).getDimSize(axis);
    Expr all{emitter.emit<ReduceOp>(ReduceKind::sum, logProbabilities, axis),
             &emitter};
    loss = loss * (1 - smoothing) - all * (smoothing / double(classCount));
  }
  Expr counted = select(Expr{isValid, &emitter}, loss, 0.0);
  Value best = emitter.emit<ArgReduceOp>(ReduceKind::max, logits, axis,
                                         /*select_last=*/false);
  Value isRight = emitter.emit<AndOp>(
      isValid, emitter.emit<CompareOp>(CompareKind::eq, best, target));
  if (weights) {
    Expr spread{spreadWeights(counted.value), &emitter};
    isRight = emitter.emit<AndOp>(isRight, (spread > 0.0).value);
  }
  Type elementType = getElementTypeOrSelf(logits);
  Type i64 = emitter.builder.getI64Type();
  return {sumWeighted(counted.value),
          sumWeighted(emitter.emit<CastOp>(isValid, elementType)),
          sum(emitter.emit<CastOp>(isRight, i64)),
          cast<RankedTensorType>(target.getType()).getNumElements()};
}

/// All elements count.
Loss LossEmitter::makeMean(Value losses) {
  auto type = cast<RankedTensorType>(losses.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  int64_t count = type.getNumElements();
  Value total = sumWeighted(losses);
  if (weights)
    return {total, sum(spreadWeights(losses)), nullptr, count};
  return {total, emitter.splat(scalar, double(count)), nullptr, count};
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

Loss LossEmitter::emit(Value logits, Value target) {
  Loss loss = emitSum(logits, target);
  bool isMean = recipe.reduction == LossReduction::MeanOfMeans;
  return isMean ? average(loss) : loss;
}

Loss LossEmitter::emitSum(Value logits, Value target) {
  Expr x{logits, &emitter}, t{target, &emitter};
  switch (recipe.kind) {
  case LossKind::CausalLm:
    if (recipe.shift)
      shiftPositions(logits, target);
    return crossEntropy(logits, target, getRank(logits) - 1);
  case LossKind::CrossEntropy:
    return crossEntropy(logits, target, 1);
  case LossKind::Mse:
    return makeMean(((x - t) * (x - t)).value);
  case LossKind::Bce:
    // -t log s(x) - (1 - t) log(1 - s(x)), where s is the sigmoid.
    return makeMean((softplus(x) - x * t).value);
  case LossKind::Output:
    return makeMean(logits);
  }
  llvm_unreachable("covered switch");
}

Loss emitLoss(OpBuilder &builder, Location loc, const LossRecipe &recipe,
              const LossOperands &operands) {
  return LossEmitter(builder, loc, recipe, operands.weights)
      .emit(operands.logits, operands.target);
}

} // namespace tcc::train

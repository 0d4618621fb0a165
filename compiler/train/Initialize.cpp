#include "compiler/train/Initialize.h"

#include "dialects/graph/ops/TensorEmitter.h"

#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace mlir;
using namespace tcc;
using namespace tcc::train;
using namespace tcc::graph;

/// What layers usually begin with.
static Initializer getUsual(const ParameterTraits &parameter) {
  if (parameter.isEmbedding)
    return Initializer::Normal;
  if (parameter.rank >= 2)
    return Initializer::Kaiming;
  return parameter.isNorm && !parameter.isBias ? Initializer::Ones
                                               : Initializer::Zeros;
}

static std::optional<Initializer> find(const Recipe &recipe,
                                       const ParameterTraits &parameter) {
  for (const Override<Initializer> &rule : recipe.init)
    if (rule.pattern.matches(parameter))
      return rule.value;
  if (matchesAny(recipe.params.reinit, parameter))
    return getUsual(parameter);
  return std::nullopt;
}

/// Half the width of the interval that torch.nn.init draws from: weights are
/// [out, in, window...].
static double getBound(Initializer kind, ArrayRef<int64_t> shape) {
  double window = 1;
  for (int64_t extent : shape.drop_front(2))
    window *= double(extent);
  double fanIn = double(shape[1]) * window, fanOut = double(shape[0]) * window;
  if (kind == Initializer::Kaiming)
    return std::sqrt(6 / fanIn);
  return std::sqrt(6 / (fanIn + fanOut));
}

static Value emitInitial(const TensorEmitter &emitter, Initializer kind,
                         RankedTensorType type, int64_t seed, uint32_t key) {
  if (kind == Initializer::Zeros || kind == Initializer::Ones)
    return emitter.splat(type, kind == Initializer::Ones);
  Builder &builder = emitter.builder;
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  auto constant = [&](int64_t value) {
    return emitter.emit<ConstantOp>(
        scalar, DenseElementsAttr::get(scalar, APInt(64, value, true)));
  };
  auto random = [&](RandomKind kind) -> Expr {
    return {
        emitter.emit<RandomOp>(type, kind, constant(seed), constant(0), key),
        &emitter};
  };
  if (kind == Initializer::Normal)
    return random(RandomKind::normal).value;
  Expr uniform = random(RandomKind::uniform);
  if (kind == Initializer::Uniform)
    return uniform.value;
  return ((2.0 * uniform - 1.0) * getBound(kind, type.getShape())).value;
}

Initial tcc::train::makeInitial(const Recipe &recipe,
                                const ParameterTraits &parameter,
                                Problems &problems) {
  std::optional<Initializer> kind = find(recipe, parameter);
  if (!kind)
    return nullptr;
  bool hasFans = *kind == Initializer::Kaiming || *kind == Initializer::Xavier;
  if (hasFans && parameter.rank < 2) {
    problems.add(ProblemClass::badBytes,
                 "[init]: parameter '" + parameter.name +
                     "' needs two axes or more for kaiming and xavier");
    return nullptr;
  }
  // By name, so that other parameters do not change it.
  auto key = uint32_t(llvm::xxh3_64bits(parameter.name));
  return [kind = *kind, seed = recipe.seed,
          key](OpBuilder &builder, Location loc, RankedTensorType type) {
    return emitInitial(TensorEmitter(builder, loc), kind, type, seed, key);
  };
}

Initial tcc::train::makeModelValue(const Parameter &row) {
  return [&row](OpBuilder &builder, Location loc, RankedTensorType type) {
    TensorEmitter emitter(builder, loc);
    Value value = emitter.emit<WeightOp>(row.type, row.weights.front());
    if (row.isTransposed)
      value = emitter.emit<TransposeOp>(value, ArrayRef<int64_t>{1, 0});
    return emitter.castTo(value, type);
  };
}

Initial tcc::train::narrow(const Initial &initial, RankedTensorType type) {
  return [=](OpBuilder &builder, Location loc, RankedTensorType stored) {
    return TensorEmitter(builder, loc)
        .castTo(initial(builder, loc, type), stored);
  };
}

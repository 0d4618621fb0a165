#include "compiler/train/Update.h"

#include "compiler/train/LossScale.h"
#include "compiler/train/MicroBatches.h"
#include "compiler/train/Optimizer.h"
#include "compiler/train/Rounding.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace tcc::train;
using namespace tcc::graph;

static std::string getSlotName(StringRef slot, StringRef owner) {
  return (slot + "/" + owner).str();
}

void tcc::train::declareUpdate(VariableTable &table, const Recipe &recipe,
                               ArrayRef<TrainedType> trained) {
  declareSettings(table, recipe);
  declareLossScale(table);
  for (const TrainedType &parameter : trained) {
    const std::string &owner = parameter.traits.name;
    for (StringRef slot : getRule(recipe.optimizer).getSlots(recipe))
      table.declare(getSlotName(slot, owner), VariableKind::slot,
                    parameter.type, 0.0, owner);
    if (recipe.params.ema)
      table.declare({getSlotName("ema", owner), VariableKind::ema,
                     parameter.type, table.get(owner).initial,
                     /*isZero=*/false, owner});
  }
}

void tcc::train::declareSlots(VariableTable &table, const Recipe &recipe,
                              const DividedBucket &bucket) {
  for (StringRef slot : getRule(recipe.optimizer).getSlots(recipe))
    declarePart(table, bucket, slot, VariableKind::slot);
  // The session begins it: its values are those of a rank.
  if (recipe.params.ema)
    declarePart(table, bucket, "ema", VariableKind::ema);
}

namespace {

/// The norm of all gradients together, a scalar of f64, and those of each
/// parameter's, a row of f32 in the order of the parameters' names.
struct Norms {
  Expr all;
  Value each; ///< null where the recipe does not ask for them
};

/// The update of one step. What it says about "f64" is a scalar of it.
class Update {
public:
  Update(StepFunction &step, const Recipe &recipe)
      : step(step), recipe(recipe), emitter(step.getBuilder(), step.getLoc()),
        settings(step, emitter), iteration(readCount(StepField::iteration)),
        updates(readCount(StepField::updates)),
        rates(emitSchedule(settings, iteration, updates)),
        lossScale(step, settings, emitter) {}

  Metrics emit(const Sums &sums);

private:
  Expr readCount(StepField field) {
    return toNumber(emitter, step.read(field));
  }
  Expr wrap(Value value) const { return {value, &emitter}; }
  Expr isFinite(Expr x) const;
  Expr emitSquare(Value tensor) const;
  Value emitEachNorm(ArrayRef<TrainedParameter> parameters,
                     ArrayRef<Expr> squares, Expr unscale) const;
  Norms emitNorms(const Sums &sums, Expr unscale) const;
  Expr emitClipping(Expr norm) const;
  Expr isSound();
  void check(Expr norm, Expr lossTotal, Expr count);
  void updateParameter(const TrainedParameter &parameter, Expr scale);
  Expr round(StringRef name, Expr value);
  Value getStored(const TrainedParameter &parameter);
  void store(const TrainedParameter &parameter, Value old, Expr next);
  Expr keep(Expr ok, Expr next, Expr old) const;
  void updateMean(StringRef owner, Expr value);
  void write(const std::string &name, Expr ok, Expr next);
  void advance();

  StepFunction &step;
  const Recipe &recipe;
  TensorEmitter emitter;
  Settings settings;
  Expr iteration, updates;
  Rates rates;
  LossScale lossScale;
  // What check finds, i1: no step before has stopped the training; this one is
  // applied; it does not even change buffers; a gradient is not finite.
  Expr sound, ok, isVoid, overflows;
};

} // namespace

static Expr operator&(Expr x, Expr y) { return x.make<AndOp>(y); }
static Expr operator|(Expr x, Expr y) { return x.make<OrOp>(y); }
static Expr operator!(Expr x) { return x.make<NotOp>(); }

// --- Scaling, clipping and the check -----------------------------------------

/// Squares are summed in f64, so that none overflows that is not itself out of
/// bounds.
Expr Update::emitSquare(Value tensor) const {
  auto f64 = RankedTensorType::get({}, emitter.builder.getF64Type());
  Expr x = wrap(emitter.castTo(tensor, f64));
  Value square = (x * x).value;
  int64_t rank = cast<RankedTensorType>(square.getType()).getRank();
  if (rank > 0)
    square = emitter.emit<ReduceOp>(
        ReduceKind::sum, square, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  return wrap(square);
}

/// `squares` are of the parameters.
Value Update::emitEachNorm(ArrayRef<TrainedParameter> parameters,
                           ArrayRef<Expr> squares, Expr unscale) const {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, parameters.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return parameters[a].traits.name < parameters[b].traits.name;
  });
  SmallVector<Value> elements;
  AffineExpr one = emitter.builder.getAffineConstantExpr(1);
  for (size_t i : order)
    elements.push_back(emitter.reshape(squares[i].value, one));
  int64_t count = int64_t(elements.size());
  auto f64 = RankedTensorType::get({count}, emitter.builder.getF64Type());
  Expr all = wrap(emitter.emit<ConcatOp>(f64, ValueRange(elements), 0));
  return emitter.castTo(
      (sqrt(all) * spread(unscale, all)).value,
      RankedTensorType::get({count}, emitter.builder.getF32Type()));
}

/// Each rank adds up the squares of what it has. Gradients times `unscale` are
/// those of the mean loss.
Norms Update::emitNorms(const Sums &sums, Expr unscale) const {
  SmallVector<Value> gradients(sums.whole);
  bool hasParts = false;
  if (sums.whole.empty())
    for (const TrainedParameter &parameter : sums.parameters) {
      gradients.push_back(parameter.gradient);
      hasParts |= parameter.bucket != nullptr;
    }
  auto f64 = RankedTensorType::get({}, emitter.builder.getF64Type());
  Expr sum = wrap(emitter.splat(f64, 0.0));
  SmallVector<Expr> squares;
  for (Value gradient : gradients) {
    squares.push_back(emitSquare(gradient));
    sum = sum + squares.back();
  }
  if (hasParts) {
    auto loc = NameLoc::get(emitter.builder.getStringAttr("gradient norm"));
    auto all = emitter.builder.create<AllReduceOp>(loc, sum.value, ArrayAttr(),
                                                   /*group=*/0, /*tree=*/false);
    sum = wrap(all.getSums().front());
  }
  Norms norms = {unscale * sqrt(sum), {}};
  if (recipe.tellsGradNorms)
    norms.each = emitEachNorm(sums.parameters, squares, unscale);
  return norms;
}

/// The factor that makes the norm at most clip_norm.
Expr Update::emitClipping(Expr norm) const {
  Expr factor = settings.get("clip_norm") / (norm + 1e-6);
  return factor.make<MinOp>(factor.like(1.0));
}

Expr Update::isFinite(Expr x) const {
  return !(x.make<IsNanOp>() | x.make<IsInfOp>());
}

Expr Update::isSound() {
  Expr fault = wrap(step.read(StepField::fault));
  return compare(CompareKind::eq, fault, fault.like(0));
}

/// A gradient that is not finite is no fault where the scale of the loss
/// follows.
void Update::check(Expr norm, Expr lossTotal, Expr count) {
  sound = isSound();
  Expr counts = sound & (count > 0.0), isNormFinite = isFinite(norm);
  Expr finite = isFinite(lossTotal) & isFinite(rates.lr) &
                (isNormFinite | lossScale.isDynamic());
  overflows = counts & !isNormFinite;
  Expr stops = (settings.is("on_nan", OnNan::Stop) & (count > 0.0) & !finite) |
               (overflows & lossScale.isExhausted());
  Expr fault = wrap(step.read(StepField::fault));
  step.write(StepField::fault, select(stops, 1.0, fault).value);
  isVoid = !(counts & finite);
  ok = counts & finite & isNormFinite;
}

// --- Variables ---------------------------------------------------------------

Expr Update::keep(Expr ok, Expr next, Expr old) const {
  auto type = cast<RankedTensorType>(old.value.getType());
  if (type.getRank() > 0)
    ok = wrap(emitter.emit<BroadcastOp>(
        withElementType(type, emitter.builder.getI1Type()), ok.value));
  return select(ok, next, old);
}

void Update::write(const std::string &name, Expr ok, Expr next) {
  step.write(name, keep(ok, next, wrap(step.read(name))).value);
}

/// `value` as variable `name` holds it. The random numbers are functions of the
/// seed, the step, the name and the place.
Expr Update::round(StringRef name, Expr value) {
  auto type = cast<RankedTensorType>(value.value.getType());
  auto stored = cast<RankedTensorType>(step.read(name).getType());
  if (type != stored && recipe.rounding == Rounding::Stochastic) {
    auto key = uint32_t(llvm::xxh3_64bits(("round/" + name).str()));
    Value random = emitter.emit<RandomOp>(type, RandomKind::uniform,
                                          step.read(StepField::seed),
                                          step.read(StepField::iteration), key);
    value = roundRandomly(value, wrap(random),
                          cast<FloatType>(stored.getElementType()));
  }
  return wrap(emitter.castTo(value.value, stored));
}

Value Update::getStored(const TrainedParameter &parameter) {
  return parameter.bucket ? emitPart(step, *parameter.bucket)
                          : step.read(parameter.traits.name);
}

/// `old` is what is stored. No part is rounded randomly: the recipe is refused.
void Update::store(const TrainedParameter &parameter, Value old, Expr next) {
  const std::string &name = parameter.traits.name;
  if (!parameter.bucket)
    return write(name, ok, round(name, next));
  auto stored = cast<RankedTensorType>(old.getType());
  Expr rounded = wrap(emitter.castTo(next.value, stored));
  emitGather(step, *parameter.bucket, keep(ok, rounded, wrap(old)).value);
}

/// `scale` is the factor of the gradient.
void Update::updateParameter(const TrainedParameter &parameter, Expr scale) {
  const ParameterTraits &traits = parameter.traits;
  auto type = cast<RankedTensorType>(parameter.gradient.getType());
  StringRef owner = parameter.bucket ? parameter.bucket->name : traits.name;
  Value stored = getStored(parameter);
  Value wide = parameter.bucket ? emitter.castTo(stored, type)
                                : step.readAs(traits.name, type);
  Stepped old{wrap(wide), {}};
  for (StringRef slot : getRule(recipe.optimizer).getSlots(recipe))
    old.slots.push_back(wrap(step.read(getSlotName(slot, owner))));
  Expr gradient = wrap(parameter.gradient);
  Expr limit = spread(settings.get("clip_value"), gradient);
  gradient = gradient * spread(scale, gradient);
  gradient = gradient.make<MinOp>(limit).make<MaxOp>(-limit);
  Factors factors = emitFactors(
      settings, recipe, findGroup(recipe.optimizer, traits), rates, updates);
  bool decays = !matchesAny(recipe.optimizer.noDecay, traits);
  Stepped next = getRule(recipe.optimizer)
                     .emit(recipe.optimizer, factors, old, gradient, decays);
  store(parameter, stored, next.parameter);
  for (auto [slot, value] :
       llvm::zip_equal(getRule(recipe.optimizer).getSlots(recipe), next.slots))
    write(getSlotName(slot, owner), ok, value);
  if (recipe.params.ema)
    updateMean(owner, next.parameter);
}

/// As torch.optim.swa_utils: the first update sets the mean.
void Update::updateMean(StringRef owner, Expr value) {
  std::string name = getSlotName("ema", owner);
  Expr mean = wrap(step.read(name));
  Expr weight =
      select(updates > 0.0, updates.like(1.0 - *recipe.params.ema), 1.0);
  write(name, ok, mean + spread(weight, mean) * (value - mean));
}

/// A step after one that stopped is none: a device may have begun it.
void Update::advance() {
  Expr passes = wrap(step.read(StepField::iteration));
  Expr applied = wrap(step.read(StepField::updates));
  write(tcc::format::variableOf(StepField::iteration), sound, passes + 1.0);
  write(tcc::format::variableOf(StepField::updates), ok, applied + 1.0);
  emitNextUpdate(step, sound);
  lossScale.advance(ok, overflows);
}

Metrics Update::emit(const Sums &sums) {
  Expr lossTotal = wrap(sums.loss), count = wrap(sums.count);
  Expr unscale = double(sums.nominalCount) / (count * lossScale.get());
  Norms norms = emitNorms(sums, unscale);
  Expr norm = norms.all;
  Expr scale = unscale * emitClipping(norm);
  check(norm, lossTotal, count);
  for (const TrainedParameter &parameter : sums.parameters)
    updateParameter(parameter, scale);
  advance();
  return {.loss = (lossTotal / count).value,
          .gradNorm = norm.value,
          .gradNorms = norms.each,
          .lr = rates.lr.value,
          .lossScale = lossScale.get().value,
          .skipped = (!ok).value,
          .isVoid = isVoid.value};
}

Metrics tcc::train::emitUpdate(StepFunction &step, const Recipe &recipe,
                               const Sums &sums) {
  return Update(step, recipe).emit(sums);
}

#include "compiler/train/Optimizer.h"

using namespace mlir;
using namespace tcc::train;
using namespace tcc::graph;

std::optional<size_t> tcc::train::findGroup(const OptimizerRecipe &recipe,
                                            const ParameterTraits &parameter) {
  for (auto [i, group] : llvm::enumerate(recipe.groups))
    if (matchesAny(group.match, parameter))
      return i;
  return std::nullopt;
}

// --- Factors -----------------------------------------------------------------

Factors tcc::train::emitFactors(const Settings &settings, const Recipe &recipe,
                                std::optional<size_t> group, const Rates &rates,
                                Expr updates) {
  const OptimizerRecipe &optimizer = recipe.optimizer;
  const OptimizerGroup &own =
      group ? optimizer.groups[*group] : OptimizerGroup();
  std::string prefix = group ? "group." + std::to_string(*group) + "." : "";
  auto nameOf = [&](bool isOwn, const char *key) {
    return (isOwn ? prefix : "") + key;
  };
  Factors factors{};
  factors.lr = group ? rates.lr * own.lrScale : rates.lr;
  factors.weightDecay =
      settings.get(nameOf(own.weightDecay.has_value(), "weight_decay"));
  const OptimizerRule &rule = getRule(optimizer);
  if (!rule.kind.has("betas")) {
    factors.first = rates.getMomentum(updates.like(optimizer.momentum));
    return factors;
  }
  std::string betas = nameOf(own.betas.has_value(), "betas");
  factors.first = rates.getMomentum(settings.get(betas, 0));
  factors.second = settings.get(betas, 1);
  if (!rule.correctsBias)
    return factors;
  auto correct = [&](Expr beta) {
    return 1.0 - beta.make<PowOp>(updates + 1.0);
  };
  factors.firstCorrection = correct(factors.first);
  factors.secondCorrection = correct(factors.second);
  return factors;
}

Expr tcc::train::spread(Expr factor, Expr x) {
  const TensorEmitter &emitter = *factor.emitter;
  auto type = cast<RankedTensorType>(x.value.getType());
  Value scalar = emitter.castTo(factor.value, type);
  if (type.getRank() > 0)
    scalar = emitter.emit<BroadcastOp>(type, scalar);
  return {scalar, &emitter};
}

// --- Optimizers --------------------------------------------------------------

static Expr decayInGradient(const Factors &factors, Expr parameter,
                            Expr gradient, bool decays) {
  if (!decays)
    return gradient;
  return gradient + spread(factors.weightDecay, parameter) * parameter;
}

static Expr decayParameter(const Factors &factors, Expr parameter,
                           bool decays) {
  if (!decays)
    return parameter;
  return parameter * spread(1.0 - factors.lr * factors.weightDecay, parameter);
}

static Stepped stepSgd(const OptimizerRecipe &recipe, const Factors &factors,
                       const Stepped &old, Expr gradient, bool decays) {
  Expr direction = decayInGradient(factors, old.parameter, gradient, decays);
  Stepped next;
  if (!old.slots.empty()) {
    Expr momentum = spread(factors.first, old.parameter);
    Expr buffer = old.slots[0] * momentum + direction;
    next.slots = {buffer};
    direction = recipe.nesterov ? direction + momentum * buffer : buffer;
  }
  next.parameter =
      old.parameter - spread(factors.lr, old.parameter) * direction;
  return next;
}

/// Without decay; slots of `old` alone are read.
static Stepped moveAdam(const OptimizerRecipe &recipe, const Factors &factors,
                        const Stepped &old, Expr parameter, Expr gradient) {
  Expr mean = old.slots[0] +
              spread(1.0 - factors.first, gradient) * (gradient - old.slots[0]);
  Expr square = old.slots[1] * spread(factors.second, gradient) +
                spread(1.0 - factors.second, gradient) * gradient * gradient;
  Expr scale = spread(sqrt(factors.secondCorrection), gradient);
  Expr denominator = sqrt(square) / scale + recipe.eps;
  Expr rate = spread(factors.lr / factors.firstCorrection, gradient);
  return {parameter - rate * mean / denominator, {mean, square}};
}

static Stepped stepAdam(const OptimizerRecipe &recipe, const Factors &factors,
                        const Stepped &old, Expr gradient, bool decays) {
  gradient = decayInGradient(factors, old.parameter, gradient, decays);
  return moveAdam(recipe, factors, old, old.parameter, gradient);
}

static Stepped stepAdamW(const OptimizerRecipe &recipe, const Factors &factors,
                         const Stepped &old, Expr gradient, bool decays) {
  Expr parameter = decayParameter(factors, old.parameter, decays);
  return moveAdam(recipe, factors, old, parameter, gradient);
}

/// Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.
static Stepped stepLion(const OptimizerRecipe &, const Factors &factors,
                        const Stepped &old, Expr gradient, bool decays) {
  auto mix = [&](Expr beta) {
    return old.slots[0] * spread(beta, gradient) +
           spread(1.0 - beta, gradient) * gradient;
  };
  Expr parameter = decayParameter(factors, old.parameter, decays);
  Expr change = spread(factors.lr, gradient) * sign(mix(factors.first));
  return {parameter - change, {mix(factors.second)}};
}

/// Tieleman and Hinton, 2012; `centered` as in Graves, Generating Sequences
/// With Recurrent Neural Networks, 2013.
static Stepped stepRmsProp(const OptimizerRecipe &recipe,
                           const Factors &factors, const Stepped &old,
                           Expr gradient, bool decays) {
  double alpha = recipe.own.numbers.at("alpha");
  gradient = decayInGradient(factors, old.parameter, gradient, decays);
  Expr square = old.slots[0] * alpha + gradient * (1 - alpha) * gradient;
  Stepped next{old.parameter, {square}};
  if (recipe.own.flags.at("centered")) {
    Expr mean = old.slots[1] + (gradient - old.slots[1]) * (1 - alpha);
    next.slots.push_back(mean);
    square = square - mean * mean;
  }
  Expr divisor = sqrt(square) + recipe.eps;
  Expr rate = spread(factors.lr, gradient);
  if (old.slots.size() == next.slots.size()) {
    next.parameter = old.parameter - rate * gradient / divisor;
    return next;
  }
  Expr momentum = spread(factors.first, gradient);
  next.slots.push_back(old.slots.back() * momentum + gradient / divisor);
  next.parameter = old.parameter - rate * next.slots.back();
  return next;
}

// --- The table ---------------------------------------------------------------

/// One-cycle gives momentum to an optimizer that has none.
static bool hasMomentum(const Recipe &recipe) {
  return recipe.optimizer.momentum > 0 ||
         recipe.schedule.kind == ScheduleKind::OneCycle;
}

static SmallVector<StringRef> getMomentumSlot(const Recipe &recipe) {
  if (hasMomentum(recipe))
    return {"momentum_buffer"};
  return {};
}

static SmallVector<StringRef> getMean(const Recipe &) { return {"exp_avg"}; }

static SmallVector<StringRef> getMeanAndSquare(const Recipe &) {
  return {"exp_avg", "exp_avg_sq"};
}

static SmallVector<StringRef> getRmsPropSlots(const Recipe &recipe) {
  SmallVector<StringRef> slots = {"square_avg"};
  if (recipe.optimizer.own.flags.at("centered"))
    slots.push_back("grad_avg");
  slots.append(getMomentumSlot(recipe));
  return slots;
}

static const Key kRmsPropKeys[] = {
    {.name = "optimizer.alpha",
     .field = [](Recipe &recipe) -> Field {
       return &recipe.optimizer.own.numbers["alpha"];
     },
     .initial = "0.99",
     .summary = "decay of the mean of squares",
     .range = &kFraction},
    {.name = "optimizer.centered",
     .field = [](Recipe &recipe) -> Field {
       return &recipe.optimizer.own.flags["centered"];
     },
     .initial = "false",
     .summary = "divide by the variance instead"},
};

ArrayRef<OptimizerRule> tcc::train::getOptimizers() {
  static const OptimizerRule rules[] = {
      {.kind = {"sgd", "momentum nesterov"},
       .getSlots = getMomentumSlot,
       .emit = stepSgd},
      {.kind = {"adam", "betas eps"},
       .correctsBias = true,
       .getSlots = getMeanAndSquare,
       .emit = stepAdam},
      {.kind = {"adamw", "betas eps"},
       .setDefaults =
           [](OptimizerRecipe &recipe) { recipe.weightDecay = 0.01; },
       .correctsBias = true,
       .getSlots = getMeanAndSquare,
       .emit = stepAdamW},
      {.kind = {"lion", "betas"},
       .setDefaults =
           [](OptimizerRecipe &recipe) {
             recipe.lr = 1e-4;
             recipe.betas = {0.9, 0.99};
           },
       .getSlots = getMean,
       .emit = stepLion},
      {.kind = {"rmsprop", "momentum eps", kRmsPropKeys},
       .setDefaults =
           [](OptimizerRecipe &recipe) {
             recipe.lr = 1e-2;
             recipe.own.numbers["alpha"] = 0.99;
             recipe.own.flags["centered"] = false;
           },
       .getSlots = getRmsPropSlots,
       .emit = stepRmsProp},
  };
  return rules;
}

const OptimizerRule &tcc::train::getRule(const OptimizerRecipe &recipe) {
  return getOptimizers()[int(recipe.kind)];
}

OptimizerRecipe OptimizerRecipe::getDefaults(OptimizerKind kind) {
  OptimizerRecipe recipe;
  recipe.kind = kind;
  if (auto *setDefaults = getRule(recipe).setDefaults)
    setDefaults(recipe);
  return recipe;
}

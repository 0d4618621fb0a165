#include "compiler/train/Optimizer.h"

using namespace mlir;
using namespace tcc::train;
using namespace tcc::graph;

/// One-cycle gives momentum to an optimizer that has none.
static bool hasMomentum(const Recipe &recipe) {
  return recipe.optimizer.momentum > 0 ||
         recipe.schedule.kind == ScheduleKind::OneCycle;
}

SmallVector<StringRef> tcc::train::getSlots(const Recipe &recipe) {
  switch (recipe.optimizer.kind) {
  case OptimizerKind::Sgd:
    if (hasMomentum(recipe))
      return {"momentum_buffer"};
    return {};
  case OptimizerKind::Adam:
  case OptimizerKind::AdamW:
    return {"exp_avg", "exp_avg_sq"};
  case OptimizerKind::Lion:
    return {"exp_avg"};
  }
  llvm_unreachable("all kinds are listed");
}

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
  if (optimizer.kind == OptimizerKind::Sgd) {
    factors.first = rates.getMomentum(updates.like(optimizer.momentum));
    return factors;
  }
  std::string betas = nameOf(own.betas.has_value(), "betas");
  factors.first = rates.getMomentum(settings.get(betas, 0));
  factors.second = settings.get(betas, 1);
  if (optimizer.kind == OptimizerKind::Lion)
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

static Stepped stepAdam(const OptimizerRecipe &recipe, const Factors &factors,
                        const Stepped &old, Expr gradient, bool decays) {
  Expr parameter = old.parameter;
  if (recipe.kind == OptimizerKind::AdamW)
    parameter = decayParameter(factors, parameter, decays);
  else
    gradient = decayInGradient(factors, parameter, gradient, decays);
  Expr mean = old.slots[0] +
              spread(1.0 - factors.first, gradient) * (gradient - old.slots[0]);
  Expr square = old.slots[1] * spread(factors.second, gradient) +
                spread(1.0 - factors.second, gradient) * gradient * gradient;
  Expr scale = spread(sqrt(factors.secondCorrection), gradient);
  Expr denominator = sqrt(square) / scale + recipe.eps;
  Expr rate = spread(factors.lr / factors.firstCorrection, gradient);
  return {parameter - rate * mean / denominator, {mean, square}};
}

/// Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.
static Stepped stepLion(const Factors &factors, const Stepped &old,
                        Expr gradient, bool decays) {
  auto mix = [&](Expr beta) {
    return old.slots[0] * spread(beta, gradient) +
           spread(1.0 - beta, gradient) * gradient;
  };
  Expr parameter = decayParameter(factors, old.parameter, decays);
  Expr change = spread(factors.lr, gradient) * sign(mix(factors.first));
  return {parameter - change, {mix(factors.second)}};
}

Stepped tcc::train::emitStep(const OptimizerRecipe &recipe,
                             const Factors &factors, const Stepped &old,
                             Expr gradient, bool decays) {
  switch (recipe.kind) {
  case OptimizerKind::Sgd:
    return stepSgd(recipe, factors, old, gradient, decays);
  case OptimizerKind::Adam:
  case OptimizerKind::AdamW:
    return stepAdam(recipe, factors, old, gradient, decays);
  case OptimizerKind::Lion:
    return stepLion(factors, old, gradient, decays);
  }
  llvm_unreachable("all kinds are listed");
}

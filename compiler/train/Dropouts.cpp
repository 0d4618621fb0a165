#include "compiler/train/Dropouts.h"

#include "compiler/train/Keys.h"
#include "compiler/train/MicroBatches.h"
#include "compiler/train/Settings.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

static std::string getKey(StringRef site) { return ("dropout." + site).str(); }

std::string describe(const DropoutSite &site) {
  std::string text = "dropout " + site.name + ": ";
  llvm::raw_string_ostream(text)
      << llvm::format("%g", site.p)
      << (site.isOfRecipe ? " (the recipe says so)" : " (the model says so)");
  return text;
}

// --- Sites -------------------------------------------------------------------

/// The site of `op`, one that there is or a new one.
static void addToSite(DropoutOp op, std::vector<DropoutSite> &sites) {
  std::string base = op.getSite().str(), name = base;
  double p = op.getP().convertToDouble();
  for (int i = 2;; ++i) {
    auto same = llvm::find_if(
        sites, [&](const DropoutSite &site) { return site.name == name; });
    if (same == sites.end())
      sites.push_back({name, p});
    else if (same->p != p) {
      name = base + "#" + std::to_string(i);
      continue;
    }
    op.setSite(name);
    return;
  }
}

/// The first pattern that matches says what p is.
static void setProbabilities(MutableArrayRef<DropoutSite> sites,
                             const Recipe &recipe, Problems &problems) {
  auto matches = [](const DropoutSite &site, const Override<double> &rule) {
    return rule.pattern.matches(ParameterTraits{site.name});
  };
  std::string names;
  for (const DropoutSite &site : sites)
    names += (names.empty() ? "'" : ", '") + site.name + "'";
  for (const Override<double> &rule : recipe.dropout)
    if (llvm::none_of(sites, [&](auto &site) { return matches(site, rule); }))
      problems.add(ProblemClass::badBytes,
                   "line " + std::to_string(rule.pattern.line) +
                       " of the recipe: no dropout matches '" +
                       rule.pattern.text + "', " +
                       (sites.empty() ? "the model has none"
                                      : "the model has " + names));
  for (DropoutSite &site : sites) {
    auto rule = llvm::find_if(recipe.dropout,
                              [&](auto &rule) { return matches(site, rule); });
    if (rule != recipe.dropout.end())
      site = {site.name, rule->value, true};
  }
}

/// Each iteration would draw the same numbers.
static void refuseInLoop(Operation *op, StringRef what, Problems &problems) {
  if (op->getParentOfType<LoopOp>())
    problems.add({ProblemClass::unsupported, getNodeName(op), what.str(),
                  "a random operator within a loop cannot be trained"});
}

std::vector<DropoutSite> findDropouts(func::FuncOp main, const Recipe &recipe,
                                      Problems &problems) {
  std::vector<DropoutSite> sites;
  main.walk([&](DropoutOp op) {
    refuseInLoop(op, "Dropout", problems);
    addToSite(op, sites);
  });
  main.walk([&](RandomOp op) { refuseInLoop(op, "Random", problems); });
  setProbabilities(sites, recipe, problems);
  return sites;
}

void declareDropouts(VariableTable &table, ArrayRef<DropoutSite> sites) {
  for (const DropoutSite &site : sites)
    declareSetting(table, getKey(site.name), site.p,
                   *findPatternTable("dropout")->range);
}

// --- Masks -------------------------------------------------------------------

/// x / (1 - p) where a random number in [0, 1) is at least p, else 0.
static void applyDropout(DropoutOp op, Value p, Value seed, Value batch) {
  OpBuilder builder(op);
  TensorEmitter emitter(builder, op.getLoc());
  auto type = cast<RankedTensorType>(op.getX().getType());
  Type wide = type.getElementType().isF64() ? builder.getF64Type()
                                            : builder.getF32Type();
  auto spread = [&](Value scalar, RankedTensorType to) -> Value {
    return emitter.emit<BroadcastOp>(to, emitter.castTo(scalar, to));
  };
  RankedTensorType numbers = withElementType(type, wide);
  Expr random{emitter.emit<RandomOp>(numbers, RandomKind::uniform, seed, batch,
                                     op.getKey()),
              &emitter};
  Expr kept = compare(CompareKind::ge, random, {spread(p, numbers), &emitter});
  // Where all is dropped the factor is 0, not infinite: gradients are
  // multiplied by it, too.
  Expr q = 1.0 - Expr{p, &emitter};
  Expr factor = select(q > 0, 1.0 / q, 0.0);
  Expr x{op.getX(), &emitter};
  Expr y = select(kept, x * Expr{spread(factor.value, type), &emitter}, 0.0);
  op.replaceAllUsesWith(ValueRange{y.value, kept.value});
}

void applyDropouts(StepFunction &step, const Recipe &recipe) {
  SmallVector<DropoutOp> ops;
  SmallVector<RandomOp> draws;
  step.getBody().walk([&](DropoutOp op) { ops.push_back(op); });
  step.getBody().walk([&](RandomOp op) { draws.push_back(op); });
  if (ops.empty() && draws.empty())
    return;
  Value seed = step.read(StepField::seed);
  Value batch = emitBatchNumber(step, recipe.parallel.exact);
  for (RandomOp op : draws)
    op->setOperands({seed, batch});
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  Settings settings(step, emitter);
  for (DropoutOp op : ops) {
    applyDropout(op, settings.get(getKey(op.getSite())).value, seed, batch);
    op.erase();
  }
}

void eraseDropouts(StepFunction &step) {
  step.getBody().walk([&](DropoutOp op) {
    OpBuilder builder(op);
    Value mask = TensorEmitter(builder, op.getLoc()).splat(op.getMask(), 1);
    op.replaceAllUsesWith(ValueRange{op.getX(), mask});
    op.erase();
  });
}

} // namespace tcc::train

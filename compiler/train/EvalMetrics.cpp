#include "compiler/train/EvalMetrics.h"

#include "compiler/train/Keys.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tcc::graph;
using llvm::StringRef;
using tcc::format::Metric;
using tcc::format::MetricRule;

namespace tcc::train {

namespace {

/// A sum over the batches of an evaluation: an output of `eval`.
enum class Sum {
  Loss,
  Count, ///< of the losses
  Targets,
  Surprises,
  Right,
  Near, ///< the target is among the best k classes
  Distances,
  Squares,
  RightOfClass,  ///< of each class those that were rightly taken for it,
  TakenForClass, ///< those taken for it,
  OfClass,       ///< and those of it
  Pairs ///< [class, class]: targets of the one that were taken for the other
};

struct MetricRow {
  const char *name;    ///< with a number behind it of Sum::Near
  const char *targets; ///< that have it, by their words below
  MetricRule rule;
  bool rises;
  std::initializer_list<Sum> sums;
};

/// A metric of the recipe.
struct AskedMetric {
  std::string name;
  const MetricRow *row;
  int64_t k = 0; ///< of Sum::Near
};

} // namespace

static const MetricRow kRows[] = {
    {"loss", "", MetricRule::mean, false, {Sum::Loss, Sum::Count}},
    {"accuracy",
     "classes truths",
     MetricRule::mean,
     true,
     {Sum::Right, Sum::Targets}},
    {"top", "classes", MetricRule::mean, true, {Sum::Near, Sum::Targets}},
    {"perplexity",
     "classes none",
     MetricRule::exp_mean,
     false,
     {Sum::Surprises, Sum::Targets}},
    {"mae", "values", MetricRule::mean, false, {Sum::Distances, Sum::Targets}},
    {"mse", "values", MetricRule::mean, false, {Sum::Squares, Sum::Targets}},
    {"rmse",
     "values",
     MetricRule::root_mean,
     false,
     {Sum::Squares, Sum::Targets}},
    {"precision",
     "classes truths",
     MetricRule::precision,
     true,
     {Sum::RightOfClass, Sum::TakenForClass, Sum::OfClass}},
    {"recall",
     "classes truths",
     MetricRule::recall,
     true,
     {Sum::RightOfClass, Sum::TakenForClass, Sum::OfClass}},
    {"f1",
     "classes truths",
     MetricRule::f1,
     true,
     {Sum::RightOfClass, Sum::TakenForClass, Sum::OfClass}},
    {"confusion", "classes", MetricRule::table, false, {Sum::Pairs}},
};

//===----------------------------------------------------------------------===//
// The recipe
//===----------------------------------------------------------------------===//

static const char *getWord(LossTarget target) {
  switch (target) {
  case LossTarget::Classes:
  case LossTarget::Tokens:
  case LossTarget::Shares:
    return "classes";
  case LossTarget::Values:
    return "values";
  case LossTarget::Truths:
    return "truths";
  case LossTarget::None:
    return "none";
  }
  llvm_unreachable("covered switch");
}

static bool isFor(const MetricRow &row, LossTarget target) {
  return !*row.targets ||
         llvm::is_contained(splitWords(row.targets), getWord(target));
}

static std::optional<AskedMetric> findMetric(StringRef name) {
  for (const MetricRow &row : kRows) {
    StringRef rest = name;
    int64_t k = 0;
    if (!rest.consume_front(row.name))
      continue;
    bool isNumbered = *row.sums.begin() == Sum::Near;
    if (isNumbered ? !rest.getAsInteger(10, k) && k > 0 && rest[0] != '0'
                   : rest.empty())
      return AskedMetric{name.str(), &row, k};
  }
  return std::nullopt;
}

/// The words for metrics of the target; all of them without it.
static std::string listMetrics(std::optional<LossTarget> target) {
  std::string words;
  for (const MetricRow &row : kRows)
    if (!target || isFor(row, *target))
      words += (words.empty() ? "" : ", ") + std::string(row.name) +
               (*row.sums.begin() == Sum::Near ? "K, as top5" : "");
  return words;
}

static bool isNumber(const AskedMetric &metric) {
  return metric.row->rule != MetricRule::table;
}

/// The loss, then those of the recipe: of classes the accuracy, if it says
/// nothing.
static std::vector<AskedMetric> getMetrics(const Recipe &recipe) {
  std::vector<AskedMetric> asked = {*findMetric("loss")};
  auto add = [&](StringRef name) {
    auto isSame = [&](const AskedMetric &other) { return name == other.name; };
    auto found = findMetric(name);
    if (found && llvm::none_of(asked, isSame))
      asked.push_back(*found);
  };
  const EvaluationRecipe &evaluation = recipe.evaluation;
  if (!evaluation.metrics)
    if (StringRef(getWord(getTarget(recipe.loss))) == "classes")
      add("accuracy");
  if (evaluation.metrics)
    for (const Pattern &word : evaluation.metrics->words)
      add(word.text);
  return asked;
}

static void checkMetric(Reading &reading, const Pattern &word) {
  LossTarget target = getTarget(reading.recipe.loss);
  auto metric = findMetric(word.text);
  if (!metric)
    return reading.fail(word.line, "eval.metrics has '" + word.text +
                                       "', expected " +
                                       listMetrics(std::nullopt));
  if (!isFor(*metric->row, target))
    reading.fail(word.line, "eval.metrics has '" + word.text +
                                "', which is not for this loss: " +
                                listMetrics(target) + " are");
}

void checkEvaluation(Reading &reading) {
  const EvaluationRecipe &evaluation = reading.recipe.evaluation;
  if (!reading.has("loss.kind"))
    return;
  if (evaluation.metrics)
    for (const Pattern &word : evaluation.metrics->words)
      checkMetric(reading, word);
  auto isBest = [&](const AskedMetric &metric) {
    return metric.name == evaluation.best && isNumber(metric);
  };
  if (llvm::none_of(getMetrics(reading.recipe), isBest))
    reading.fail(reading.getLine("eval.best"),
                 "eval.best is '" + evaluation.best +
                     "', expected the loss or a number of eval.metrics");
  if (!evaluation.ema)
    return;
  int line = reading.getLine("eval.ema");
  if (!reading.recipe.params.ema)
    reading.fail(line, "eval.ema needs params.ema");
  else if (reading.recipe.parallel.getParts() > 0 ||
           !reading.recipe.masterWeights)
    reading.refuse(line, "eval.ema with parallel.zero = 1 or "
                         "precision.master_weights = false is not supported "
                         "yet");
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {

/// Emits outputs of `eval`, each once.
class SumEmitter {
public:
  SumEmitter(StepFunction &step, const Recipe &recipe, const Loss &loss)
      : step(step), emitter(step.getBuilder(), step.getLoc()), recipe(recipe),
        loss(loss), compared(loss.compared), target(getTarget(recipe.loss)) {}

  /// The name of the output.
  std::string add(Sum sum, int64_t k);
  int64_t countClasses() const {
    return getType(compared.logits).getDimSize(compared.axis);
  }

private:
  static RankedTensorType getType(Value tensor) {
    return cast<RankedTensorType>(tensor.getType());
  }
  bool hasClasses() const { return compared.isCounted != nullptr; }
  Expr wrap(Value value) const { return {value, &emitter}; }
  std::string getName(Sum sum, int64_t k) const;
  Value emit(Sum sum, int64_t k);
  Value addUp(Value x) const;
  Value getWeights(Value isTrue) const;
  Value count(Value isTrue) const { return addUp(getWeights(isTrue)); }
  Value addUpWeighted(Expr x) const;
  Value findBest() const {
    return emitter.emit<ArgReduceOp>(ReduceKind::max, compared.logits,
                                     compared.axis, /*select_last=*/false);
  }
  Value isRight() const;
  Value isNear(int64_t k) const;
  Value saysYes() const { return (wrap(compared.logits) > 0.0).value; }
  Value isYes() const { return (wrap(compared.target) > 0.5).value; }
  Value countAt(Value places, Value isTrue, int64_t size) const;
  Value getSafe(Value classes) const;

  StepFunction &step;
  TensorEmitter emitter;
  const Recipe &recipe;
  const Loss &loss;
  const Comparison &compared;
  LossTarget target;
  llvm::StringSet<> added;
};

} // namespace

/// Names of the schema where it has one: what is not weighted is the same.
std::string SumEmitter::getName(Sum sum, int64_t k) const {
  bool isPlain = !compared.weights;
  switch (sum) {
  case Sum::Loss:
    return format::nameOf(Metric::loss);
  case Sum::Count:
    return format::nameOf(Metric::count);
  case Sum::Targets: // a mean of means counts batches
    return recipe.loss.reduction == LossReduction::MeanOfMeans
               ? "targets"
               : format::nameOf(Metric::count);
  case Sum::Surprises:
    return hasClasses() ? "surprises" : format::nameOf(Metric::loss);
  case Sum::Right:
    return isPlain && loss.correct ? format::nameOf(Metric::correct) : "right";
  case Sum::Near:
    return "near" + std::to_string(k);
  case Sum::Distances:
    return "distances";
  case Sum::Squares:
    return "squares";
  case Sum::RightOfClass:
    return "right_of_class";
  case Sum::TakenForClass:
    return "taken_for_class";
  case Sum::OfClass:
    return "of_class";
  case Sum::Pairs:
    return "pairs";
  }
  llvm_unreachable("covered switch");
}

/// All elements of x.
Value SumEmitter::addUp(Value x) const {
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, getType(x).getRank()));
  return axes.empty() ? x : emitter.emit<ReduceOp>(ReduceKind::sum, x, axes);
}

/// What each place adds to a number of those where `isTrue`: 1 as an integer,
/// or its weight as f64.
Value SumEmitter::getWeights(Value isTrue) const {
  Builder &builder = emitter.builder;
  if (!compared.weights)
    return emitter.emit<CastOp>(isTrue, builder.getI64Type());
  Expr weights =
      wrap(emitter.emit<CastOp>(compared.weights, builder.getF64Type()));
  return select(wrap(isTrue), weights, 0.0).value;
}

/// x times its weights, as f64.
Value SumEmitter::addUpWeighted(Expr x) const {
  if (compared.weights)
    x = x * wrap(compared.weights);
  Value wide = emitter.emit<CastOp>(x.value, emitter.builder.getF64Type());
  return addUp(wide);
}

Value SumEmitter::isRight() const {
  if (!hasClasses())
    return emitter.emit<CompareOp>(CompareKind::eq, saysYes(), isYes());
  return emitter.emit<AndOp>(
      compared.isCounted,
      emitter.emit<CompareOp>(CompareKind::eq, findBest(), compared.target));
}

/// Classes that do not count are 0.
Value SumEmitter::getSafe(Value classes) const {
  return select(wrap(compared.isCounted), wrap(classes), 0.0).value;
}

/// Fewer than k classes come before the target: those with a larger logit, and
/// of equal ones those with a smaller number.
Value SumEmitter::isNear(int64_t k) const {
  Value logits = compared.logits;
  auto type = getType(logits);
  auto indices = withElementType(type, emitter.builder.getI64Type());
  Expr places =
      wrap(emitter.builder.create<IotaOp>(emitter.loc, indices, compared.axis));
  Expr own = wrap(emitter.broadcastBack(getSafe(compared.target), places.value,
                                        compared.axis));
  Expr zero = wrap(logits).like(0.0);
  Value score = emitter.emit<ReduceOp>(
      ReduceKind::sum,
      select(compare(CompareKind::eq, places, own), wrap(logits), zero).value,
      compared.axis);
  Expr scores = wrap(emitter.broadcastBack(score, logits, compared.axis));
  Value isBefore = emitter.emit<OrOp>(
      compare(CompareKind::gt, wrap(logits), scores).value,
      emitter.emit<AndOp>(compare(CompareKind::eq, wrap(logits), scores).value,
                          compare(CompareKind::lt, places, own).value));
  Expr rank = wrap(emitter.emit<ReduceOp>(
      ReduceKind::sum,
      emitter.emit<CastOp>(isBefore, emitter.builder.getI64Type()),
      compared.axis));
  return emitter.emit<AndOp>(compared.isCounted, (rank < double(k)).value);
}

/// [size]: how many places, of those where `isTrue`, have each number.
Value SumEmitter::countAt(Value places, Value isTrue, int64_t size) const {
  Value weights = getWeights(isTrue);
  int64_t count = getType(places).getNumElements();
  auto flat = [&](Value x) {
    return emitter.reshape(x, {emitter.builder.getAffineConstantExpr(count)});
  };
  Value zeros = emitter.splat(
      RankedTensorType::get({size}, getType(weights).getElementType()), 0.0);
  return emitter.emit<ScatterElementsOp>(zeros, flat(places), flat(weights),
                                         /*axis=*/0, ScatterKind::add);
}

Value SumEmitter::emit(Sum sum, int64_t k) {
  auto difference = [&] {
    return wrap(compared.logits) - wrap(compared.target);
  };
  switch (sum) {
  case Sum::Loss:
  case Sum::Count:
    llvm_unreachable("outputs of every eval");
  case Sum::Targets:
    if (hasClasses())
      return count(compared.isCounted);
    return addUpWeighted(difference().like(1.0));
  case Sum::Surprises:
    return addUpWeighted(
        select(wrap(compared.isCounted), wrap(compared.surprise), 0.0));
  case Sum::Right:
    return count(isRight());
  case Sum::Near:
    return count(isNear(k));
  case Sum::Distances:
    return addUpWeighted(difference().make<AbsOp>());
  case Sum::Squares:
    return addUpWeighted(difference() * difference());
  case Sum::RightOfClass:
    if (!hasClasses())
      return count(emitter.emit<AndOp>(saysYes(), isYes()));
    return countAt(getSafe(compared.target), isRight(), countClasses());
  case Sum::TakenForClass:
    return hasClasses()
               ? countAt(findBest(), compared.isCounted, countClasses())
               : count(saysYes());
  case Sum::OfClass:
    return hasClasses() ? countAt(getSafe(compared.target), compared.isCounted,
                                  countClasses())
                        : count(isYes());
  case Sum::Pairs: {
    int64_t classes = countClasses();
    Expr pair =
        wrap(getSafe(compared.target)) * double(classes) + wrap(findBest());
    auto extent = emitter.builder.getAffineConstantExpr(classes);
    return emitter.reshape(
        countAt(pair.value, compared.isCounted, classes * classes),
        {extent, extent});
  }
  }
  llvm_unreachable("covered switch");
}

std::string SumEmitter::add(Sum sum, int64_t k) {
  std::string name = getName(sum, k);
  bool isOfEvery = name == format::nameOf(Metric::loss) ||
                   name == format::nameOf(Metric::count) ||
                   name == format::nameOf(Metric::correct);
  if (!isOfEvery && added.insert(name).second)
    step.addOutput(name, emit(sum, k));
  return name;
}

//===----------------------------------------------------------------------===//
// The outputs
//===----------------------------------------------------------------------===//

static bool check(const AskedMetric &metric, int64_t classes,
                  Problems &problems) {
  auto refuse = [&](const std::string &message) {
    problems.add(ProblemClass::usage,
                 "eval.metrics has '" + metric.name + "', and the model has " +
                     std::to_string(classes) + " classes" + message);
    return false;
  };
  if (metric.k > classes)
    return refuse("");
  if (metric.row->rule == MetricRule::table && classes > kMostClassesOfTable)
    return refuse(": a table is of at most " +
                  std::to_string(kMostClassesOfTable));
  return true;
}

static void describe(ModuleOp module, const Recipe &recipe,
                     ArrayRef<Attribute> metrics) {
  Builder builder(module.getContext());
  module->setAttr(GraphDialect::kMetricsAttr, builder.getArrayAttr(metrics));
  const EvaluationRecipe &plan = recipe.evaluation;
  auto name = [&](const char *text) { return builder.getStringAttr(text); };
  module->setAttr(
      GraphDialect::kEvaluationAttr,
      builder.getDictionaryAttr(
          {{name("every"), builder.getI64IntegerAttr(plan.every.value_or(0))},
           {name("data"), builder.getStringAttr(plan.data)},
           {name("best"), builder.getStringAttr(plan.best)},
           {name("patience"),
            builder.getI64IntegerAttr(plan.patience.value_or(0))},
           {name("ema"), builder.getBoolAttr(plan.ema)}}));
  module->setAttr(
      GraphDialect::kSpikesAttr,
      builder.getDictionaryAttr(
          {{name("z"), builder.getF64FloatAttr(recipe.spikes.z.value_or(0))},
           {name("rollback_every"),
            builder.getI64IntegerAttr(recipe.spikes.rollbackEvery)}}));
  if (!recipe.data.empty())
    module->setAttr(GraphDialect::kDataAttr,
                    builder.getStringAttr(recipe.data));
}

void emitMetrics(StepFunction &step, ModuleOp module, const Recipe &recipe,
                 const Loss &loss, Problems &problems) {
  Builder &builder = step.getBuilder();
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  auto toF64 = [&](Value scalar) {
    return emitter.castTo(scalar,
                          RankedTensorType::get({}, builder.getF64Type()));
  };
  step.addOutput(Metric::loss, toF64(loss.total));
  step.addOutput(Metric::count, toF64(loss.count));
  if (loss.correct)
    step.addOutput(Metric::correct, loss.correct);
  SumEmitter sums(step, recipe, loss);
  std::vector<Attribute> metrics;
  for (const AskedMetric &asked : getMetrics(recipe)) {
    bool hasClasses = loss.compared.isCounted != nullptr;
    if (hasClasses && !check(asked, sums.countClasses(), problems))
      continue;
    std::vector<Attribute> names;
    for (Sum sum : asked.row->sums)
      names.push_back(builder.getStringAttr(sums.add(sum, asked.k)));
    metrics.push_back(MetricAttr::get(
        module.getContext(), builder.getStringAttr(asked.name), asked.row->rule,
        builder.getArrayAttr(names), asked.row->rises));
  }
  describe(module, recipe, metrics);
}

} // namespace tcc::train

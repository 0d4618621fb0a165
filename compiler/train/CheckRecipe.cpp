#include "compiler/train/CheckRecipe.h"
#include "compiler/train/EvalMetrics.h"
#include "compiler/train/Keys.h"
#include "runtime/package/ScheduleRules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

using namespace tcc;
using namespace tcc::train;
using llvm::StringRef;

int Reading::getLine(StringRef key) const {
  auto exact = lines.find(key);
  if (exact != lines.end())
    return exact->second;
  int first = std::numeric_limits<int>::max();
  for (auto &entry : lines)
    if (entry.first().rsplit('.').first == key.rsplit('.').first)
      first = std::min(first, entry.second);
  return first == std::numeric_limits<int>::max() ? 1 : first;
}

void Reading::report(StringRef file, Problems &problems) {
  llvm::sort(findings, [](const Finding &a, const Finding &b) {
    return std::tie(a.line, a.message) < std::tie(b.line, b.message);
  });
  for (const Finding &finding : findings)
    problems.add(finding.kind, (file + ":" + llvm::Twine(finding.line) + ": " +
                                finding.message)
                                   .str());
}

/// The word that a key of the recipe has.
static StringRef getWord(Recipe &recipe, const Key &key) {
  auto field = std::get<WordField>(key.field(recipe));
  return splitWords(key.words)[field.get(field.at)];
}

/// Keys that are for another kind of loss, optimizer or schedule.
static void checkKinds(Reading &reading) {
  for (const Key &key : getKeys()) {
    std::string kinds = key.getKinds();
    if (!reading.has(key.name) || kinds.empty())
      continue;
    StringRef table = StringRef(key.name).split('.').first;
    const Key &kind = *findKey((table + ".kind").str());
    bool hasDefault = table == "schedule";
    if (!hasDefault && !reading.has(kind.name))
      continue;
    StringRef word = getWord(reading.recipe, kind);
    if (!key.appliesTo(word))
      reading.fail(reading.getLine(key.name),
                   std::string(key.name) + " is not for " + word.str() +
                       ", only for " + joinWords(kinds.c_str()));
  }
}

static void checkNeeded(Reading &reading, StringRef key) {
  if (!reading.has(key))
    reading.fail(reading.getLine(key), key.str() + " is missing");
}

/// The number that a key of the recipe has, if it has one.
static std::optional<double> getNumber(Recipe &recipe, const Key &key) {
  Field field = key.field(recipe);
  if (auto *count = std::get_if<int64_t *>(&field))
    return double(**count);
  if (auto *count = std::get_if<std::optional<int64_t> *>(&field))
    return **count ? std::optional(double(***count)) : std::nullopt;
  if (auto *number = std::get_if<std::optional<double> *>(&field))
    return **number;
  return std::nullopt;
}

static void checkSchedule(Reading &reading) {
  ScheduleRecipe &schedule = reading.recipe.schedule;
  if (!schedule.totalSteps)
    schedule.totalSteps = reading.recipe.steps;
  StringRef word = getWord(reading.recipe, *findKey("schedule.kind"));
  auto get = [&](std::string_view key) {
    return getNumber(reading.recipe, *findKey(key));
  };
  for (const format::ScheduleProblem &problem :
       format::checkSchedule(word, get))
    reading.fail(reading.getLine(problem.key),
                 problem.message +
                     (StringRef(problem.missing) == "schedule.total_steps"
                          ? ", or steps"
                          : ""));
}

static void checkOptimizer(Reading &reading) {
  const OptimizerRecipe &optimizer = reading.recipe.optimizer;
  if (optimizer.nesterov && optimizer.momentum == 0)
    reading.fail(reading.getLine("optimizer.nesterov"),
                 "optimizer.nesterov needs optimizer.momentum above 0");
}

static void checkBatch(Reading &reading) {
  BatchRecipe &batch = reading.recipe.batch;
  if (!batch.global)
    return;
  int line = reading.getLine("batch.global");
  if (!batch.micro)
    return reading.fail(line, "batch.global needs batch.micro");
  if (*batch.micro == BatchRecipe::kAuto) {
    if (reading.has("batch.accumulate"))
      reading.fail(line, "batch.global and batch.accumulate leave "
                         "batch.micro = 'auto' no choice: give one of them");
    return;
  }
  int64_t passes = *batch.global / *batch.micro;
  if (*batch.global % *batch.micro != 0 ||
      (reading.has("batch.accumulate") && batch.accumulate != passes))
    return reading.fail(line,
                        "batch.global is " + std::to_string(*batch.global) +
                            ", expected batch.micro times batch.accumulate");
  batch.accumulate = passes;
}

static void checkPrecision(Reading &reading) {
  Recipe &recipe = reading.recipe;
  bool isF16 = recipe.compute == Precision::F16;
  bool isWide =
      recipe.compute == Precision::F32 || recipe.compute == Precision::F64;
  if (isF16 && !reading.has("precision.loss_scale"))
    recipe.lossScale = {0};
  if (isWide && !recipe.keepF32.empty())
    reading.fail(
        reading.getLine("precision.keep_f32"),
        "precision.keep_f32 needs precision.compute = 'bf16', 'f16' or "
        "'tf32'");
  bool isNarrow = isF16 || recipe.compute == Precision::BF16;
  if (!recipe.masterWeights && !isNarrow)
    reading.fail(reading.getLine("precision.master_weights"),
                 "precision.master_weights = false needs precision.compute = "
                 "'bf16' or 'f16'");
  if (recipe.rounding == Rounding::Stochastic && recipe.masterWeights)
    reading.fail(reading.getLine("precision.rounding"),
                 "precision.rounding = 'stochastic' needs "
                 "precision.master_weights = false");
}

static void checkRanks(Reading &reading) {
  const Recipe &recipe = reading.recipe;
  if (recipe.synchronisesBatchNorms && !recipe.parallel.reduces())
    reading.fail(reading.getLine("batchnorm.sync"),
                 "batchnorm.sync needs several ranks, and parallel.data is 1");
  bool isNumber = recipe.parallel.data.value_or(ParallelRecipe::kAuto) !=
                  ParallelRecipe::kAuto;
  if (recipe.parallel.zero == 1 && !isNumber)
    reading.misuse(reading.getLine("parallel.zero"),
                   "parallel.zero = 1 needs a number as parallel.data, not "
                   "'auto': what a rank keeps depends on how many there are");
  if (recipe.parallel.zero == 0 && isNumber && *recipe.parallel.data > 1)
    reading.misuse(
        reading.getLine("parallel.data"),
        "parallel.data above 1 needs parallel.zero = 1: without it a "
        "package is for any number of ranks, 'auto'");
  if (recipe.parallel.getParts() == 0)
    return;
  if (*recipe.parallel.data > ParallelRecipe::kMostRanks)
    reading.misuse(reading.getLine("parallel.data"),
                   "parallel.data is " + std::to_string(*recipe.parallel.data) +
                       ", expected at most " +
                       std::to_string(ParallelRecipe::kMostRanks));
  if (recipe.tellsGradNorms)
    reading.refuse(reading.getLine("numerics.grad_norms"),
                   "numerics.grad_norms with parallel.zero = 1, where a rank "
                   "has parts of gradients, is not supported");
  if (recipe.rounding == Rounding::Stochastic)
    reading.refuse(reading.getLine("precision.rounding"),
                   "precision.rounding = 'stochastic' with parallel.zero = 1 "
                   "is not supported yet");
  if (recipe.params.ema && !recipe.masterWeights)
    reading.refuse(reading.getLine("params.ema"),
                   "params.ema with parallel.zero = 1 and "
                   "precision.master_weights = false is not supported yet");
}

/// How many batches an update has is said once.
static void checkExact(Reading &reading) {
  const Recipe &recipe = reading.recipe;
  if (!recipe.parallel.exact)
    return;
  int64_t batches = *recipe.parallel.exact;
  int line = reading.getLine("parallel.exact");
  auto fail = [&](const std::string &message) { reading.fail(line, message); };
  if (!llvm::isPowerOf2_64(batches) || batches > ParallelRecipe::kMostExact)
    fail("parallel.exact is " + std::to_string(batches) +
         ", expected a power of two up to " +
         std::to_string(ParallelRecipe::kMostExact));
  if (!recipe.parallel.reduces())
    fail("parallel.exact needs several ranks, and parallel.data is 1");
  if (int64_t ranks = recipe.parallel.getParts(); ranks && batches % ranks)
    reading.misuse(line, "parallel.exact is " + std::to_string(batches) +
                             " batches, which parallel.data = " +
                             std::to_string(ranks) + " ranks cannot share");
  if (reading.has("batch.accumulate"))
    fail("parallel.exact says how many batches an update has, as does "
         "batch.accumulate: give one of them");
  if (!recipe.batch.global)
    return;
  if (recipe.batch.micro == BatchRecipe::kAuto)
    fail("batch.global and parallel.exact leave batch.micro = 'auto' no "
         "choice: give two of them");
  else if (recipe.batch.micro &&
           *recipe.batch.global != *recipe.batch.micro * batches)
    fail("batch.global is " + std::to_string(*recipe.batch.global) +
         ", expected batch.micro times parallel.exact");
}

void tcc::train::checkRecipe(Reading &reading) {
  checkNeeded(reading, "loss.kind");
  checkNeeded(reading, "optimizer.kind");
  checkKinds(reading);
  checkSchedule(reading);
  checkOptimizer(reading);
  checkBatch(reading);
  checkPrecision(reading);
  checkRanks(reading);
  checkExact(reading);
  checkEvaluation(reading);
}

void tcc::train::checkPatterns(const Recipe &recipe,
                               llvm::ArrayRef<ParameterTraits> parameters,
                               llvm::ArrayRef<StringRef> nodes,
                               Problems &problems) {
  auto matchesParameter = [&](const Pattern &pattern) {
    return llvm::any_of(parameters, [&](const ParameterTraits &parameter) {
      return pattern.matches(parameter);
    });
  };
  auto matchesNode = [&](const Pattern &pattern) {
    return llvm::any_of(nodes, [&](StringRef node) {
      return pattern.matches(ParameterTraits{node.str()});
    });
  };
  auto refuse = [&](const Pattern &pattern, const std::string &message) {
    problems.add(ProblemClass::badBytes,
                 "line " + std::to_string(pattern.line) + " of the recipe: " +
                     message + " matches '" + pattern.text + "'");
  };
  auto check = [&](const std::string &key, llvm::ArrayRef<Pattern> patterns) {
    for (const Pattern &pattern : patterns)
      if (!pattern.isSelector() && !matchesParameter(pattern))
        refuse(pattern, key + ": no parameter");
  };
  for (const Pattern &pattern : recipe.keepF32)
    if (!matchesParameter(pattern) && !matchesNode(pattern))
      refuse(pattern, "precision.keep_f32: no parameter or node");
  check("params.reinit", recipe.params.reinit);
  check("optimizer.no_decay", recipe.optimizer.noDecay);
  for (const OptimizerGroup &group : recipe.optimizer.groups)
    check("optimizer.group.match", group.match);
  for (const Override<Initializer> &rule : recipe.init)
    check("init", rule.pattern);
}

#include "compiler/train/Keys.h"
#include "compiler/train/Loss.h"
#include "compiler/train/Optimizer.h"

#include <deque>

using namespace tcc;
using namespace tcc::train;

// --- Where values go ---------------------------------------------------------

template <typename T> static Field makeField(T *at) {
  if constexpr (std::is_enum_v<T>)
    return WordField{
        at,
        [](void *at, int64_t position) { *static_cast<T *>(at) = T(position); },
        [](const void *at) { return int64_t(*static_cast<const T *>(at)); }};
  else
    return at;
}

/// The member of a member of a recipe.
template <auto... members> static Field at(Recipe &recipe) {
  return makeField(&(recipe.*....*members));
}

/// The member of the last group.
template <auto member> static Field inGroup(Recipe &recipe) {
  return makeField(&(recipe.optimizer.groups.back().*member));
}

// --- The keys ----------------------------------------------------------------

/// The words of all kinds and, last, one that is not supported yet; kept for as
/// long as the program runs.
static const std::string &listWords(const char *table, const char *last = "") {
  static std::deque<std::string> kept;
  std::string &words = kept.emplace_back();
  for (const Kind *kind : getKinds(table))
    words += (words.empty() ? "" : " ") + std::string(kind->word);
  words += *last ? std::string(" ") + last : "";
  return words;
}

using R = Recipe;
using L = LossRecipe;
using O = OptimizerRecipe;
using G = OptimizerGroup;
using S = ScheduleRecipe;
using B = BatchRecipe;
using P = ParamsRecipe;
using Parallel = ParallelRecipe;
using E = EvaluationRecipe;

static const Key kKeys[] = {
    {.name = "steps",
     .field = at<&R::steps>,
     .initial = "none",
     .summary = "updates that the schedule is made for",
     .range = &kCount,
     .isRuntime = true},
    {.name = "seed",
     .field = at<&R::seed>,
     .initial = "0",
     .summary = "of all random numbers",
     .range = &kAny,
     .isRuntime = true},

    {.name = "loss.kind",
     .field = at<&R::loss, &L::kind>,
     .initial = "needed",
     .summary = "`output`: the model returns the loss itself",
     .words = listWords("loss").c_str()},
    {.name = "loss.logits",
     .field = at<&R::loss, &L::logits>,
     .initial = "the only output",
     .summary = "the output to compare with the target"},
    {.name = "loss.target",
     .field = at<&R::loss, &L::target>,
     .initial = "labels",
     .summary = "the name of the target in the data"},
    {.name = "loss.label_smoothing",
     .field = at<&R::loss, &L::labelSmoothing>,
     .initial = "0",
     .summary = "share of the target spread over all classes; a setting where "
                "it is not 0",
     .range = &kUnit,
     .isRuntime = true,
     .isCompiled =
         [](const Recipe &recipe) { return recipe.loss.labelSmoothing > 0; }},
    {.name = "loss.ignore_index",
     .field = at<&R::loss, &L::ignoreIndex>,
     .initial = "-100",
     .summary = "the target that does not count",
     .range = &kAny},
    {.name = "loss.shift",
     .field = at<&R::loss, &L::shift>,
     .initial = "true",
     .summary = "compare each position with the next target"},
    {.name = "loss.reduction",
     .field = at<&R::loss, &L::reduction>,
     .initial = "global_mean",
     .summary =
         "over all targets of an update, or the mean of its batches' means",
     .words = "global_mean mean_of_means"},

    {.name = "optimizer.kind",
     .field = at<&R::optimizer, &O::kind>,
     .initial = "needed",
     .words = listWords("optimizer", "lamb").c_str(),
     .supported = listWords("optimizer").c_str()},
    {.name = "optimizer.lr",
     .field = at<&R::optimizer, &O::lr>,
     .initial = "0.001",
     .summary = "learning rate",
     .range = &kNonNegative,
     .isRuntime = true},
    {.name = "optimizer.momentum",
     .field = at<&R::optimizer, &O::momentum>,
     .initial = "0",
     .range = &kFraction},
    {.name = "optimizer.nesterov",
     .field = at<&R::optimizer, &O::nesterov>,
     .initial = "false",
     .summary = "needs momentum"},
    {.name = "optimizer.betas",
     .field = at<&R::optimizer, &O::betas>,
     .initial = "[0.9, 0.999]",
     .summary = "decay of the running means",
     .range = &kFraction,
     .isRuntime = true},
    {.name = "optimizer.eps",
     .field = at<&R::optimizer, &O::eps>,
     .initial = "1e-08",
     .summary = "added to the denominator",
     .range = &kNonNegative},
    {.name = "optimizer.weight_decay",
     .field = at<&R::optimizer, &O::weightDecay>,
     .initial = "0",
     .summary = "adamw, lion: decoupled; others: added to the gradient",
     .range = &kNonNegative,
     .isRuntime = true},
    {.name = "optimizer.no_decay",
     .field = at<&R::optimizer, &O::noDecay>,
     .initial = "[]",
     .summary = "parameters without decay: patterns, `ndim<=1`, `norm`, "
                "`bias`, `embedding`"},
    {.name = "optimizer.group.match",
     .field = inGroup<&G::match>,
     .initial = "needed",
     .summary = "the group's parameters, as in no_decay"},
    {.name = "optimizer.group.lr_scale",
     .field = inGroup<&G::lrScale>,
     .initial = "1",
     .summary = "factor of the scheduled rate",
     .range = &kNonNegative},
    {.name = "optimizer.group.weight_decay",
     .field = inGroup<&G::weightDecay>,
     .initial = "the optimizer's",
     .range = &kNonNegative,
     .isRuntime = true},
    {.name = "optimizer.group.betas",
     .field = inGroup<&G::betas>,
     .initial = "the optimizer's",
     .range = &kFraction,
     .isRuntime = true},

    {.name = "schedule.kind",
     .field = at<&R::schedule, &S::kind>,
     .initial = "constant",
     .summary = "of the learning rate",
     .words = "constant one_cycle cosine linear step",
     .isRuntime = true},
    {.name = "schedule.warmup_steps",
     .field = at<&R::schedule, &S::warmupSteps>,
     .initial = "0",
     .summary = "updates over which the rate rises: at update i it is lr (i + "
                "1) / warmup_steps",
     .range = &kNonNegative,
     .kinds = "constant cosine linear step",
     .isRuntime = true},
    {.name = "schedule.total_steps",
     .field = at<&R::schedule, &S::totalSteps>,
     .initial = "steps",
     .summary = "the end, warm-up included; the rate stays as it is then",
     .range = &kCount,
     .kinds = "one_cycle cosine linear",
     .isRuntime = true},
    {.name = "schedule.max_lr",
     .field = at<&R::schedule, &S::maxLr>,
     .initial = "needed",
     .summary = "the rate at the peak, instead of lr",
     .range = &kPositive,
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.pct_start",
     .field = at<&R::schedule, &S::pctStart>,
     .initial = "0.3",
     .summary = "share of the steps before the peak",
     .range = &kUnit,
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.div_factor",
     .field = at<&R::schedule, &S::divFactor>,
     .initial = "25",
     .summary = "max_lr over the first rate",
     .range = &kPositive,
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.final_div_factor",
     .field = at<&R::schedule, &S::finalDivFactor>,
     .initial = "10000",
     .summary = "the first rate over the last one",
     .range = &kPositive,
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.anneal",
     .field = at<&R::schedule, &S::anneal>,
     .initial = "cos",
     .summary = "shape of each phase",
     .words = "cos linear",
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.three_phase",
     .field = at<&R::schedule, &S::threePhase>,
     .initial = "false",
     .summary = "down to the first rate, then to the last one",
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.base_momentum",
     .field = at<&R::schedule, &S::baseMomentum>,
     .initial = "0.85",
     .summary = "at the peak; sgd's momentum, the first of betas",
     .range = &kFraction,
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.max_momentum",
     .field = at<&R::schedule, &S::maxMomentum>,
     .initial = "0.95",
     .summary = "at both ends",
     .range = &kFraction,
     .kinds = "one_cycle",
     .isRuntime = true},
    {.name = "schedule.eta_min",
     .field = at<&R::schedule, &S::etaMin>,
     .initial = "0",
     .summary = "the last rate",
     .range = &kNonNegative,
     .kinds = "cosine linear",
     .isRuntime = true},
    {.name = "schedule.step_size",
     .field = at<&R::schedule, &S::stepSize>,
     .initial = "needed",
     .summary = "updates between two decays",
     .range = &kCount,
     .kinds = "step",
     .isRuntime = true},
    {.name = "schedule.gamma",
     .field = at<&R::schedule, &S::gamma>,
     .initial = "0.1",
     .summary = "factor of a decay",
     .range = &kNonNegative,
     .kinds = "step",
     .isRuntime = true},
    {.name = "schedule.on_skip",
     .field = at<&R::schedule, &S::onSkip>,
     .initial = "advance",
     .summary = "`hold`: a skipped update is not counted",
     .words = "advance hold",
     .isRuntime = true},

    {.name = "precision.compute",
     .field = at<&R::compute>,
     .initial = "f32",
     .summary = "type of arithmetic; bf16, f16, tf32: of what products read",
     .words = kPrecisionWords},
    {.name = "precision.loss_scale",
     .field = at<&R::lossScale>,
     .initial = "1, f16 dynamic",
     .summary = "factor of the loss whose gradients are computed",
     .range = &kScale,
     .words = "dynamic",
     .isRuntime = true},
    {.name = "precision.keep_f32",
     .field = at<&R::keepF32>,
     .initial = "[]",
     .summary = "patterns: parameters and nodes whose products read f32"},
    {.name = "precision.master_weights",
     .field = at<&R::masterWeights>,
     .initial = "true",
     .summary = "false: trained parameters of two axes or more are kept in the "
                "type that products read"},
    {.name = "precision.rounding",
     .field = at<&R::rounding>,
     .initial = "nearest",
     .summary = "of parameters that have no master, by an update",
     .words = "nearest stochastic"},

    {.name = "batch.micro",
     .field = at<&R::batch, &B::micro>,
     .initial = "the model's",
     .summary = "samples of one pass; `auto`: the most that the memory budget "
                "holds",
     .range = &kCount,
     .words = "auto"},
    {.name = "batch.accumulate",
     .field = at<&R::batch, &B::accumulate>,
     .initial = "1",
     .summary = "passes of one update, of each rank",
     .range = &kCount,
     .isRuntime = true,
     .isCompiled =
         [](const R &recipe) {
           return !recipe.batch.global && !recipe.parallel.exact;
         }},
    {.name = "batch.global",
     .field = at<&R::batch, &B::global>,
     .initial = "micro * accumulate",
     .summary = "samples of one update of all ranks together, in place of "
                "accumulate",
     .range = &kCount,
     .isRuntime = true,
     .isCompiled =
         [](const R &recipe) { return recipe.batch.global.has_value(); }},
    {.name = "batch.clip_norm",
     .field = at<&R::batch, &B::clipNorm>,
     .initial = "inf",
     .summary = "largest norm of all gradients together",
     .range = &kLimit,
     .isRuntime = true},
    {.name = "batch.clip_value",
     .field = at<&R::batch, &B::clipValue>,
     .initial = "inf",
     .summary = "largest absolute element, after clip_norm",
     .range = &kLimit,
     .isRuntime = true},
    {.name = "batch.last",
     .field = at<&R::batch, &B::last>,
     .initial = "drop",
     .summary = "what becomes of the last samples of an epoch: left out, or "
                "filled up with others that weigh nothing",
     .words = "drop pad"},

    {.name = "params.train",
     .field = at<&R::params, &P::train>,
     .initial = "all",
     .summary = "patterns: only these are trained"},
    {.name = "params.freeze",
     .field = at<&R::params, &P::freeze>,
     .initial = "[]",
     .summary = "patterns: these are not"},
    {.name = "params.constant",
     .field = at<&R::params, &P::constant>,
     .initial = "[]",
     .summary = "patterns: tensors that are no parameters"},
    {.name = "params.ema",
     .field = at<&R::params, &P::ema>,
     .initial = "none",
     .summary = "decay of a running mean of the parameters",
     .range = &kFraction},
    {.name = "params.reinit",
     .field = at<&R::params, &P::reinit>,
     .initial = "[]",
     .summary = "patterns: started anew, by their kind"},

    {.name = "batchnorm.mode",
     .field = at<&R::batchNorm>,
     .initial = "train",
     .summary = "or patterns: those that train",
     .words = "train frozen"},
    {.name = "batchnorm.sync",
     .field = at<&R::synchronisesBatchNorms>,
     .initial = "false",
     .summary = "statistics are those of the batches of all ranks together"},

    {.name = "memory.budget",
     .field = at<&R::memoryBudget>,
     .initial = "none",
     .summary = "as \"22GiB\": bytes that the program needs at most",
     .mayDifferOnResume = true},
    {.name = "memory.checkpoint",
     .field = at<&R::checkpoint>,
     .initial = "auto",
     .summary = "what is computed again: as the budget needs it, or nothing",
     .words = "auto none blocks",
     .supported = "auto none",
     .mayDifferOnResume = true},

    {.name = "numerics.on_nan",
     .field = at<&R::onNan>,
     .initial = "stop",
     .summary = "what a loss or gradient that is not finite does",
     .words = "stop skip",
     .isRuntime = true},
    {.name = "numerics.grad_norms",
     .field = at<&R::tellsGradNorms>,
     .initial = "false",
     .summary = "each update tells the norm of every parameter's gradient, for "
                "tcc-run train --tensorboard-histograms",
     .mayDifferOnResume = true},
    {.name = "numerics.spike_z",
     .field = at<&R::spikes, &SpikeRecipe::z>,
     .initial = "none",
     .summary = "deviations above the mean of the losses before, of which more "
                "are a spike: its batches are left out",
     .range = &kPositive,
     .mayDifferOnResume = true},
    {.name = "numerics.rollback_every",
     .field = at<&R::spikes, &SpikeRecipe::rollbackEvery>,
     .initial = "100",
     .summary = "updates between two copies of the state, to which a run "
                "returns at a spike",
     .range = &kCount,
     .mayDifferOnResume = true},

    {.name = "parallel.data",
     .field = at<&R::parallel, &Parallel::data>,
     .initial = "auto",
     .summary = "ranks, which sum their gradients; `auto`: as many as there "
                "are where the package runs; above 1 with zero = 1 alone",
     .range = &kCount,
     .words = "auto",
     .mayDifferOnResume = true},
    {.name = "parallel.tensor", .initial = "1", .supported = "1"},
    {.name = "parallel.pipeline", .initial = "1", .supported = "1"},
    {.name = "parallel.chunks", .initial = "1", .supported = "1"},
    {.name = "parallel.zero",
     .field = at<&R::parallel, &Parallel::zero>,
     .initial = "0",
     .summary = "1: the optimizer's state and the update are divided among the "
                "ranks, whose number is compiled in",
     .range = &kAny,
     .supported = "0 1",
     .mayDifferOnResume = true},
    {.name = "parallel.bucket",
     .field = at<&R::parallel, &Parallel::bucket>,
     .initial = "1MiB, on a GPU 25MiB",
     .summary = "as \"4MiB\": of gradients that ranks sum by one message, at "
                "most, but for a larger one",
     .mayDifferOnResume = true},
    {.name = "parallel.exact",
     .field = at<&R::parallel, &Parallel::exact>,
     .initial = "none",
     .summary = "batches of one update of all ranks together, in place of "
                "accumulate: a power of two, added up to the same bits by any "
                "number of ranks",
     .range = &kCount,
     .mayDifferOnResume = true},
    {.name = "parallel.reduce_dtype",
     .initial = "f32",
     .words = "f32 bf16",
     .supported = "f32"},

    {.name = "eval.metrics",
     .field = at<&R::evaluation, &E::metrics>,
     .initial = "accuracy of classes",
     .summary = "what evaluations say beside the loss",
     .mayDifferOnResume = true},
    {.name = "eval.data",
     .field = at<&R::evaluation, &E::data>,
     .initial = "none",
     .summary = "as `--data`: what training evaluates on; a run may set it, "
                "and the keys below",
     .mayDifferOnResume = true},
    {.name = "eval.every",
     .field = at<&R::evaluation, &E::every>,
     .initial = "the last",
     .summary = "updates between two evaluations",
     .range = &kCount,
     .mayDifferOnResume = true},
    {.name = "eval.best",
     .field = at<&R::evaluation, &E::best>,
     .initial = "loss",
     .summary = "the metric by which evaluations are compared",
     .mayDifferOnResume = true},
    {.name = "eval.patience",
     .field = at<&R::evaluation, &E::patience>,
     .initial = "none",
     .summary = "evaluations after the best one that end a run",
     .range = &kCount,
     .mayDifferOnResume = true},
    {.name = "eval.ema",
     .field = at<&R::evaluation, &E::ema>,
     .initial = "false",
     .summary = "evaluate the running means of params.ema",
     .mayDifferOnResume = true},
};

static const PatternTable kPatternTables[] = {
    {"init", "normal uniform kaiming xavier zeros ones"},
    {"dropout", "", &kUnit},
};

llvm::SmallVector<const Kind *> tcc::train::getKinds(llvm::StringRef table) {
  llvm::SmallVector<const Kind *> kinds;
  if (table == "loss")
    for (const LossRule &rule : getLosses())
      kinds.push_back(&rule.kind);
  if (table == "optimizer")
    for (const OptimizerRule &rule : getOptimizers())
      kinds.push_back(&rule.kind);
  return kinds;
}

/// Keys that a kind alone has come after all others of their table.
static std::vector<Key> collectKeys() {
  std::vector<Key> keys;
  llvm::ArrayRef<Key> shared(kKeys);
  for (size_t i = 0; i < shared.size(); ++i) {
    keys.push_back(shared[i]);
    llvm::StringRef table = shared[i].getTable();
    if (i + 1 == shared.size() || shared[i + 1].getTable() != table)
      for (const Kind *kind : getKinds(table))
        keys.insert(keys.end(), kind->ownKeys.begin(), kind->ownKeys.end());
  }
  return keys;
}

llvm::ArrayRef<Key> tcc::train::getKeys() {
  static const std::vector<Key> keys = collectKeys();
  return keys;
}

llvm::ArrayRef<PatternTable> tcc::train::getPatternTables() {
  return kPatternTables;
}

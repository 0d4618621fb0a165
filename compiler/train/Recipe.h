//===- Recipe.h - How a model is trained ------------------------*- C++ -*-===//
//
// The recipe as it was read and found consistent: every value is in its range
// and every feature exists. docs/training.md describes the keys, Keys.h lists
// them; enumerators stand in the order of their words there.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_RECIPE_H
#define TCC_COMPILER_TRAIN_RECIPE_H

#include "compiler/train/Pattern.h"
#include "frontends/Problems.h"
#include "tcc/precision.h"
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace tcc::train {

/// A row of getLosses, and one of getOptimizers.
enum class LossKind : int {};
enum class OptimizerKind : int {};
enum class LossReduction { GlobalMean, MeanOfMeans };
enum class ScheduleKind { Constant, OneCycle, Cosine, Linear, Step };
enum class AnnealKind { Cos, Linear };
enum class OnSkip { Advance, Hold };
enum class Rounding { Nearest, Stochastic };
enum class LastBatch { Drop, Pad };
enum class OnNan { Stop, Skip };
/// Checkpointing of activations, under a memory budget.
enum class Checkpointing { Auto, None };
enum class Initializer { Normal, Uniform, Kaiming, Xavier, Zeros, Ones };

using Betas = std::array<double, 2>;

/// What only one kind of loss or optimizer has, by the key's last name.
struct OwnValues {
  std::map<std::string, double> numbers;
  std::map<std::string, bool> flags;
};

struct LossRecipe {
  LossKind kind{};
  /// The output to compare; empty: the model's only one.
  std::string logits;
  std::string target = "labels";
  double labelSmoothing = 0;
  int64_t ignoreIndex = -100;
  bool shift = true; // of causal_lm
  LossReduction reduction = LossReduction::GlobalMean;
  OwnValues own;

  static LossRecipe getDefaults(LossKind kind);
};

/// Parameters with values of their own: what is absent is the optimizer's.
struct OptimizerGroup {
  Patterns match;
  double lrScale = 1;
  std::optional<double> weightDecay;
  std::optional<Betas> betas;
};

struct OptimizerRecipe {
  OptimizerKind kind{};
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weightDecay = 0;
  /// Parameters without decay, whatever their group says.
  Patterns noDecay;
  /// The first one that matches is a parameter's group.
  std::vector<OptimizerGroup> groups;
  OwnValues own;

  /// PyTorch's defaults for `kind`; Lion's are those of its authors.
  static OptimizerRecipe getDefaults(OptimizerKind kind);
};

struct ScheduleRecipe {
  ScheduleKind kind = ScheduleKind::Constant;
  int64_t warmupSteps = 0;
  /// Steps of the schedule, warm-up included; the recipe's steps if absent.
  std::optional<int64_t> totalSteps;
  std::optional<double> maxLr;
  double pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4;
  AnnealKind anneal = AnnealKind::Cos;
  bool threePhase = false;
  double baseMomentum = 0.85, maxMomentum = 0.95;
  double etaMin = 0;
  std::optional<int64_t> stepSize;
  double gamma = 0.1;
  OnSkip onSkip = OnSkip::Advance;
};

struct BatchRecipe {
  /// `micro` in place of a number: the most that the memory budget holds.
  static constexpr int64_t kAuto = 0;

  std::optional<int64_t> micro, global;
  int64_t accumulate = 1;
  double clipNorm = std::numeric_limits<double>::infinity();
  double clipValue = std::numeric_limits<double>::infinity();
  LastBatch last = LastBatch::Drop;

  /// Decides on what was `auto`: a divisor of `global`, if that is given.
  void takeMicro(int64_t samples) {
    micro = samples;
    if (global)
      accumulate = *global / samples;
  }
};

struct ParamsRecipe {
  /// Without `train`, all parameters that `freeze` does not match.
  Patterns train, freeze, constant, reinit;
  std::optional<double> ema;
};

struct ByteSize {
  int64_t bytes;
};

struct ParallelRecipe {
  /// `data` in place of a number: as many ranks as the launcher starts.
  static constexpr int64_t kAuto = 0;
  /// The most that `exact` may be.
  static constexpr int64_t kMostRanks = int64_t(1) << 16;
  static constexpr int64_t kMostExact = int64_t(1) << 20;

  std::optional<int64_t> data; ///< ranks; absent: kAuto, where they can be
  /// 1: each rank keeps and updates a part of the optimizer's state.
  int64_t zero = 0;
  /// Bytes of gradients that one message sums, at most, but for a larger one;
  /// 0: what the target's network is made for, see
  /// TargetCapabilities::bucketBytes.
  ByteSize bucket = {};
  /// Batches of an update of all ranks, a power of two, whose sum has the same
  /// bits by any number of ranks; absent: any number of them.
  std::optional<int64_t> exact;

  /// Whether entry points that sum over ranks are wanted.
  bool reduces() const { return data.value_or(kAuto) != 1; }
  /// How many ranks divide the optimizer's state, 0 if it is whole at each.
  int64_t getParts() const {
    return zero > 0 && data.value_or(kAuto) > 1 ? *data : 0;
  }
};

/// Names in a list, each with its line.
struct WordList {
  Patterns words;
};

/// Evaluations while training: what is compiled in of them, and what a run
/// does unless it is told otherwise.
struct EvaluationRecipe {
  std::optional<WordList> metrics; ///< absent: those of the loss
  std::string data;
  std::optional<int64_t> every; ///< updates; absent: one at the end of a run
  std::string best = "loss";
  std::optional<int64_t> patience; ///< evaluations; absent: without end
  bool ema = false;
};

/// What a run does where the loss jumps, unless it is told otherwise.
struct SpikeRecipe {
  std::optional<double> z; ///< deviations; absent: nothing
  int64_t rollbackEvery = 100;
};

/// A value for what a pattern matches; the first match wins.
template <typename T> struct Override {
  Pattern pattern;
  T value;
};

using Numbers = std::vector<double>;

/// An input that the model takes as bytes.
struct InputRecipe {
  std::string name;
  bool isChannelsLast = false; ///< layout = "nhwc", where the model has nchw
  Numbers mean = {0}, deviation = {1}; ///< one, or one for each channel
};

/// A number, or 0 for a word in its place.
struct NumberOrWord {
  double number;
};

struct Recipe {
  std::optional<int64_t> steps;
  int64_t seed = 0;
  LossRecipe loss;
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  BatchRecipe batch;
  ParamsRecipe params;
  ParallelRecipe parallel;
  EvaluationRecipe evaluation;
  SpikeRecipe spikes;
  std::vector<InputRecipe> inputs;
  std::string data; ///< the keys of [data], as TOML; empty: none
  Precision compute = Precision::F32;
  /// Whether parameters of two axes or more are kept in f32 where products read
  /// a narrower type; if not, how updates round them.
  bool masterWeights = true;
  Rounding rounding = Rounding::Nearest;
  /// Parameters and nodes whose products are not narrow.
  Patterns keepF32;
  NumberOrWord lossScale = {1}; ///< 0: dynamic
  std::string memoryBudget;     ///< of bytes; empty: no limit
  Checkpointing checkpoint = Checkpointing::Auto;
  OnNan onNan = OnNan::Stop;
  /// An update tells the norm of each gradient, which is whole then.
  bool tellsGradNorms = false;
  /// The batch norms that are trained; others keep their statistics.
  Patterns batchNorm = {{"*"}};
  /// Whether their batch is that of all ranks.
  bool synchronisesBatchNorms = false;
  std::vector<Override<Initializer>> init;
  std::vector<Override<double>> dropout;

  bool recomputes() const { return checkpoint == Checkpointing::Auto; }
};

/// Reads the TOML `text` of the file `name`; all that is wrong with it is added
/// to `problems`, each as `name:LINE: message`, and then the result is nullopt.
std::optional<Recipe> readRecipe(llvm::StringRef text, llvm::StringRef name,
                                 Problems &problems);

/// The same for a file.
std::optional<Recipe> readRecipeFile(const std::string &path,
                                     Problems &problems);

/// Adds the patterns for parameters that match none: typing errors, most
/// likely. Those of `train`, `freeze` and `constant` are for all tensors, those
/// of `keep_f32` for nodes, too.
void checkPatterns(const Recipe &recipe,
                   llvm::ArrayRef<ParameterTraits> parameters,
                   llvm::ArrayRef<llvm::StringRef> nodes, Problems &problems);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_RECIPE_H

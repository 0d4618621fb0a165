//===- Evaluations.h - Evaluations of a training run ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_EVALUATIONS_H
#define TCC_TOOLS_TCCRUN_EVALUATIONS_H

#include "runtime/train/Metrics.h"
#include "tools/tcc-run/Batches.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace tcc::tools {

/// What happens between the batches of an evaluation, after each that a rank
/// has of it: whether the evaluation goes on, the same at all ranks.
using Between = std::function<runtime::Result<bool>()>;

/// Evaluates the batches of this rank, which takes each W-th of W ranks, and
/// adds up those of all; nothing where `between` ends it. All ranks make the
/// call.
runtime::Result<std::optional<runtime::Evaluation>>
evaluateAll(runtime::TrainingSession &session, Batches &batches,
            const Between &between);

/// Says how many samples fill no batch, if any do not.
void noteLeftOut(const runtime::BatchLoader &loader);

/// The values of metrics, as JSON: numbers, and tables as lists of rows.
nlohmann::ordered_json
describeMetrics(std::span<const runtime::EvaluationMetric> metrics,
                std::span<const double> sums);
/// The numbers of them, for people: "loss 0.25, accuracy 91.5 %".
std::string formatMetrics(std::span<const runtime::EvaluationMetric> metrics,
                          std::span<const double> sums);

/// When a run evaluates, and on what: what the recipe says, and what the
/// command line changes of it.
struct EvaluationPlan {
  std::string data;     ///< empty: what the data's split keeps, or never
  int64_t every = 0;    ///< updates; 0: after the last one alone
  std::string best;     ///< the metric by which evaluations are compared
  int64_t patience = 0; ///< evaluations after the best one; 0: without end
  bool ema = false;

  explicit EvaluationPlan(const format::Program &program);
  /// KEY of `--set eval.KEY=VALUE`. Code::Usage if there is no such key or
  /// value.
  runtime::Status set(std::string_view key, std::string_view value);
};

/// The evaluations of one run. All ranks make the same calls, and hear the
/// same.
class Evaluations {
public:
  /// The session outlives it. Without data there are none. Code::Usage where
  /// the plan asks for what the package has not.
  static runtime::Result<Evaluations>
  open(runtime::TrainingSession &session, const EvaluationPlan &plan,
       const std::optional<runtime::DataPlan> &data, bool quiet);

  /// The first update after `step` that an evaluation follows, `last` being
  /// the run's last one.
  int64_t getNext(int64_t step, int64_t last) const;
  bool isDue(int64_t step, int64_t last) const {
    return getNext(step - 1, last) == step;
  }
  /// Evaluates what the session has between two updates. False where `between`
  /// ended it: then it says nothing.
  runtime::Result<bool> run(const Between &between);
  /// Has `work` find the parameters as they are trained, in the middle of an
  /// evaluation of other values.
  runtime::Status interrupt(const std::function<runtime::Status()> &work);
  /// Whether one follows update `step`, and did not: the run was stopped before
  /// it, or in its midst.
  bool isMissed(int64_t step, int64_t last) const;

  /// Whether the last one was the best one so far.
  bool isBest() const;
  /// Whether as many as the plan has patience for came after the best one.
  bool isOver() const;
  /// What the one after update `step` said; null if it was another one.
  nlohmann::ordered_json valuesOf(int64_t step) const;

private:
  Evaluations(runtime::TrainingSession &session, const EvaluationPlan &plan,
              bool quiet);

  runtime::Result<std::optional<runtime::Evaluation>>
  evaluate(const Between &between);
  void note(std::span<const double> sums);

  runtime::TrainingSession *session;
  EvaluationPlan plan;
  bool quiet;
  std::vector<runtime::EvaluationMetric> metrics;
  size_t best = 0;                ///< the one that the plan names
  std::optional<Batches> batches; ///< nothing without data
  nlohmann::ordered_json values;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_EVALUATIONS_H

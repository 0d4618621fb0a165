//===- Plans.h - What a run does between updates ----------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PLANS_H
#define TCC_TOOLS_TCCRUN_PLANS_H

#include "tools/tcc-run/Evaluations.h"
#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/Rollback.h"

namespace tcc::tools {

/// What tcc-run decides, and no step of the package: what the recipe says, and
/// what the command line changes of it.
struct Plans {
  runtime::DataPlan data; ///< of the recipe, maybe without a source
  EvaluationPlan evaluation;
  SpikePlan spikes;

  /// The plans of the recipe.
  static runtime::Result<Plans> open(const format::Program &program);
  /// Whether KEY of KEY=VALUE is of one of them.
  static bool have(std::string_view setting);
  /// What the command line says. Code::Usage for a key or value that there is
  /// not, and where a run has no data.
  runtime::Status use(const TrainOptions &options);
  /// What evaluations are on, if there are any.
  runtime::Result<std::optional<runtime::DataPlan>> dataOfEvaluations() const;

private:
  explicit Plans(const format::Program &program)
      : evaluation(program), spikes(program) {}
  runtime::Status set(std::string_view setting);
  runtime::Status useData(const TrainOptions &options);
};

/// `image_cache` and `block_cache` of a run's result, where the plan has them.
nlohmann::ordered_json describeCaches(const runtime::DataPlan &plan);
/// Why a cache on disk takes no more, told once; else empty.
std::string takeCacheProblem(const runtime::DataPlan &plan);

/// Neither the command line nor the recipe says where data are.
runtime::Status noData();

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PLANS_H

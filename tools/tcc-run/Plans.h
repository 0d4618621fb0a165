//===- Plans.h - What a run does between updates ----------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PLANS_H
#define TCC_TOOLS_TCCRUN_PLANS_H

#include "tools/tcc-run/Evaluations.h"
#include "tools/tcc-run/Rollback.h"

namespace tcc::tools {

/// What tcc-run decides, and no step of the package: what the recipe says, and
/// what settings change of it.
struct Plans {
  runtime::DataPlan data;
  EvaluationPlan evaluation;
  SpikePlan spikes;

  explicit Plans(const format::Program &program)
      : evaluation(program), spikes(program) {}
  /// Whether KEY of KEY=VALUE is of one of them.
  static bool have(std::string_view setting);
  /// What evaluations are on, if there are any.
  runtime::Result<std::optional<runtime::DataPlan>> dataOfEvaluations() const;
  /// Of a setting that they have. Code::Usage if there is no such key or value.
  runtime::Status set(std::string_view setting);
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PLANS_H

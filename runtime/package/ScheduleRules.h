//===- ScheduleRules.h - Values of a schedule together ----------*- C++ -*-===//
//
// What the schedule of a recipe and the settings of a session are both held to.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_SCHEDULERULES_H
#define TCC_RUNTIME_PACKAGE_SCHEDULERULES_H

#include "runtime/base/Status.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tcc::format {

/// A key without a default that some kinds of schedule need.
struct ScheduleNeed {
  const char *key;
  std::string_view kinds; ///< separated by spaces

  bool isOf(std::string_view kind) const {
    for (std::string_view rest = kinds; !rest.empty();) {
      size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == kind)
        return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  }
};

inline constexpr ScheduleNeed kScheduleNeeds[] = {
    {"schedule.total_steps", "one_cycle cosine linear"},
    {"schedule.max_lr", "one_cycle"},
    {"schedule.step_size", "step"},
};

struct ScheduleProblem {
  const char *key; ///< whose value is wrong
  std::string message;
};

/// What is wrong with a schedule of this kind. `get` gives the number of a key,
/// if it has been given.
inline std::vector<ScheduleProblem> checkSchedule(
    std::string_view kind,
    const std::function<std::optional<double>(std::string_view key)> &get) {
  using runtime::concat;
  std::vector<ScheduleProblem> problems;
  for (const ScheduleNeed &need : kScheduleNeeds)
    if (need.isOf(kind) && !get(need.key))
      problems.push_back({"schedule.kind", concat("schedule.kind = '", kind,
                                                  "' needs ", need.key)});
  constexpr const char *kWarmup = "schedule.warmup_steps";
  std::optional<double> warmup = get(kWarmup);
  std::optional<double> total = get("schedule.total_steps");
  if (warmup && total && *warmup >= *total)
    problems.push_back({kWarmup, concat(kWarmup, " is ", int64_t(*warmup),
                                        ", expected less than the ",
                                        int64_t(*total), " steps in total")});
  return problems;
}

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_SCHEDULERULES_H

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

/// Whether a word is one of those of a list, which spaces separate.
inline bool isListed(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word)
      return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// A key without a default that some kinds of schedule need.
struct ScheduleNeed {
  const char *key;
  std::string_view kinds; ///< separated by spaces
};

inline constexpr ScheduleNeed kScheduleNeeds[] = {
    {"schedule.total_steps", "one_cycle cosine linear"},
    {"schedule.max_lr", "one_cycle"},
    {"schedule.step_size", "step"},
};

/// The kinds of schedule that have both a warm-up and an end.
inline constexpr std::string_view kKindsWithWarmupAndEnd = "cosine linear";

struct ScheduleProblem {
  const char *key; ///< whose value is wrong
  std::string message;
  const char *missing = ""; ///< the key that the value needs, if it is that
};

/// A whole number in a double may be above the largest int64_t.
inline int64_t toCount(double number) {
  return number < 0x1p63 ? static_cast<int64_t>(number) : INT64_MAX;
}

/// What is wrong with a schedule of this kind. `get` gives the number of a key,
/// if it has been given.
inline std::vector<ScheduleProblem> checkSchedule(
    std::string_view kind,
    const std::function<std::optional<double>(std::string_view key)> &get) {
  using runtime::concat;
  std::vector<ScheduleProblem> problems;
  for (const ScheduleNeed &need : kScheduleNeeds)
    if (isListed(need.kinds, kind) && !get(need.key))
      problems.push_back(
          {"schedule.kind",
           concat("schedule.kind = '", kind, "' needs ", need.key), need.key});
  if (!isListed(kKindsWithWarmupAndEnd, kind))
    return problems;
  constexpr const char *kWarmup = "schedule.warmup_steps";
  std::optional<double> warmup = get(kWarmup);
  std::optional<double> total = get("schedule.total_steps");
  if (warmup && total && *warmup >= *total)
    problems.push_back({kWarmup, concat(kWarmup, " is ", toCount(*warmup),
                                        ", expected less than the ",
                                        toCount(*total), " steps in total")});
  return problems;
}

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_SCHEDULERULES_H

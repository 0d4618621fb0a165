#include "tools/tcc-run/Plans.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr std::string_view kEvaluationPrefix = "eval.",
                                  kDataPrefix = "data.";

static std::string_view keyOf(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

bool Plans::have(std::string_view setting) {
  std::string_view key = keyOf(setting);
  return key.size() < setting.size() &&
         (key.starts_with(kEvaluationPrefix) || key.starts_with(kDataPrefix) ||
          SpikePlan::has(key));
}

Status Plans::set(std::string_view setting) {
  std::string_view key = keyOf(setting), value = setting.substr(key.size() + 1);
  if (key.starts_with(kDataPrefix)) {
    Status status = data.set(key.substr(kDataPrefix.size()), value);
    return status.ok() ? Status()
                       : makeError(status.code(), "--set: ", status.message());
  }
  return SpikePlan::has(key)
             ? spikes.set(key, value)
             : evaluation.set(key.substr(kEvaluationPrefix.size()), value);
}

Result<std::optional<DataPlan>> Plans::dataOfEvaluations() const {
  if (evaluation.data.empty())
    return data.split > 0 ? std::optional(data) : std::nullopt;
  DataPlan chosen = data;
  if (Status status = chooseForEvaluation(evaluation.data, chosen);
      !status.ok())
    return makeError(status.code(), "eval.data: ", status.message());
  return std::optional(std::move(chosen));
}

#include "tools/tcc-run/Plans.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr std::string_view kEvaluationPrefix = "eval.";

static std::string_view keyOf(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

bool Plans::have(std::string_view setting) {
  std::string_view key = keyOf(setting);
  return key.size() < setting.size() &&
         (key.starts_with(kEvaluationPrefix) || SpikePlan::has(key));
}

Status Plans::set(std::string_view setting) {
  std::string_view key = keyOf(setting), value = setting.substr(key.size() + 1);
  return SpikePlan::has(key)
             ? spikes.set(key, value)
             : evaluation.set(key.substr(kEvaluationPrefix.size()), value);
}

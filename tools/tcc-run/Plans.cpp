#include "tools/tcc-run/Plans.h"

#include "runtime/data/images/ImageCache.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr std::string_view kEvaluationPrefix = "eval.",
                                  kDataPrefix = "data.";

static std::string_view keyOf(std::string_view setting) {
  return setting.substr(0, setting.find('='));
}

Status tools::noData() {
  return Status(Code::Usage, "on which data? give --data, or [data] with a "
                             "source in the recipe");
}

Result<Plans> Plans::open(const format::Program &program) {
  Plans plans(program);
  if (!program.data())
    return plans;
  Status status = plans.data.read(program.data()->string_view());
  if (!status.ok())
    return makeError(status.code(),
                     "[data] of the package: ", status.message());
  return plans;
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

Status Plans::useData(const TrainOptions &options) {
  const std::string &given = options.data.data;
  if (!given.empty())
    if (Status status = data.use(given); !status.ok())
      return status;
  for (std::string_view setting : options.settings) {
    if (keyOf(setting) == "data.source" && !given.empty() && !isPlanFile(given))
      return makeError(Code::Usage, "--set: ", setting, ", and --data is '",
                       given, "': give one of them");
    if (have(setting))
      if (Status status = set(setting); !status.ok())
        return status;
  }
  return data.sources.empty() ? noData() : Status();
}

Status Plans::use(const TrainOptions &options) {
  if (Status status = useData(options); !status.ok())
    return status;
  if (options.retention.keepBest.empty())
    return Status();
  evaluation.best = options.retention.keepBest;
  if (evaluation.data.empty() && data.split == 0)
    return Status(Code::Usage, "--keep-best needs evaluations: give "
                               "--set eval.data=SPEC, or [eval] in the recipe");
  return Status();
}

Result<std::optional<DataPlan>> Plans::dataOfEvaluations() const {
  if (evaluation.data.empty())
    return data.split > 0 && !data.sources.empty() ? std::optional(data)
                                                   : std::nullopt;
  DataPlan chosen = data;
  if (Status status = chooseForEvaluation(evaluation.data, chosen);
      !status.ok())
    return makeError(status.code(), "eval.data: ", status.message());
  return std::optional(std::move(chosen));
}

template <typename Use> static nlohmann::ordered_json describe(const Use &use) {
  return {{"lookups", use.lookups}, {"hits", use.hits}, {"bytes", use.bytes}};
}

nlohmann::ordered_json tools::describeCaches(const DataPlan &plan) {
  auto caches = nlohmann::ordered_json::object();
  if (plan.images)
    caches["image_cache"] = describe(plan.images->use());
  if (plan.blocks && plan.blocks->get())
    caches["block_cache"] = describe(plan.blocks->get()->use());
  return caches;
}

std::string tools::takeCacheProblem(const DataPlan &plan) {
  bool isOpen = plan.blocks && plan.blocks->get();
  return isOpen ? plan.blocks->get()->takeProblem() : "";
}

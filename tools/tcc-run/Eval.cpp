#include "tools/tcc-run/Evaluations.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Plans.h"
#include "tools/tcc-run/Ranks.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static void printResult(const TrainingSession &session, const Evaluation &sum,
                        int64_t samples, const EvalOptions &options) {
  auto metrics = listMetrics(session.executable().program());
  if (!options.running.json) {
    std::cout << formatMetrics(metrics, sum.sums) << ", " << samples
              << " samples\n";
    return;
  }
  nlohmann::ordered_json values = describeMetrics(metrics, sum.sums);
  printJson({{"schema_version", 1},
             {"loss", values.value("loss", nlohmann::ordered_json())},
             {"accuracy", values.value("accuracy", nlohmann::ordered_json())},
             {"samples", samples},
             {"metrics", values}});
}

/// What `--data` names, or else what a training run evaluates.
static Result<DataPlan> choosePlan(const format::Program &program,
                                   const std::string &data) {
  auto plans = Plans::open(program);
  if (!plans.ok())
    return plans.takeStatus();
  if (!data.empty()) {
    Status status = chooseForEvaluation(data, plans->data);
    return status.ok() ? Result<DataPlan>(std::move(plans->data))
                       : std::move(status);
  }
  auto chosen = plans->dataOfEvaluations();
  if (!chosen.ok())
    return chosen.takeStatus();
  if (!*chosen)
    return noData();
  return std::move(**chosen);
}

static Status evaluate(const EvalOptions &options, const Ranks &ranks) {
  auto session =
      openTraining(options.running, options.data, ranks.communicator.get());
  if (!session.ok())
    return session.takeStatus();
  if (!options.data.checkpointDir.empty())
    if (auto restored = restoreFrom(**session, options.data.checkpointDir,
                                    options.checkpoint, options.running.quiet);
        !restored.ok())
      return restored.takeStatus();
  if (options.ema)
    if (Status status = (*session)->exchangeMeans(); !status.ok())
      return makeError(status.code(), "--ema: ", status.message());
  auto plan = choosePlan((*session)->executable().program(), options.data.data);
  if (!plan.ok())
    return plan.takeStatus();
  auto batches = Batches::open(**session, format::EntryKind::eval, *plan,
                               /*seed=*/0, /*shuffles=*/false);
  if (!batches.ok())
    return batches.takeStatus();
  auto sum = evaluateAll(**session, *batches, [] { return true; });
  if (!sum.ok() || !ranks.isFirst())
    return sum.ok() ? Status() : sum.takeStatus();
  batches->warnOfSkipped(options.running.quiet);
  if (!options.running.quiet)
    noteLeftOut(batches->loader());
  printResult(**session, **sum, batches->loader().order().samplesPerEpoch(),
              options);
  return Status();
}

int tools::evalCommand(const EvalOptions &options) {
  Ranks ranks;
  Status status = joinRanks(options.running, ranks);
  EvalOptions own = options;
  own.running = ofRank(ranks, options.running);
  if (status.ok())
    status = compareFlags(ranks,
                          concat(format::nameOf(format::EntryKind::eval), " ",
                                 !options.data.init.empty(), " ", options.ema));
  if (status.ok())
    status = evaluate(own, ranks);
  return reportOfRank(endTogether(ranks, std::move(status)), ranks, "");
}

#include "tools/tcc-run/UpdateRecord.h"

#include "runtime/package/Names.h"
#include "tools/tcc-run/ResidentMemory.h"

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr char kTrain[] = "train", kSpeed[] = "speed";

const char *tools::nameOfEvaluation() {
  return format::nameOf(format::EntryKind::eval);
}

UpdateRecord tools::describeUpdate(const StepMetrics &metrics, const Pace &pace,
                                   nlohmann::ordered_json evaluation) {
  UpdateRecord record = {metrics.step,
                         {{kTrain, "loss", metrics.loss},
                          {kTrain, "lr", metrics.lr},
                          {kTrain, "grad_norm", metrics.gradNorm},
                          {kTrain, "loss_scale", metrics.lossScale},
                          {kTrain, "skipped", metrics.skipped},
                          {kSpeed, "samples_per_s", pace.samplesPerSecond},
                          {kSpeed, "update_s", pace.seconds},
                          {kSpeed, "stall_s", pace.stall},
                          {kSpeed, "data_wait_s", pace.dataWait}},
                         std::move(evaluation)};
  std::vector<LoggedValue> &values = record.values;
  if (pace.tokensPerSecond)
    values.push_back({kSpeed, "tokens_per_s", *pace.tokensPerSecond});
  if (pace.mfu)
    values.push_back({kSpeed, "mfu", *pace.mfu});
  if (pace.exposed)
    values.push_back({kSpeed, "exposed_communication_s", *pace.exposed});
  if (auto bytes = readResidentBytes())
    values.push_back({"memory", "resident_bytes", *bytes});
  if (pace.isSpike)
    values.push_back({kTrain, "spike", true});
  return record;
}

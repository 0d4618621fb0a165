#include "runtime/package/Digest.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Ranks.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/TrainSession.h"

#include <iomanip>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static void printResult(const Evaluation &sum, int64_t samples,
                        const EvalOptions &options) {
  double loss = sum.loss / sum.count;
  double accuracy = static_cast<double>(sum.correct) / sum.count;
  if (options.running.json) {
    nlohmann::ordered_json document = {
        {"schema_version", 1},
        {"loss", loss},
        {"accuracy", nullptr},
        {"samples", samples},
    };
    if (sum.isClassifier)
      document["accuracy"] = accuracy;
    return printJson(document);
  }
  std::cout << "loss " << std::setprecision(6) << loss;
  if (sum.isClassifier)
    std::cout << ", accuracy " << std::setprecision(4) << 100 * accuracy
              << " %";
  std::cout << ", " << samples << " samples\n";
}

/// Rank r of W takes the batches r, r + W and so on.
static Status evaluate(const EvalOptions &options, const Ranks &ranks) {
  auto session =
      openTraining(options.running, options.data, ranks.communicator.get());
  if (!session.ok())
    return session.takeStatus();
  if (!options.data.checkpointDir.empty())
    if (auto restored = restoreNewest(**session, options.data.checkpointDir,
                                      options.running.quiet);
        !restored.ok())
      return restored.takeStatus();
  auto batches =
      Batches::open(**session, format::EntryKind::eval, options.data.data,
                    /*seed=*/0, /*shuffles=*/false);
  if (!batches.ok())
    return batches.takeStatus();
  const BatchReader &reader = batches->reader();
  int64_t samplesOfRank = reader.sampleCount();
  if (Status status = (*session)->compareRanks(
          digestOf(std::as_bytes(std::span(&samplesOfRank, 1))),
          "another number of samples");
      !status.ok())
    return status;
  Evaluation sum;
  for (int64_t i = ranks.launch.rank; i < reader.batchesPerEpoch();
       i += ranks.launch.size) {
    if (Status status = batches->read(i); !status.ok())
      return status;
    if (Status status = (*session)->evaluate(batches->views(), sum);
        !status.ok())
      return batches->explain(std::move(status), **session, i);
  }
  if (Status status = (*session)->addUp(sum); !status.ok() || !ranks.isFirst())
    return status;
  int64_t samples = reader.samplesPerEpoch();
  if (samples < reader.sampleCount() && !options.running.quiet)
    std::cerr << "tcc-run: note: " << reader.sampleCount() - samples
              << " samples do not fill a batch of " << reader.batchSize()
              << " and are left out\n";
  printResult(sum, samples, options);
  return Status();
}

int tools::evalCommand(const EvalOptions &options) {
  Ranks ranks;
  Status status = joinRanks(options.running, ranks);
  EvalOptions own = options;
  own.running = ofRank(ranks, options.running);
  if (status.ok())
    status = compareFlags(ranks, concat(format::nameOf(format::EntryKind::eval),
                                        " ", !options.data.init.empty()));
  if (status.ok())
    status = evaluate(own, ranks);
  return reportOfRank(endTogether(ranks, std::move(status)), ranks, "");
}

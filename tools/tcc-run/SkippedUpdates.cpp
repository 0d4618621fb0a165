#include "tools/tcc-run/SkippedUpdates.h"

#include <cmath>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

void SkippedUpdates::note() {
  constexpr int kMostLooks = 10; // a broken run has many
  const StepMetrics &metrics = session.metrics();
  bool isBroken = metrics.skipped && (!std::isfinite(metrics.loss) ||
                                      std::isnan(metrics.lossScale));
  if (!isBroken || hasNoted() || looks == kMostLooks)
    return;
  ++looks;
  batches = updates.lastBatches();
  step = metrics.step;
}

std::string SkippedUpdates::explain() {
  if (!hasNoted())
    return "";
  std::string found =
      updates.findNonFinite(std::exchange(batches, std::vector<int64_t>()));
  if (found.empty() && session.rank() > 0) // the first rank says it
    return "";
  return concat("update ", step, " was skipped, it is not finite",
                found.empty() ? "" : "; first was ", found);
}

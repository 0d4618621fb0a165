#include "tools/tcc-run/Pace.h"

#include "runtime/base/Status.h"

#include <cmath>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

double Pace::waitingShare() const {
  double all = seconds + stall;
  return all > 0 ? (dataWait + stall) / all : 0;
}

/// Nothing once there was nothing.
static void addTo(std::optional<double> &sum, std::optional<double> amount) {
  if (sum && amount)
    *sum += *amount;
  else
    sum = std::nullopt;
}

void PaceSum::add(const Pace &pace) {
  ++count;
  seconds += pace.seconds;
  samples += pace.samplesPerSecond * pace.seconds;
  dataWait += pace.dataWait;
  flops += pace.flops;
  addTo(exposed, pace.exposed);
  addTo(tokens, pace.tokensPerSecond
                    ? std::optional(*pace.tokensPerSecond * pace.seconds)
                    : std::nullopt);
}

Pace PaceSum::average() const {
  if (count == 0)
    return {};
  auto updates = double(count);
  Pace average = {.samplesPerSecond = samples / seconds,
                  .stall = stall / updates,
                  .dataWait = dataWait / updates,
                  .seconds = seconds / updates,
                  .flops = flops / updates};
  if (tokens)
    average.tokensPerSecond = *tokens / seconds;
  if (exposed)
    average.exposed = *exposed / updates;
  return average;
}

std::string PaceSum::describeWaits() const {
  std::string text;
  auto add = [&](double part, const char *of) {
    if (long long share = count ? std::llround(100 * part / seconds) : 0)
      text += concat(text.empty() ? "" : ", ", share,
                     " % of the time waiting for ", of);
  };
  add(dataWait, "data");
  add(exposed.value_or(0), "other ranks");
  return text;
}

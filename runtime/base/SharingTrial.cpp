#include "runtime/base/SharingTrial.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

/// A share of the time alone: less gain is noise, not worth a second processor.
static constexpr double kLeastGain = 0.02;

double SharingTrial::median() {
  auto middle = times.begin() + kWalks / 2;
  std::nth_element(times.begin(), middle, times.end());
  taken = 0;
  return *middle;
}

void SharingTrial::settle(bool isFasterShared) {
  bool isSame = isFasterShared == lastResult;
  pause = isSame ? std::min(2 * pause, kLastPause) : kFirstPause;
  lastResult = shares = isFasterShared;
  walksLeft = pause;
  phase = Phase::Settled;
}

void SharingTrial::add(double microseconds) {
  if (phase == Phase::Settled) {
    if (--walksLeft == 0) {
      phase = Phase::Shared;
      shares = true;
    }
    return;
  }
  times[taken++] = microseconds;
  if (taken < kWalks)
    return;
  if (phase == Phase::Alone)
    return settle(sharedTime <= (1 - kLeastGain) * median());
  sharedTime = median();
  if (sharedTime > longest)
    return settle(true);
  phase = Phase::Alone;
  shares = false;
}

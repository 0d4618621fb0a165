#include "runtime/devices/cpu/SharingTrial.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

/// In microseconds. Longer walks lose little by what threads cost, and much
/// while they are tried alone.
static constexpr double kLongWalk = 1000;

/// Of the time alone: less gain is noise, and not worth a second processor.
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
  if (sharedTime > kLongWalk)
    return settle(true);
  phase = Phase::Alone;
  shares = false;
}

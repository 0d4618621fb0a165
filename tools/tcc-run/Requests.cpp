#include "tools/tcc-run/Requests.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

void Requests::listen(Communicator *all) {
  signals.emplace();
  ranks = all;
  changeUnits();
}

void Requests::changeUnits() {
  unitsToLook = unitsSinceLook = 0;
  looked = Clock::now();
}

/// As many as take a quarter of a second, by the time of those since the last
/// look.
int64_t Requests::countUnitsToLook() {
  constexpr double kSeconds = 0.25, kMost = 1e4;
  Clock::time_point now = Clock::now();
  double seconds = std::chrono::duration<double>(now - looked).count();
  looked = now;
  double units = std::exchange(unitsSinceLook, 0);
  return int64_t(std::clamp(kSeconds * units / seconds, 1.0, kMost));
}

Result<bool> Requests::look(bool ready) {
  if (!signals)
    return false;
  ++unitsSinceLook;
  if (ranks && --unitsToLook > 0)
    return false;
  SignalRequest own = signals->take();
  // Stop, whether to save, whether time is up, whether this rank is ready,
  // units to the next look.
  using Look = std::array<int64_t, 5>;
  Look seen = {own.stop, own.saves, isTimeUp(), ready,
               ranks ? countUnitsToLook() : 0};
  std::vector<Look> all(ranks ? ranks->size() : 1, seen);
  if (ranks)
    if (Status status = ranks->allGather(&seen, all.data(), seen.size(),
                                         DType::i64, "what signals ask for");
        !status.ok())
      return status;
  bool areReady = true;
  for (const Look &of : all) {
    asked.stop = std::max(asked.stop, static_cast<int>(of[0]));
    asked.saves |= of[1] != 0;
    if (of[2] != 0)
      endsBy = "--max-time";
    areReady &= of[3] != 0;
  }
  unitsToLook = all[0][4];
  return areReady;
}

std::string Requests::describeEnd() const {
  return asked.stop ? concat("SIG", sigabbrev_np(asked.stop))
         : endsBy   ? std::string(endsBy)
                    : "";
}

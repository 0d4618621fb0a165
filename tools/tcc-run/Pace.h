//===- Pace.h - How fast updates are ----------------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PACE_H
#define TCC_TOOLS_TCCRUN_PACE_H

#include <cstdint>
#include <optional>
#include <string>

namespace tcc::tools {

/// How fast an update was, or several on average.
struct Pace {
  double samplesPerSecond = 0; ///< of all ranks
  /// Positions of samples that are sequences, likewise; nothing of others.
  std::optional<double> tokensPerSecond = {};
  /// Seconds that the ranks' communication kept others waiting, as not hidden
  /// behind what is computed; nothing for one rank.
  std::optional<double> exposed = {};
  double stall = 0;     ///< seconds that training waited for checkpoints
  double dataWait = 0;  ///< seconds that the update waited for its batches
  double seconds = 0;   ///< of the update, without `stall`
  bool isSpike = false; ///< the update will be left out
  double flops = 0; ///< that this rank computed, as the compiler counts them
  /// flops / seconds / the peak of this rank's device, where that is known.
  std::optional<double> mfu = {};

  /// The part of all time that training waited for batches and checkpoints.
  double waitingShare() const;
};

/// What the updates of a run took together.
class PaceSum {
public:
  void add(const Pace &pace);
  /// What training waited for a checkpoint after an update that was added.
  void addStall(double time) { stall += time; }
  /// Rates of all time, the other figures of an update, 0 without one. Nothing
  /// is known of other ranks, or of tokens, once an update did not know, and
  /// nothing of the peak.
  Pace average() const;
  /// "3 % of the time waiting for data": what is worth a word, or "".
  std::string describeWaits() const;

private:
  int64_t count = 0;
  double seconds = 0, samples = 0, dataWait = 0, stall = 0, flops = 0;
  std::optional<double> exposed = 0, tokens = 0;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PACE_H

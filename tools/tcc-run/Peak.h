//===- Peak.h - What a session's device computes at most --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PEAK_H
#define TCC_TOOLS_TCCRUN_PEAK_H

#include "runtime/train/Session.h"

namespace tcc::tools {

/// What the device of a session could compute at most.
class Peak {
public:
  /// The session outlives it, and may keep so many CPUs busy.
  Peak(runtime::TrainingSession &session, int cpus);

  /// Operations a second of products as the recipe has them, by the threads
  /// that compute, of which no more than CPUs count. The first call after a
  /// step measures it in 10 ms. Nothing before a step, without AVX2, and for
  /// devices that are not the host: what they could do is not known.
  std::optional<double> flops() const;
  /// How much of it so many operations in so many seconds are; nothing of none,
  /// as of a package that does not say how many it has.
  std::optional<double> shareOf(double operations, double seconds) const;

private:
  runtime::TrainingSession &session;
  int cpus;
  bool isMeasurable; ///< virtual machines take microseconds to tell features
  mutable std::optional<double> measured;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PEAK_H

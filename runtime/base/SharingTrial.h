//===- SharingTrial.h - Whether threads make walks faster -------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_SHARINGTRIAL_H
#define TCC_RUNTIME_BASE_SHARINGTRIAL_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace tcc::runtime {

/// Decides how walks of one kind run, shared by all threads or by fewer, by
/// what they took. What threads cost besides their work shows only there: data
/// that lies in another's caches, waking, a processor that others use.
class SharingTrial {
public:
  /// Longer walks are always shared: they lose little by what threads cost, and
  /// much while they are tried alone.
  static constexpr double kLongWalk = 1000;

  explicit SharingTrial(double longest = kLongWalk) : longest(longest) {}

  static constexpr size_t kWalks = 7; ///< of which the median counts
  /// Until the next trial; doubled while the result stays the same.
  static constexpr int64_t kFirstPause = 64, kLastPause = 4096;

  /// Whether the next walk is shared.
  bool isShared() const { return shares; }
  /// What that walk took.
  void add(double microseconds);

private:
  enum class Phase { Shared, Alone, Settled };

  double median();
  void settle(bool isFasterShared);

  double longest; ///< microseconds
  Phase phase = Phase::Shared;
  bool shares = true;
  bool lastResult = true;
  std::array<double, kWalks> times = {};
  size_t taken = 0;
  double sharedTime = 0;
  int64_t pause = kFirstPause;
  int64_t walksLeft = 0; ///< of the pause
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_SHARINGTRIAL_H

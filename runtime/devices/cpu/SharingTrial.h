//===- SharingTrial.h - Whether threads make walks faster -------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CPU_SHARINGTRIAL_H
#define TCC_RUNTIME_DEVICES_CPU_SHARINGTRIAL_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace tcc::runtime {

/// Decides how the walks of one entry run, with the same sizes, by what they
/// took. What threads cost besides their launches shows only there: data that
/// lies in another's caches, waking, a processor that others use. Walks of more
/// than a millisecond are always shared.
class SharingTrial {
public:
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

#endif // TCC_RUNTIME_DEVICES_CPU_SHARINGTRIAL_H

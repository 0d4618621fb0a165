//===- Recorder.h - The last collectives of a rank --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_RECORDER_H
#define TCC_RUNTIME_RANKS_RECORDER_H

#include "runtime/package/DType.h"
#include "runtime/ranks/CollectiveKind.h"

#include <array>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace tcc::runtime {

/// One collective call of a rank. Ranks send it to each other as it lies in
/// memory.
struct CollectiveCall {
  uint64_t number = 0; ///< from 1 on, the same at all ranks; 0: none yet
  int64_t step = 0;    ///< the update that it is part of, as in Position
  uint64_t count = 0;  ///< elements
  /// Nanoseconds since the recorder was made; end = -1: it has not ended.
  int64_t begin = 0, end = -1;
  CollectiveKind kind = CollectiveKind::Barrier;
  DType dtype = DType::u8;
  char of[94] = {}; ///< what it is of, as far as it fits; ends with 0
};

/// How far a rank is.
struct Position {
  int64_t step = 0; ///< the number of the update under way; 0: before the first
  CollectiveCall last = {};
};

/// A position in messages: "at update 12 in all-reduce 37 of gradient/a to
/// gradient/b"; "after" where that ended.
std::string describe(const Position &position);

/// How far a device is with the collectives of one run that it was given: it
/// writes 2 i + 1 when it begins the i-th of them, 2 i + 2 when that is done.
/// In memory that outlives the run; read by any thread.
using DeviceProgress = uint64_t;

/// A flight recorder. Any thread may call it; it allocates nothing but for
/// `collectives` and calls of devices.
class Recorder {
public:
  static constexpr size_t kKept = 64;

  void setStep(int64_t number);
  /// Notes a call that begins, which is the position until the next one does.
  void begin(CollectiveKind kind, size_t count, DType dtype,
             std::string_view of);
  /// Notes that the last call ended well.
  void end();
  /// Notes a call that a device was given as the `index`-th of a run. It gets
  /// its number, and becomes the position, when the device says that it begins.
  void give(CollectiveKind kind, size_t count, DType dtype, std::string_view of,
            DeviceProgress &progress, uint64_t index);
  /// Forgets what a run that is over did not begin: `progress` is to be used
  /// again.
  void forget(const DeviceProgress &progress);
  /// Keeps what devices have said so far, and no later word of them: what they
  /// say once their calls were ended is not so, and their memory goes.
  void freeze();

  Position position() const;
  /// The last kKept calls, the oldest first.
  std::vector<CollectiveCall> collectives() const;
  /// Nanoseconds since the recorder was made.
  int64_t now() const;

private:
  using Clock = std::chrono::steady_clock;

  /// A call that has not ended on its device, as far as is known.
  struct Given {
    CollectiveCall call;
    DeviceProgress *progress;
    uint64_t index;
    bool hasBegun = false;
  };

  CollectiveCall &last() const { return ring[number % kKept]; }
  void add(CollectiveCall call) const;
  void advance() const;

  const Clock::time_point made = Clock::now();
  mutable std::mutex mutex; ///< guards what follows
  mutable std::array<CollectiveCall, kKept> ring;
  mutable uint64_t number = 0;     ///< that the last call has
  mutable std::deque<Given> given; ///< in the order in which they begin
  int64_t step = 0;
  bool isFrozen = false;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_RECORDER_H

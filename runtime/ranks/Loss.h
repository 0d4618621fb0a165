//===- Loss.h - Which rank was lost, and why --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_LOSS_H
#define TCC_RUNTIME_RANKS_LOSS_H

#include "runtime/ranks/Recorder.h"

namespace tcc::runtime {

/// What a rank last said of itself.
struct Sighting {
  int32_t rank = -1;
  char host[60] = {}; ///< its name, as far as it fits; ends with 0
  Position position = {};
};

/// Why a rank is lost.
enum class Cause : uint32_t {
  Ended,  ///< its connection ended without a word
  Silent, ///< no word of it for too long
  Left,   ///< it said that it does not go on
  Failed, ///< its call failed, of which `why` says what the transport says
  Behind, ///< it did not come to a collective, which `why` says
};
inline constexpr Cause kLastCause = Cause::Behind;

/// The loss that ends a run. All ranks have the same one, but for those that
/// cannot be told.
struct Loss {
  Sighting who = {};
  Cause cause = Cause::Ended;
  uint32_t milliseconds = 0; ///< that others heard nothing, or waited for it
  char why[128] = {};        ///< as far as it fits; ends with 0
};

/// A time in messages: "10 s", "0.5 s".
std::string describeTime(uint32_t milliseconds);

/// What this process, a rank at a position, says of itself.
Sighting seeOwn(int rank, const Position &position);

/// A rank's name in messages: "rank 2 (host b)".
std::string nameOf(const Sighting &rank);

/// The line for the user of the rank `own`: who was lost, why and where, and
/// where this rank is.
std::string describe(const Loss &loss, const Sighting &own);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_LOSS_H

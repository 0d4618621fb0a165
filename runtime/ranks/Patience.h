//===- Patience.h - How long ranks wait for each other ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_PATIENCE_H
#define TCC_RUNTIME_RANKS_PATIENCE_H

#include "runtime/base/Status.h"
#include "runtime/ranks/Launch.h"

#include <chrono>

namespace tcc::runtime {

/// How long a rank waits for others. Of `silence` and `collective` those of
/// rank 0 count, and 0 is for ever.
struct Patience {
  std::chrono::milliseconds rendezvous = std::chrono::seconds(30);
  /// For a rank from which there is no word, though its process may be there.
  std::chrono::milliseconds silence = std::chrono::seconds(10);
  /// For a rank that gives word and does not come to a collective that another
  /// is in; longer than a checkpoint takes.
  std::chrono::milliseconds collective = std::chrono::minutes(10);
};

/// What TCC_HEARTBEAT says of the silence and TCC_COLLECTIVE_TIMEOUT of the
/// collective, in seconds; Code::Usage if one is no time.
Result<Patience> readPatience(const Environment &environment);
/// What the environment of this process says.
Result<Patience> readPatience();

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_PATIENCE_H

//===- Cores.h - Cores that ranks share -------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_CORES_H
#define TCC_RUNTIME_RANKS_CORES_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <cstdint>
#include <sched.h>
#include <span>

namespace tcc::runtime {

class Communicator;

/// The cores that a process may use.
struct Cores {
  format::Digest machine = {}; ///< the same for all its processes
  format::Digest group = {};   ///< of its control group, likewise
  cpu_set_t mask = {};         ///< cores that it may run on
  int64_t quota = 0;           ///< CPUs that the group may use; 0: no limit
};

/// Of this process.
Cores readCores();

/// The threads that rank `rank` of `all` is to have, at least 1. Ranks have
/// equal parts of a core that they may run on, and of the quota of their group:
///   min(sum of 1 / (ranks of the core), quota / (ranks of the group)).
/// So a rank that its launcher bound to cores of its own has a thread on each.
int countThreads(std::span<const Cores> all, size_t rank);

/// The threads of this rank. All ranks call it.
Result<int> shareCores(Communicator &ranks);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_CORES_H

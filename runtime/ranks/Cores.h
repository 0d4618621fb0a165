//===- Cores.h - Cores that ranks share -------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_CORES_H
#define TCC_RUNTIME_RANKS_CORES_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <array>
#include <cstdint>
#include <sched.h>
#include <span>

namespace tcc::runtime {

class Communicator;

/// The cores that a process may use.
struct Cores {
  /// CPUs that a control group may use, the process among others.
  struct Quota {
    format::Digest group = {}; ///< the same for all its processes
    int64_t cpus = 0;          ///< 0: there is no such group
  };

  format::Digest machine = {}; ///< the same for all its processes
  cpu_set_t mask = {};         ///< cores that the process may run on
  /// The smallest that the process is under.
  std::array<Quota, 4> quotas = {};
};

/// The cores of this process.
Cores readCores();

/// The threads that rank `rank` of `all` is to have, at least 1. Ranks have
/// equal parts of a core that they may run on, and of the quota of each group
/// that they are in:
///   min(sum of 1 / (ranks of the core), cpus / (ranks of the group)).
/// So a rank that its launcher bound to cores of its own has a thread on each.
int countThreads(std::span<const Cores> all, size_t rank);

/// The number of threads of this rank. All ranks call it.
Result<int> shareCores(Communicator &ranks);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_CORES_H

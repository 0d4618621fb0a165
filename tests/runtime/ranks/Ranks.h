//===- Ranks.h - Ranks as threads of a test ---------------------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_RANKS_RANKS_H
#define TCC_TESTS_RUNTIME_RANKS_RANKS_H

#include "runtime/ranks/OpenCommunicator.h"

namespace tcc::tests {

/// A port of this machine that is free now.
uint16_t findFreePort();

/// Opens the plugins of the build.
void usePlugins();

/// Calls `work` once for each rank, each in a thread of its own, which must
/// open its communicator.
void runRanks(int size,
              const std::function<void(runtime::Communicator &)> &work,
              const runtime::Patience &patience = {});

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_RANKS_RANKS_H

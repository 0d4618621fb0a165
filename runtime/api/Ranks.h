//===- Ranks.h - The ranks that an embedder names ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_API_RANKS_H
#define TCC_RUNTIME_API_RANKS_H

#include "runtime/ranks/Communicator.h"
#include "tcc/runtime.h"

#include <memory>

namespace tcc::runtime {

/// Meets the other ranks of a session; null if it is alone.
Result<std::unique_ptr<Communicator>>
joinRanks(const tcc_session_options &given);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_API_RANKS_H

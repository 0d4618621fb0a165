//===- FreePort.h - A port of this machine ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_FREEPORT_H
#define TCC_RUNTIME_RANKS_FREEPORT_H

#include "runtime/base/Status.h"

#include <cstdint>

namespace tcc::runtime {

/// A TCP port of the address `host` that nobody listens at now: another process
/// may take it before the caller does. Code::Io if there is none.
Result<uint16_t> findFreePort(const char *host);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_FREEPORT_H

//===- OpenCommunicator.h - Ranks meet --------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_OPENCOMMUNICATOR_H
#define TCC_RUNTIME_RANKS_OPENCOMMUNICATOR_H

#include "runtime/ranks/Communicator.h"
#include "runtime/ranks/Launch.h"

#include <chrono>
#include <memory>

namespace tcc::runtime {

/// How long a rank waits for others. One that ends is noticed at once: the time
/// of a collective is for one that hangs, and is longer than a checkpoint
/// takes.
struct Patience {
  std::chrono::milliseconds rendezvous = std::chrono::seconds(30);
  std::chrono::milliseconds collective = std::chrono::minutes(30);
};

/// Returns once all ranks of the launch, of which there are several, have
/// called it. Code::Peer if one does not come, Code::Usage if the address is no
/// rendezvous or ranks contradict each other, Code::Unsupported if the runtime
/// was built without a transport.
Result<std::unique_ptr<Communicator>>
openCommunicator(const Launch &launch, const Patience &patience = {});

/// What a transport's plugin exports as kOpenTransport; null with `status`.
using OpenTransport = Communicator *(*)(const Launch &launch,
                                        const Patience &patience,
                                        Status &status);
inline constexpr char kOpenTransport[] = "tcc_open_transport";

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_OPENCOMMUNICATOR_H

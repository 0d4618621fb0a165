//===- OpenCommunicator.h - Ranks meet --------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_OPENCOMMUNICATOR_H
#define TCC_RUNTIME_RANKS_OPENCOMMUNICATOR_H

#include "runtime/ranks/Communicator.h"
#include "runtime/ranks/Launch.h"
#include "runtime/ranks/Patience.h"

#include <memory>

namespace tcc::runtime {

/// Returns once all ranks of the launch, of which there are several, have
/// called it. Code::Peer if one does not come, Code::Usage if the address is no
/// rendezvous or ranks contradict each other, Code::Unsupported if the runtime
/// was built without a transport.
Result<std::unique_ptr<Communicator>>
openCommunicator(const Launch &launch, const Patience &patience = {});

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_OPENCOMMUNICATOR_H

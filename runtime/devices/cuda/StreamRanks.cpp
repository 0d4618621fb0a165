// What a stream does with other ranks.

#include "runtime/devices/cuda/CudaStream.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

Status CudaStream::openRanks(Communicator &communicator,
                             std::span<const EntryPlan> entries) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  size_t most = 0, treeSums = 0;
  for (const EntryPlan &entry : entries) {
    most = std::max(most, entry.collectives);
    treeSums += entry.treeSums;
  }
  if (treeSums > 0)
    return makeError(Code::Unsupported, "ranks on device '", device.name(),
                     "' add up in no tree over them: parallel.exact is for ",
                     "the CPU");
  auto opened = RankCalls::open(device, communicator, stream, most);
  if (!opened.ok())
    return opened.takeStatus();
  ranks = std::move(*opened);
  return Status();
}

/// The run is the only one that uses the place of its progress.
Status CudaStream::beginExchanges() {
  if (!ranks)
    return Status();
  if (Status status = ranks->check(); !status.ok())
    return status;
  current->exchanges.clear();
  if (Status status = current->progress.reserve(sizeof(DeviceProgress),
                                                device.staging({}), "ranks");
      !status.ok())
    return status;
  ranks->begin(current->progress);
  return Status();
}

/// Numbers are for what runs: what is captured runs when it is replayed.
void CudaStream::noteExchanges() {
  for (size_t i = 0; i < current->exchanges.size(); ++i)
    ranks->note(current->exchanges[i], current->progress, i);
}

Status CudaStream::exchange(const Exchange &exchange) {
  if (!ranks)
    return Stream::exchange(exchange);
  if (Status status = forkLane(exchange.lane); !status.ok())
    return status;
  size_t index = current->exchanges.size();
  current->exchanges.push_back(exchange);
  if (!isCapturing)
    ranks->note(exchange, current->progress, index);
  if (Status status = ranks->enqueue(exchange, current->progress, index,
                                     lanes[exchange.lane]);
      !status.ok())
    return status;
  return device.check(
      lanes.trace({.command = exchange.command,
                   .bytes = static_cast<int64_t>(exchange.bytes()),
                   .lane = exchange.lane}),
      "tracing");
}

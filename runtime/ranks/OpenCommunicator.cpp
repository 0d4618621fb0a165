#include "runtime/ranks/OpenCommunicator.h"

#include "runtime/base/Plugin.h"

using namespace tcc;
using namespace tcc::runtime;

static const char *pluginOf(TransportKind transport) {
  switch (transport) {
  case TransportKind::Gloo:
    return "libtcc_gloo.so";
  case TransportKind::OpenMpi:
    return "libtcc_mpi_openmpi.so";
  case TransportKind::Mpich:
    return "libtcc_mpi_mpich.so";
  }
  return "";
}

Result<std::unique_ptr<Communicator>>
runtime::openCommunicator(const Launch &launch, const Patience &patience) {
  Result<void *> found =
      findInPlugin(pluginOf(launch.transport), kOpenTransport);
  if (!found.ok())
    return makeError(Code::Unsupported, "there is no transport between ranks: ",
                     found.takeStatus().message());
  Status status;
  auto open = reinterpret_cast<OpenTransport>(*found);
  std::unique_ptr<Transport> transport(
      open(launch, patience.rendezvous, status));
  if (!transport)
    return status;
  auto communicator = std::make_unique<Communicator>(std::move(transport),
                                                     launch.rank, launch.size);
  status = communicator->watch(launch.host, patience);
  if (!status.ok())
    return status;
  return communicator;
}

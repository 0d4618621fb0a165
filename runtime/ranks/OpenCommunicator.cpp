#include "runtime/ranks/OpenCommunicator.h"

#include "runtime/base/Plugin.h"

using namespace tcc;
using namespace tcc::runtime;

static constexpr char kPlugin[] = "libtcc_gloo.so";

Result<std::unique_ptr<Communicator>>
runtime::openCommunicator(const Launch &launch, const Patience &patience) {
  Result<void *> found = findInPlugin(kPlugin, kOpenTransport);
  if (!found.ok())
    return makeError(Code::Unsupported, "there is no transport between ranks: ",
                     found.takeStatus().message());
  Status status;
  auto open = reinterpret_cast<OpenTransport>(*found);
  std::unique_ptr<Communicator> communicator(open(launch, patience, status));
  if (!communicator)
    return status;
  return communicator;
}

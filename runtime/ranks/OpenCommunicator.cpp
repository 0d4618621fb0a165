#include "runtime/ranks/OpenCommunicator.h"

#include "runtime/base/Plugin.h"

#include <charconv>
#include <cstdlib>

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

Result<Patience> runtime::readPatience(const Environment &environment) {
  constexpr char kName[] = "TCC_HEARTBEAT";
  constexpr double kLeast = 0.1, kMost = 86400;
  Patience patience;
  const char *given = environment(kName);
  if (!given)
    return patience;
  std::string_view text = given;
  double seconds = 0;
  auto [rest, failure] =
      std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool isTime = failure == std::errc() && rest == text.data() + text.size() &&
                (seconds == 0 || (seconds >= kLeast && seconds <= kMost));
  if (!isTime)
    return makeError(Code::Usage, kName, " is '", text,
                     "', expected 0.1 to 86400 seconds, or 0");
  patience.silence = std::chrono::milliseconds(int64_t(seconds * 1000));
  return patience;
}

Result<Patience> runtime::readPatience() {
  return readPatience([](const char *name) { return std::getenv(name); });
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

#include "runtime/ranks/Launch.h"

#include <charconv>
#include <cstdlib>
#include <optional>

using namespace tcc;
using namespace tcc::runtime;

static constexpr char kRendezvous[] = "TCC_RENDEZVOUS";
static constexpr char kHost[] = "MASTER_ADDR", kPort[] = "MASTER_PORT";
static constexpr int64_t kMaxPort = 65535;
static constexpr int64_t kMaxRanks = 1 << 20;

namespace {

/// The variables that one launcher sets, and what moves bytes between its ranks
/// where no address says how they meet.
struct Launcher {
  const char *rank, *size, *localRank;
  TransportKind transport;
};
constexpr Launcher kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
                                TransportKind::Gloo};
constexpr Launcher kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_LOCAL_RANK",
                               TransportKind::OpenMpi};
constexpr Launcher kMpich = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                             TransportKind::Mpich};
// SLURM_NTASKS would be there in a batch script, too, which is no task.
constexpr Launcher kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                             "SLURM_LOCALID", TransportKind::Gloo};
constexpr Launcher kSlurmPmi2 = {"PMI_RANK", "PMI_SIZE", kSlurm.localRank,
                                 TransportKind::Mpich};
constexpr Launcher kSlurmPmix = {kSlurm.rank, kSlurm.size, kSlurm.localRank,
                                 TransportKind::OpenMpi};
constexpr char kPmix[] = "PMIX_RANK";

struct Reader {
  const Environment &environment;

  bool has(const char *name) const { return environment(name); }
  const Launcher *findLauncher() const;
  Status checkPair(const char *name, const char *other) const;
  Result<int64_t> readNumber(const char *name, int64_t min, int64_t max) const;
  Status readRanks(const Launcher &names, Launch &launch) const;
  Status readPlace(Launch &launch) const;
  Status readRendezvous(Launch &launch) const;
  Status checkAlone() const;
};

} // namespace

static std::optional<int64_t> parseNumber(std::string_view text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [rest, failure] = std::from_chars(text.data(), end, value);
  bool isNumber = failure == std::errc() && rest == end;
  return isNumber ? std::optional(value) : std::nullopt;
}

/// Two variables are set, or neither is.
Status Reader::checkPair(const char *name, const char *other) const {
  if (has(name) == has(other))
    return Status();
  if (!has(name))
    std::swap(name, other);
  return makeError(Code::Usage, name, " is '", environment(name), "', but ",
                   other, " is not set");
}

Result<int64_t> Reader::readNumber(const char *name, int64_t min,
                                   int64_t max) const {
  std::string_view text = environment(name);
  std::optional<int64_t> value = parseNumber(text);
  if (value && *value >= min && *value <= max)
    return *value;
  return makeError(Code::Usage, name, " is '", text, "', expected ", min,
                   " to ", max);
}

Status Reader::readRanks(const Launcher &names, Launch &launch) const {
  if (Status status = checkPair(names.rank, names.size); !status.ok())
    return status;
  Result<int64_t> size = readNumber(names.size, 1, kMaxRanks);
  if (!size.ok())
    return size.takeStatus();
  Result<int64_t> rank = readNumber(names.rank, 0, *size - 1);
  if (!rank.ok())
    return rank.takeStatus();
  launch.rank = static_cast<int>(*rank);
  launch.size = static_cast<int>(*size);
  launch.localRank = launch.rank;
  if (!has(names.localRank))
    return Status();
  Result<int64_t> localRank = readNumber(names.localRank, 0, *rank);
  if (!localRank.ok())
    return localRank.takeStatus();
  launch.localRank = static_cast<int>(*localRank);
  return Status();
}

Status Reader::readRendezvous(Launch &launch) const {
  std::string_view text = environment(kRendezvous);
  size_t colon = text.rfind(':');
  std::optional<int64_t> port;
  if (colon != std::string_view::npos)
    port = parseNumber(text.substr(colon + 1));
  if (!port || *port < 1 || *port > kMaxPort || colon == 0)
    return makeError(Code::Usage, kRendezvous, " is '", text,
                     "', expected HOST:PORT");
  launch.host = text.substr(0, colon);
  // As in "[::1]:29500".
  if (launch.host.size() > 2 && launch.host.starts_with('[') &&
      launch.host.ends_with(']'))
    launch.host = launch.host.substr(1, launch.host.size() - 2);
  launch.port = static_cast<uint16_t>(*port);
  return Status();
}

Status Reader::readPlace(Launch &launch) const {
  if (has(kRendezvous))
    return readRendezvous(launch);
  if (Status status = checkPair(kHost, kPort); !status.ok())
    return status;
  if (!has(kHost))
    return makeError(Code::Usage, "this is rank ", launch.rank, " of ",
                     launch.size, ", but neither ", kRendezvous, " nor ", kHost,
                     " says where they meet");
  Result<int64_t> port = readNumber(kPort, 1, kMaxPort - 1);
  if (!port.ok())
    return port.takeStatus();
  launch.host = environment(kHost);
  launch.port = static_cast<uint16_t>(*port + 1);
  return Status();
}

/// The launcher that began this process, or null. Within a job of Slurm mpirun,
/// mpiexec and torchrun may begin ranks, too, and mpirun by tasks of its own.
const Launcher *Reader::findLauncher() const {
  if (has(kTorchrun.rank) || has(kTorchrun.size))
    return &kTorchrun;
  if (has(kOpenMpi.rank))
    return &kOpenMpi;
  if (has(kMpich.rank))
    return has(kMpich.localRank) ? &kMpich : &kSlurmPmi2;
  if (!has(kSlurm.size))
    return nullptr;
  if (has(kPmix))
    return &kSlurmPmix;
  return has(kRendezvous) ? &kSlurm : nullptr;
}

/// Containers have some of the variables without any launcher.
Status Reader::checkAlone() const {
  if (has(kRendezvous))
    return makeError(Code::Usage, kRendezvous, " is '",
                     environment(kRendezvous), "', but ", kTorchrun.rank,
                     " is not set");
  if (!has(kSlurm.size) || std::string_view(environment(kSlurm.size)) == "1")
    return Status();
  return makeError(Code::Usage, kSlurm.size, " is '", environment(kSlurm.size),
                   "', but nothing says how these tasks of srun meet: expected "
                   "TCC_RENDEZVOUS=HOST:PORT, --mpi=pmix for Open MPI or "
                   "--mpi=pmi2 for MPICH; RANK=0 WORLD_SIZE=1 if each is to "
                   "train alone");
}

Result<Launch> runtime::readLaunch(const Environment &environment) {
  Reader reader{environment};
  Launch launch;
  const Launcher *launcher = reader.findLauncher();
  if (!launcher) {
    if (Status status = reader.checkAlone(); !status.ok())
      return status;
    return launch;
  }
  if (!reader.has(kRendezvous))
    launch.transport = launcher->transport;
  Status status = reader.readRanks(*launcher, launch);
  if (status.ok() && launch.size > 1 && launch.transport == TransportKind::Gloo)
    status = reader.readPlace(launch);
  if (!status.ok())
    return status;
  return launch;
}

Result<Launch> runtime::readLaunch() {
  return readLaunch([](const char *name) { return std::getenv(name); });
}

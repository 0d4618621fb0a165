#include "runtime/base/CpuFeatures.h"
#include "runtime/base/Plugin.h"
#include "runtime/devices/libraries/CublasLt.h"
#include "runtime/devices/libraries/Cudnn.h"
#include "runtime/devices/nccl/Nccl.h"
#include "tools/tcc-run/doctor/Machine.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static Status failed(std::string_view call, const std::string &path = {}) {
  return makeError(Code::Io, call,
                   path.empty() ? "" : concat(" of '", path, "'"), ": ",
                   std::strerror(errno));
}

static Result<Limit> readLimit(int resource) {
  rlimit limit;
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit))
    return failed("getrlimit");
  auto known = [](rlim_t value) {
    return value == RLIM_INFINITY ? kUnlimited : value;
  };
  return Limit{known(limit.rlim_cur), known(limit.rlim_max)};
}

/// The kernel refuses masks that are shorter than its own: longer ones are
/// tried until it takes one.
static Result<std::vector<int>> readAffinity() {
  constexpr int kMostCpus = 1 << 16;
  for (int cpus = 1024; cpus <= kMostCpus; cpus *= 2) {
    auto release = [](cpu_set_t *set) { CPU_FREE(set); };
    std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(cpus), release);
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (!set || sched_getaffinity(0, bytes, set.get())) {
      if (errno == EINVAL)
        continue;
      return failed("sched_getaffinity");
    }
    std::vector<int> found;
    for (int cpu = 0; cpu < cpus; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get()))
        found.push_back(cpu);
    return found;
  }
  return failed("sched_getaffinity");
}

static Result<Space> readSpace(const std::string &path) {
  struct statvfs found;
  if (statvfs(path.c_str(), &found))
    return failed("statvfs", path);
  return Space{uint64_t(found.f_blocks) * found.f_frsize,
               uint64_t(found.f_bavail) * found.f_frsize};
}

static Result<uint64_t> readFileSystem(const std::string &path) {
  struct statfs found;
  if (statfs(path.c_str(), &found))
    return failed("statfs", path);
  // The numbers have 32 bits; where the field is wider, the sign is not one.
  return static_cast<uint64_t>(static_cast<uint32_t>(found.f_type));
}

static Result<ClockState> readClock() {
  timex state = {}; // no modes: nothing is set
  int result = adjtimex(&state);
  if (result < 0)
    return failed("adjtimex");
  return ClockState{result != TIME_ERROR && !(state.status & STA_UNSYNC),
                    state.maxerror};
}

static std::optional<std::string> readEnvironment(const char *name) {
  const char *value = std::getenv(name);
  if (!value)
    return std::nullopt;
  return value;
}

/// All three libraries number their versions so: 91300 is 9.13.0.
static LibraryVersion nameVersion(size_t version) {
  return {concat(version / 10000, ".", version / 100 % 100, ".", version % 100),
          static_cast<int>(version / 10000)};
}

static const char *libraryPlaces() { return std::getenv("TCC_CUDA_LIB"); }

static Result<LibraryVersion> readCublasLt() {
  auto table = cuda::findCublasLt(libraryPlaces());
  if (!table.ok())
    return table.takeStatus();
  return nameVersion((*table)->getVersion());
}

static Result<LibraryVersion> readCudnn() {
  auto table = cuda::findCudnn(libraryPlaces());
  if (!table.ok())
    return table.takeStatus();
  return nameVersion((*table)->getVersion());
}

static Result<LibraryVersion> readNccl() {
  auto table = cuda::findNccl(libraryPlaces());
  if (!table.ok())
    return table.takeStatus();
  int version = 0;
  if ((*table)->getVersion(&version) != cuda::kNcclSuccess)
    return Status(Code::Device, "NCCL does not say its version");
  return nameVersion(static_cast<size_t>(version));
}

static Status findPlugin(const char *plugin, const char *symbol) {
  auto found = findInPlugin(plugin, symbol);
  return found.ok() ? Status() : found.takeStatus();
}

Calls doctor::systemCalls() {
  return {.limit = readLimit,
          .affinity = readAffinity,
          .space = readSpace,
          .fileSystem = readFileSystem,
          .diskSpeed = measureDisk,
          .clock = readClock,
          .isRoot = [] { return geteuid() == 0; },
          .environment = readEnvironment,
          .hasCpuFeature = hasCpuFeature,
          .cpuLevel = getArchitectureLevel,
          .cudaDriver = cuda::findDriver,
          .nvml = findNvml,
          .plugin = findPlugin,
          .cublasLt = readCublasLt,
          .cudnn = readCudnn,
          .nccl = readNccl};
}

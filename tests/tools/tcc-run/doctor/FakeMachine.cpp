#include "tests/tools/tcc-run/doctor/FakeMachine.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using namespace tcc::tools::doctor;

namespace fs = std::filesystem;

/// The machine that the tables below answer for.
static FakeMachine *current = nullptr;

static FakeGpu &gpuOf(NvmlDevice device) {
  return *reinterpret_cast<FakeGpu *>(device);
}

/// Gives a value, unless the GPU is to fail.
template <typename T> static NvmlError give(NvmlDevice device, T *to, T value) {
  *to = value;
  return gpuOf(device).error;
}

/// What says which GPUs there are, and whether they are in order.
static Nvml makeListing() {
  Nvml nvml = {};
  nvml.init = [] { return kNvmlSuccess; };
  nvml.errorString = [](NvmlError error) {
    return error == kNvmlNotSupported ? "Not Supported" : "GPU is lost";
  };
  nvml.deviceGetCount = [](unsigned *count) {
    *count = static_cast<unsigned>(current->gpus.size());
    return kNvmlSuccess;
  };
  nvml.deviceGetHandleByIndex = [](unsigned index, NvmlDevice *device) {
    *device = reinterpret_cast<NvmlDevice>(&current->gpus[index]);
    return kNvmlSuccess;
  };
  nvml.deviceGetName = [](NvmlDevice, char *name, unsigned length) {
    std::strncpy(name, "H200", length);
    return kNvmlSuccess;
  };
  nvml.deviceGetPersistenceMode = [](NvmlDevice device, int *isEnabled) {
    return give(device, isEnabled, gpuOf(device).isPersistent);
  };
  nvml.deviceGetEccMode = [](NvmlDevice device, int *now, int *pending) {
    *pending = 0;
    return give(device, now, gpuOf(device).isEcc);
  };
  nvml.deviceGetTotalEccErrors = [](NvmlDevice device, int type, int since,
                                    unsigned long long *count) {
    EXPECT_EQ(type, kNvmlUncorrected);
    EXPECT_EQ(since, kNvmlSinceDriver);
    return give(device, count, gpuOf(device).errors);
  };
  return nvml;
}

static Nvml makeNvml() {
  Nvml nvml = makeListing();
  nvml.deviceGetClockInfo = [](NvmlDevice device, int type, unsigned *clock) {
    EXPECT_EQ(type, kNvmlSmClock);
    return give(device, clock, 345u);
  };
  nvml.deviceGetMaxClockInfo = [](NvmlDevice device, int type,
                                  unsigned *clock) {
    EXPECT_EQ(type, kNvmlSmClock);
    return give(device, clock, 1980u);
  };
  nvml.deviceGetCurrentClocksEventReasons = [](NvmlDevice device,
                                               unsigned long long *reasons) {
    return give(device, reasons, gpuOf(device).reasons);
  };
  nvml.deviceGetTemperature = [](NvmlDevice device, int, unsigned *celsius) {
    return give(device, celsius, 34u);
  };
  nvml.deviceGetEnforcedPowerLimit = [](NvmlDevice device, unsigned *limit) {
    return give(device, limit, gpuOf(device).powerLimit);
  };
  nvml.deviceGetPowerManagementDefaultLimit = [](NvmlDevice device,
                                                 unsigned *limit) {
    return give(device, limit, gpuOf(device).powerDefault);
  };
  nvml.deviceGetMemoryInfo = [](NvmlDevice device, NvmlMemory *memory) {
    return give(device, memory, gpuOf(device).memory);
  };
  nvml.deviceGetUtilizationRates = [](NvmlDevice device, NvmlUse *use) {
    return give(device, use, gpuOf(device).use);
  };
  nvml.deviceGetComputeMode = [](NvmlDevice device, int *mode) {
    return give(device, mode, gpuOf(device).mode);
  };
  nvml.deviceGetCurrPcieLinkWidth = [](NvmlDevice device, unsigned *lanes) {
    return give(device, lanes, gpuOf(device).lanes);
  };
  nvml.deviceGetMaxPcieLinkWidth = [](NvmlDevice device, unsigned *lanes) {
    return give(device, lanes, gpuOf(device).mostLanes);
  };
  return nvml;
}

static cuda::Driver makeDriver() {
  cuda::Driver driver = {};
  driver.driverGetVersion = [](int *version) {
    *version = current->cudaVersion;
    return cuda::kSuccess;
  };
  driver.getErrorString = [](cuda::Error, const char **text) {
    *text = "it is broken";
    return cuda::kSuccess;
  };
  driver.deviceGetCount = [](int *count) {
    *count = static_cast<int>(current->gpus.size());
    return cuda::kSuccess;
  };
  driver.deviceGet = [](cuda::DeviceHandle *device, int ordinal) {
    *device = ordinal;
    return cuda::kSuccess;
  };
  driver.deviceGetName = [](char *name, int length, cuda::DeviceHandle) {
    std::strncpy(name, "H200", static_cast<size_t>(length));
    return cuda::kSuccess;
  };
  driver.deviceGetAttribute = [](int *value, int attribute,
                                 cuda::DeviceHandle) {
    *value = attribute == cuda::kComputeMajor ? current->computeMajor : 0;
    return cuda::kSuccess;
  };
  driver.deviceTotalMem = [](size_t *bytes, cuda::DeviceHandle) {
    *bytes = size_t(141) << 30;
    return cuda::kSuccess;
  };
  return driver;
}

FakeMachine::FakeMachine()
    : gpus(2), cpuFeatures({"avx512bf16", "amx-bf16", "amx-tile"}) {
  // In memory, where there is such a place: each case makes its files anew.
  fs::path place = "/dev/shm";
  if (access(place.c_str(), W_OK))
    place = fs::temp_directory_path();
  std::string root = place / "tcc-doctor-XXXXXX";
  if (!mkdtemp(root.data()))
    std::abort();
  machine.root = root;
  machine.folder = "folder";
  current = this;
  writeCpus();
  writeSystem();
  answerCalls();
}

FakeMachine::~FakeMachine() {
  fs::remove_all(machine.root);
  current = nullptr;
}

void FakeMachine::write(const std::string &path, const std::string &text) {
  fs::path file = machine.root + path;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void FakeMachine::remove(const std::string &path) {
  EXPECT_GT(fs::remove_all(machine.root + path), 0u) << path;
}

std::vector<std::string> FakeMachine::listFiles() const {
  std::vector<std::string> paths;
  for (const auto &entry : fs::recursive_directory_iterator(machine.root))
    if (entry.is_regular_file())
      paths.push_back(entry.path().string().substr(machine.root.size()));
  return paths;
}

Finding FakeMachine::examine(std::string_view name) const {
  for (const Check &check : listChecks())
    if (check.name == name)
      return check.examine(machine);
  ADD_FAILURE() << "there is no check " << name;
  return {};
}

void FakeMachine::removeGpus() {
  remove("/sys/bus/pci/devices");
  machine.calls.cudaDriver = []() -> Result<const cuda::Driver *> {
    return Status(Code::Device, "there is no CUDA driver");
  };
}

void FakeMachine::writeCpus() {
  const std::string cpus = "/sys/devices/system/cpu/";
  write(cpus + "online", "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = concat(cpus, "cpu", cpu, "/");
    write(folder + "cpufreq/scaling_governor", "performance\n");
    write(folder + "cpufreq/scaling_driver", "intel_pstate\n");
    write(folder + "topology/thread_siblings_list", concat(cpu, "\n"));
  }
  write(cpus + "intel_pstate/no_turbo", "0\n");
  write("/sys/devices/system/node/online", "0-1\n");
  write("/sys/devices/system/node/node0/cpulist", "0-3\n");
  write("/sys/devices/system/node/node1/cpulist", "\n");
  write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\n"
                         "flags\t\t: fpu avx2 amx_tile hypervisor\n\n");
  write("/proc/stat", "cpu  600 0 100 300 0 0 0 0 0 0\ncpu0 1 2 3\n");
  write("/proc/loadavg", "0.10 0.20 0.30 1/100 12345\n");
  write("/proc/pressure/cpu", "some avg10=0.00 avg60=1.00 avg300=1.00 "
                              "total=1\nfull avg10=0.00 avg60=0.00 "
                              "avg300=0.00 total=0\n");
}

void FakeMachine::writeSystem() {
  write("/proc/meminfo", "MemTotal:       64000000 kB\n"
                         "MemFree:        1000000 kB\n"
                         "MemAvailable:   60000000 kB\n"
                         "SwapTotal:      8000000 kB\n"
                         "SwapFree:       8000000 kB\n");
  write("/proc/self/cgroup", "0::/pod/job\n");
  const std::string groups = "/sys/fs/cgroup/";
  write(groups + "pod/job/memory.max", "max\n");
  write(groups + "pod/job/pids.max", "max\n");
  write(groups + "pod/memory.max", "50000000000\n");
  write(groups + "pod/memory.stat", "anon 1000000000\nfile 40000000000\n");
  write(groups + "pod/cpu.max", "max 100000\n");
  const std::string clocks = "/sys/devices/system/clocksource/clocksource0/";
  write(clocks + "current_clocksource", "tsc\n");
  write(clocks + "available_clocksource", "tsc hpet acpi_pm \n");
  const std::string huge = "/sys/kernel/mm/transparent_hugepage/";
  write(huge + "enabled", "always [madvise] never\n");
  write(huge + "defrag", "always defer defer+madvise [madvise] never\n");
  for (auto [path, text] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"kernel/osrelease", "6.1.0-25-amd64"},
           {"kernel/perf_event_paranoid", "2"},
           {"kernel/numa_balancing", "0"},
           {"kernel/threads-max", "500000"},
           {"vm/zone_reclaim_mode", "0"},
           {"vm/overcommit_memory", "0"},
           {"vm/dirty_ratio", "20"},
           {"vm/dirty_bytes", "0"},
           {"vm/dirty_background_ratio", "10"},
           {"vm/dirty_background_bytes", "0"},
           {"net/core/rmem_max", "212992"},
           {"net/core/wmem_max", "212992"},
           {"net/ipv4/tcp_rmem", "4096\t131072\t6291456"},
           {"net/ipv4/tcp_wmem", "4096\t16384\t4194304"}})
    write(concat("/proc/sys/", path), concat(text, "\n"));
  write("/sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n");
  write("/sys/bus/pci/devices/0000:00:01.0/class", "0x060000\n");
  write("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  write("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  write("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
}

void FakeMachine::answerCalls() {
  static const Nvml nvml = makeNvml();
  static const cuda::Driver driver = makeDriver();
  constexpr uint64_t kGiB = uint64_t(1) << 30;
  machine.calls = {
      .limit = [](int resource) -> Result<Limit> {
        return resource == RLIMIT_MEMLOCK ? Limit{kUnlimited, kUnlimited}
                                          : Limit{65536, 65536};
      },
      .affinity = []() -> Result<std::vector<int>> {
        return std::vector{0, 1, 2, 3};
      },
      .space = [](const std::string &) -> Result<Space> {
        return Space{100 * kGiB, 60 * kGiB};
      },
      .fileSystem = [](const std::string &) -> Result<uint64_t> {
        return uint64_t(0xef53);
      },
      .diskSpeed = [](const std::string &) -> Result<DiskSpeed> {
        return DiskSpeed{1e9, 2e9, 32 << 20, true};
      },
      .clock = []() -> Result<ClockState> { return ClockState{true, 2500}; },
      .isRoot = [] { return false; },
      .environment = [this](const char *name) -> std::optional<std::string> {
        auto found = environment.find(name);
        if (found == environment.end())
          return std::nullopt;
        return found->second;
      },
      .hasCpuFeature =
          [this](std::string_view name) {
            return cpuFeatures.find(name) != cpuFeatures.end();
          },
      .cpuLevel = [] { return 4; },
      .cudaDriver = []() -> Result<const cuda::Driver *> { return &driver; },
      .nvml = []() -> Result<const Nvml *> { return &nvml; },
      .plugin = [](const char *, const char *) { return Status(); },
      .cublasLt = []() -> Result<LibraryVersion> {
        return LibraryVersion{"13.4.0", 13};
      },
      .cudnn = []() -> Result<LibraryVersion> {
        return LibraryVersion{"9.26.0", 9};
      },
      .nccl = []() -> Result<LibraryVersion> {
        return LibraryVersion{"2.30.7", 2};
      },
  };
}

std::function<void(FakeMachine &)> tests::file(std::string path,
                                               std::string text) {
  return [path, text](FakeMachine &fake) { fake.write(path, text); };
}

std::function<void(FakeMachine &)> tests::gone(std::string path) {
  return [path](FakeMachine &fake) { fake.remove(path); };
}

void tests::expectCases(const std::vector<Case> &cases) {
  for (const Case &wrong : cases) {
    SCOPED_TRACE(concat(wrong.check, ": ", wrong.says));
    FakeMachine fake;
    wrong.change(fake);
    Finding finding = fake.examine(wrong.check);
    EXPECT_STREQ(nameOf(finding.state), nameOf(wrong.state)) << finding.found;
    EXPECT_NE(finding.found.find(wrong.says), std::string::npos)
        << finding.found;
    bool isAdvised =
        wrong.state == State::Warning || wrong.state == State::Problem;
    EXPECT_EQ(!finding.recommended.empty(), isAdvised) << finding.recommended;
  }
}

void tests::expectComplete(std::span<const Check> checks,
                           const std::vector<Case> &cases) {
  for (const Check &check : checks) {
    bool hasWrong = false, hasUnknown = false;
    for (const Case &wrong : cases) {
      bool isOwn = std::string_view(wrong.check) == check.name;
      hasWrong |= isOwn && wrong.state >= State::Warning;
      hasUnknown |= isOwn && wrong.state == State::Unknown;
    }
    EXPECT_TRUE(hasWrong) << check.name;
    EXPECT_TRUE(hasUnknown) << check.name;
  }
}

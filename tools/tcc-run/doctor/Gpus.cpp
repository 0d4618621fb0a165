// What the management library says of each GPU.

#include "tools/tcc-run/doctor/Gpus.h"

#include "tools/tcc-run/doctor/Machine.h"
#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

/// Whether the bus has a display or a 3D controller of NVIDIA.
static bool hasCard(const Machine &machine) {
  const std::string bus = "/sys/bus/pci/devices";
  for (const std::string &device : machine.list(bus)) {
    const std::string folder = concat(bus, "/", device);
    auto vendor = machine.read(folder + "/vendor");
    auto kind = machine.read(folder + "/class");
    if (vendor.ok() && kind.ok() && *vendor == "0x10de" &&
        kind->starts_with("0x03"))
      return true;
  }
  return false;
}

std::optional<Finding> doctor::withoutGpu(const Machine &machine) {
  if (hasCard(machine) || machine.calls.cudaDriver().ok())
    return std::nullopt;
  return ok("no NVIDIA GPU here");
}

namespace {

/// One GPU, as checks ask for it.
struct Gpu {
  const Nvml &nvml;
  NvmlDevice device;
  unsigned index; ///< as nvidia-smi counts
  const Machine &machine;

  /// The line that gives one of nvidia-smi's options to this GPU.
  std::string smi(std::string_view option) const {
    return machine.asRoot(concat("nvidia-smi -i ", index, " ", option));
  }
};

} // namespace

/// Why a call did not answer.
static Finding failed(const Gpu &gpu, NvmlError error) {
  return unknown(gpu.nvml.errorString(error));
}

/// "GPU 1 (NAME): ".
static std::string nameGpu(const Gpu &gpu) {
  char name[128] = "";
  if (gpu.nvml.deviceGetName(gpu.device, name, sizeof(name) - 1) !=
      kNvmlSuccess)
    return concat("GPU ", gpu.index, ": ");
  return concat("GPU ", gpu.index, " (", name, "): ");
}

/// What each GPU says that is as bad as `worst`; those that all say the same
/// have a name together.
static std::string joinFound(const std::vector<Gpu> &gpus,
                             const std::vector<Finding> &findings,
                             State worst) {
  bool isOne = std::ranges::all_of(findings, [&](const Finding &finding) {
    return finding.found == findings.front().found;
  });
  if (isOne && gpus.size() > 1)
    return concat("all ", gpus.size(), " GPUs: ", findings.front().found);
  std::string found;
  for (size_t i = 0; i < gpus.size(); ++i)
    if (findings[i].state == worst)
      found += concat(found.empty() ? "" : "; ", nameGpu(gpus[i]),
                      findings[i].found);
  return found;
}

/// The worst finding of all GPUs: what is said of each that is as bad, and the
/// advice for the first of them.
static Finding examineGpus(const Machine &machine,
                           Finding (*examineOne)(const Gpu &gpu)) {
  if (auto none = withoutGpu(machine))
    return *none;
  auto nvml = machine.calls.nvml();
  if (!nvml.ok())
    return unknown(nvml.takeStatus());
  unsigned count = 0;
  if (NvmlError error = (*nvml)->deviceGetCount(&count); error != kNvmlSuccess)
    return unknown((*nvml)->errorString(error));
  if (count == 0)
    return unknown("NVML lists no GPU");
  std::vector<Gpu> gpus;
  std::vector<Finding> findings;
  for (unsigned index = 0; index < count; ++index) {
    Gpu &gpu = gpus.emplace_back(Gpu{**nvml, nullptr, index, machine});
    NvmlError error = (*nvml)->deviceGetHandleByIndex(index, &gpu.device);
    findings.push_back(error == kNvmlSuccess ? examineOne(gpu)
                                             : failed(gpu, error));
  }
  Finding worst = *std::ranges::max_element(findings, {}, &Finding::state);
  worst.found = joinFound(gpus, findings, worst.state);
  return worst;
}

static std::string nameReasons(unsigned long long reasons) {
  constexpr std::pair<unsigned long long, const char *> kNames[] = {
      {kNvmlHardwareThermal, "heat"},
      {kNvmlSoftwareThermal, "heat, as the driver sees it"},
      {kNvmlPowerBrake, "the machine's power supply"},
      {kNvmlHardwareSlowdown, "its hardware"},
      {kNvmlPowerCap, "its power limit"},
      {kNvmlUserClocks, "clocks that someone set"}};
  std::string text;
  for (auto [bit, name] : kNames)
    if (reasons & bit)
      text += concat(text.empty() ? "" : ", ", name);
  return text;
}

static Finding examineClocks(const Gpu &gpu) {
  const Nvml &nvml = gpu.nvml;
  unsigned long long reasons = 0;
  unsigned now = 0, most = 0, celsius = 0;
  NvmlError error =
      nvml.deviceGetCurrentClocksEventReasons(gpu.device, &reasons);
  if (error == kNvmlSuccess)
    error = nvml.deviceGetClockInfo(gpu.device, kNvmlSmClock, &now);
  if (error == kNvmlSuccess)
    error = nvml.deviceGetMaxClockInfo(gpu.device, kNvmlSmClock, &most);
  if (error == kNvmlSuccess)
    error =
        nvml.deviceGetTemperature(gpu.device, kNvmlDieTemperature, &celsius);
  if (error != kNvmlSuccess)
    return failed(gpu, error);
  std::string found =
      concat(now, " of ", most, " MHz at ", celsius, " degrees");
  constexpr auto kSlowdowns = kNvmlHardwareSlowdown | kNvmlSoftwareThermal |
                              kNvmlHardwareThermal | kNvmlPowerBrake;
  if (std::string why = nameReasons(reasons); !why.empty())
    found += concat(", kept down by ", why);
  if (reasons & kSlowdowns)
    return problem(found, "see to its cooling and its power supply",
                   "nvidia-smi -q -d PERFORMANCE,TEMPERATURE");
  if (reasons & kNvmlUserClocks)
    return warning(found, "let the driver choose clocks",
                   gpu.smi("--reset-applications-clocks"));
  if (reasons & kNvmlPowerCap)
    return warning(found, "see whether its power limit may be higher",
                   "nvidia-smi -q -d POWER");
  return ok(found);
}

static Finding examinePersistence(const Gpu &gpu) {
  int isEnabled = 0;
  if (NvmlError error =
          gpu.nvml.deviceGetPersistenceMode(gpu.device, &isEnabled);
      error != kNvmlSuccess)
    return failed(gpu, error);
  if (isEnabled == kNvmlEnabled)
    return ok("on");
  return warning("off", "keep the driver loaded between runs",
                 gpu.smi("--persistence-mode=1"));
}

static Finding examinePower(const Gpu &gpu) {
  unsigned limit = 0, usual = 0; // milliwatts
  NvmlError error = gpu.nvml.deviceGetEnforcedPowerLimit(gpu.device, &limit);
  if (error == kNvmlSuccess)
    error = gpu.nvml.deviceGetPowerManagementDefaultLimit(gpu.device, &usual);
  if (error != kNvmlSuccess)
    return failed(gpu, error);
  std::string found =
      concat(limit / 1000, " W, ", usual / 1000, " W when it was made");
  if (limit >= usual)
    return ok(found);
  return warning(found, "raise the limit, if the machine can cool it",
                 gpu.smi(concat("--power-limit=", usual / 1000)));
}

static Finding examineEcc(const Gpu &gpu) {
  int isOn = 0, isPending = 0;
  NvmlError error = gpu.nvml.deviceGetEccMode(gpu.device, &isOn, &isPending);
  if (error == kNvmlNotSupported)
    return ok("it has none");
  if (error != kNvmlSuccess)
    return failed(gpu, error);
  if (isOn != kNvmlEnabled)
    return warning("off", "turn it on, then restart the machine",
                   gpu.smi("--ecc-config=1"));
  unsigned long long errors = 0;
  error = gpu.nvml.deviceGetTotalEccErrors(gpu.device, kNvmlUncorrected,
                                           kNvmlSinceDriver, &errors);
  if (error != kNvmlSuccess)
    return failed(gpu, error);
  if (errors == 0)
    return ok("on, no uncorrected errors");
  return problem(concat(errors, " uncorrected errors since the driver started"),
                 "restart the machine; where they come back, have the GPU "
                 "replaced",
                 "nvidia-smi -q -d ECC,PAGE_RETIREMENT,ROW_REMAPPER");
}

static Finding examineUse(const Gpu &gpu) {
  NvmlMemory memory = {};
  NvmlError error = gpu.nvml.deviceGetMemoryInfo(gpu.device, &memory);
  if (error != kNvmlSuccess)
    return failed(gpu, error);
  NvmlUse use = {}; // parts of a GPU (MIG) do not say
  error = gpu.nvml.deviceGetUtilizationRates(gpu.device, &use);
  if (error != kNvmlSuccess && error != kNvmlNotSupported)
    return failed(gpu, error);
  std::string found = concat(nameBytes(memory.used), " of ",
                             nameBytes(memory.total), " in use");
  if (error == kNvmlSuccess)
    found += concat(", busy ", use.gpu, " % of the time");
  constexpr unsigned kBusy = 10; // percent; a tenth of the memory, too
  if (use.gpu <= kBusy && memory.used <= memory.total / 10)
    return ok(found);
  return warning(
      found, "use another GPU, or end what runs on this one",
      "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,name "
      "--format=csv");
}

static Finding examineMode(const Gpu &gpu) {
  int mode = 0;
  if (NvmlError error = gpu.nvml.deviceGetComputeMode(gpu.device, &mode);
      error != kNvmlSuccess)
    return failed(gpu, error);
  if (mode == kNvmlComputeProhibited)
    return problem("no program may compute", "allow it",
                   gpu.smi("--compute-mode=DEFAULT"));
  if (mode == kNvmlComputeExclusive)
    return ok("one process at a time");
  return mode == 0 ? ok("shared") : unknown(concat("mode ", mode));
}

static Finding examineLink(const Gpu &gpu) {
  unsigned lanes = 0, most = 0;
  NvmlError error = gpu.nvml.deviceGetCurrPcieLinkWidth(gpu.device, &lanes);
  if (error == kNvmlSuccess)
    error = gpu.nvml.deviceGetMaxPcieLinkWidth(gpu.device, &most);
  if (error == kNvmlNotSupported)
    return ok("it is on no PCIe link that says its width");
  if (error != kNvmlSuccess)
    return failed(gpu, error);
  std::string found = concat(lanes, " of ", most, " PCIe lanes");
  if (lanes >= most)
    return ok(found);
  return warning(found, "see whether its slot has them all, and seat it again",
                 "nvidia-smi topo -m");
}

template <Finding (*examineOne)(const Gpu &gpu)>
static Finding examineAll(const Machine &machine) {
  return examineGpus(machine, examineOne);
}

static constexpr Check kChecks[] = {
    {"gpu clocks", "a GPU that is kept down computes more slowly",
     examineAll<examineClocks>},
    {"gpu persistence", "without it each run waits seconds for the driver",
     examineAll<examinePersistence>},
    {"gpu power", "a lower limit is a lower clock under load",
     examineAll<examinePower>},
    {"gpu ecc", "a bit that flips unseen changes what is trained",
     examineAll<examineEcc>},
    {"gpu use", "another program takes memory and time",
     examineAll<examineUse>},
    {"gpu mode", "says who may compute", examineAll<examineMode>},
    {"gpu link", "batches and gradients go over it", examineAll<examineLink>},
};

std::span<const Check> doctor::gpuChecks() { return kChecks; }

#include "runtime/base/CpuQuota.h"
#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Machine.h"
#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>
#include <map>
#include <set>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static constexpr char kCpus[] = "/sys/devices/system/cpu";
static constexpr char kOnline[] = "/sys/devices/system/cpu/online";

static std::string cpuFile(int cpu, std::string_view name) {
  return concat(kCpus, "/cpu", cpu, "/", name);
}

static Finding examineVectors(const Machine &machine) {
  const auto &has = machine.calls.hasCpuFeature;
  const int level = machine.calls.cpuLevel();
  const std::string name = concat("x86-64-v", level);
  auto info = machine.read("/proc/cpuinfo");
  if (!info.ok())
    return unknown(info.takeStatus());
  auto flags = findLine(*info, "flags");
  if (!flags)
    return unknown("'/proc/cpuinfo' has no line of flags");
  if (level < 3)
    return problem(concat("no AVX2 (", name, ")"),
                   "in a virtual machine, give it the host's CPU; else compile "
                   "here, for this CPU alone",
                   "tcc MODEL --cpu=native -o model.tcc");
  if (hasWord(*flags, "amx_tile") && !has("amx-tile"))
    return warning("AMX, which the system does not let processes use",
                   "use Linux 5.16 or later, and a host that allows it");
  std::string found = level > 3 ? "AVX-512" : "AVX2";
  for (auto [feature, word] :
       {std::pair("avx512bf16", "bf16"), std::pair("avx512fp16", "fp16"),
        std::pair("avx512vnni", "int8"), std::pair("amx-bf16", "AMX")})
    if (has(feature))
      found += concat(", ", word);
  return ok(concat(found, " (", name, "), which tcc --cpu=native uses"));
}

/// The governors of CPUs, and how many have each.
static Result<std::map<std::string, int>> countGovernors(const Machine &machine,
                                                         int &all) {
  auto cpus = machine.readList(kOnline);
  if (!cpus.ok())
    return cpus.takeStatus();
  all = static_cast<int>(cpus->size());
  std::map<std::string, int> counts;
  for (int cpu : *cpus) {
    auto governor = machine.read(cpuFile(cpu, "cpufreq/scaling_governor"));
    if (!governor.ok())
      return governor.takeStatus();
    ++counts[*governor];
  }
  return counts;
}

static Finding examineGovernor(const Machine &machine) {
  if (!machine.exists(cpuFile(0, "cpufreq")))
    return unknown("the system does not control frequencies, as in a virtual "
                   "machine");
  int all = 0;
  auto counts = countGovernors(machine, all);
  if (!counts.ok())
    return unknown(counts.takeStatus());
  std::string driver;
  if (auto read = machine.read(cpuFile(0, "cpufreq/scaling_driver")); read.ok())
    driver = *read;
  const std::string set =
      machine.asRoot("cpupower frequency-set --governor performance");
  const char *advice = "let CPUs run at full speed";
  // These drivers mean by it that the CPU itself decides.
  bool isDynamic =
      driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate");
  static const std::set<std::string_view> kKnown = {
      "performance",  "powersave", "ondemand",
      "conservative", "schedutil", "userspace"};
  for (auto &[governor, count] : *counts)
    if (!kKnown.contains(governor))
      return unknown(unexpected(cpuFile(0, "cpufreq/scaling_governor"),
                                governor, "a governor of Linux"));
  if (counts->contains("powersave") && !isDynamic)
    return problem(concat((*counts)["powersave"], " of ", all,
                          " CPUs stay at their lowest frequency (powersave)"),
                   advice, set);
  for (auto &[governor, count] : *counts)
    if (governor != "performance")
      return warning(concat(count, " of ", all, " CPUs are governed by ",
                            governor, ", which starts slowly after a pause"),
                     advice, set);
  return ok(concat("performance on all ", all, " CPUs"));
}

static Finding examineBoost(const Machine &machine) {
  constexpr char kNoTurbo[] = "/sys/devices/system/cpu/intel_pstate/no_turbo";
  constexpr char kBoost[] = "/sys/devices/system/cpu/cpufreq/boost";
  bool isIntel = machine.exists(kNoTurbo);
  if (!isIntel && !machine.exists(kBoost))
    return unknown("the system does not say, as in a virtual machine");
  std::string path = isIntel ? kNoTurbo : kBoost;
  auto value = machine.readInteger(path);
  if (!value.ok())
    return unknown(value.takeStatus());
  if (*value != 0 && *value != 1)
    return unknown(unexpected(path, std::to_string(*value), "0 or 1"));
  if ((*value == 1) != isIntel)
    return ok("allowed");
  return warning("turned off: CPUs stay at their base frequency",
                 "allow it, unless times have to be the same each run",
                 machine.writeTo(path, isIntel ? "0" : "1"));
}

/// The share of periods in which the group had to wait, in percent; nothing
/// where the group does not say.
static std::optional<double> readThrottled(const Machine &machine,
                                           const std::string &group) {
  auto text = machine.read(group + "/cpu.stat");
  if (!text.ok())
    return std::nullopt;
  std::optional<int64_t> periods, throttled;
  if (auto line = findLine(*text, "nr_periods "))
    periods = parseInteger(*line);
  if (auto line = findLine(*text, "nr_throttled "))
    throttled = parseInteger(*line);
  if (!periods || !throttled || *periods <= 0)
    return std::nullopt;
  return 100.0 * static_cast<double>(*throttled) /
         static_cast<double>(*periods);
}

static Finding examineQuota(const Machine &machine) {
  // Groups without a quota and a file that is missing look alike below.
  if (auto read = machine.read("/proc/self/cgroup"); !read.ok())
    return unknown(read.takeStatus());
  auto mask = machine.calls.affinity();
  if (!mask.ok())
    return unknown(mask.takeStatus());
  std::vector<GroupQuota> quotas = listCpuQuotas(machine.root);
  if (quotas.empty())
    return ok("no group limits CPUs");
  const GroupQuota &least = quotas.front();
  std::string group = least.group.substr(machine.root.size());
  std::string found =
      concat(least.cpus, " of ", mask->size(), " CPUs, by '", group, "'");
  auto throttled = readThrottled(machine, group);
  if (throttled)
    found += concat(", which waited in ", namePercent(*throttled),
                    " of its periods");
  const std::string pin =
      concat("docker run --cpuset-cpus=0-", least.cpus - 1, " IMAGE");
  const char *advice = "give the container CPUs of its own in place of a share "
                       "of all: threads that are stopped make others wait";
  constexpr double kSeldom = 5; // percent
  if (throttled && *throttled > kSeldom)
    return problem(found, advice, pin);
  if (static_cast<size_t>(least.cpus) < mask->size())
    return warning(found, advice, pin);
  return ok(found);
}

static Finding examineAffinity(const Machine &machine) {
  auto online = machine.readList(kOnline);
  if (!online.ok())
    return unknown(online.takeStatus());
  auto mask = machine.calls.affinity();
  if (!mask.ok())
    return unknown(mask.takeStatus());
  std::string found = concat(mask->size(), " of ", online->size(), " CPUs");
  if (mask->size() >= online->size())
    return ok(found);
  return warning(found,
                 "unless a launcher or a container gave this process these "
                 "CPUs on purpose, start it without a mask",
                 concat("taskset --cpu-list ", online->front(), "-",
                        online->back(), " tcc-run COMMAND"));
}

static Finding examineSmt(const Machine &machine) {
  auto mask = machine.calls.affinity();
  if (!mask.ok())
    return unknown(mask.takeStatus());
  std::set<std::vector<int>> cores; // each by the CPUs that it is
  for (int cpu : *mask) {
    auto siblings =
        machine.readList(cpuFile(cpu, "topology/thread_siblings_list"));
    if (!siblings.ok())
      return unknown(siblings.takeStatus());
    cores.insert(std::move(*siblings));
  }
  std::string found =
      concat(mask->size(), mask->size() == 1 ? " CPU on " : " CPUs on ",
             cores.size(), cores.size() == 1 ? " core" : " cores");
  if (cores.size() == mask->size())
    return ok(found);
  return warning(found,
                 "one thread keeps a core's multipliers busy: see whether a "
                 "thread for each core is faster",
                 concat("tcc-run bench model.tcc --threads ", cores.size()));
}

static constexpr Check kChecks[] = {
    {"cpu vectors", "kernels are as fast as the CPU's vectors are wide",
     examineVectors},
    {"cpu governor", "a CPU that slows down when idle starts each run slowly",
     examineGovernor},
    {"cpu boost", "without it kernels run at the base frequency", examineBoost},
    {"cpu quota", "a container over its quota is stopped for tens of ms",
     examineQuota},
    {"cpu affinity", "threads that share a CPU wait for each other",
     examineAffinity},
    {"threads per core",
     "two threads of a core share its multipliers and "
     "caches",
     examineSmt},
};

std::span<const Check> doctor::cpuChecks() { return kChecks; }

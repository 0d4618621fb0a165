#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Groups.h"
#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static constexpr char kMeminfo[] = "/proc/meminfo";

/// Bytes of a line of /proc/meminfo.
static Result<uint64_t> readMeminfo(const Machine &machine, const char *key) {
  auto text = machine.read(kMeminfo);
  if (!text.ok())
    return text.takeStatus();
  if (auto bytes = findKibibytes(*text, key))
    return *bytes;
  return unexpected(kMeminfo, *text, concat("a line '", key, ": N kB'"));
}

static double percentOf(uint64_t part, uint64_t whole) {
  return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole)
               : 0;
}

static Finding examineMemory(const Machine &machine) {
  auto total = readMeminfo(machine, "MemTotal");
  if (!total.ok())
    return unknown(total.takeStatus());
  auto available = readMeminfo(machine, "MemAvailable");
  if (!available.ok())
    return unknown(available.takeStatus());
  std::string found =
      concat(nameBytes(*available), " of ", nameBytes(*total), " available");
  const char *advice = "end what holds memory, or give programs a budget";
  const char *command = "tcc MODEL --memory-budget=SIZE -o model.tcc";
  constexpr double kTight = 25, kNone = 5; // percent
  double percent = percentOf(*available, *total);
  if (percent < kNone)
    return problem(found, advice, command);
  return percent < kTight ? warning(found, advice, command) : ok(found);
}

static Finding examineSwap(const Machine &machine) {
  auto total = readMeminfo(machine, "SwapTotal");
  if (!total.ok())
    return unknown(total.takeStatus());
  auto free = readMeminfo(machine, "SwapFree");
  if (!free.ok())
    return unknown(free.takeStatus());
  if (*free > *total)
    return unknown(concat("'", kMeminfo, "' has more swap free than there is"));
  if (*total == 0)
    return ok("the system has none");
  uint64_t used = *total - *free;
  std::string found =
      concat(nameBytes(used), " of ", nameBytes(*total), " in use");
  constexpr uint64_t kLittle = uint64_t(256) << 20; // of idle programs
  if (used <= kLittle)
    return ok(found);
  return warning(found, "have the system keep programs in memory",
                 machine.asRoot("sysctl -w vm.swappiness=1"));
}

/// Bytes that processes of a group have in memory, but for files; nothing where
/// the group does not say.
static std::optional<uint64_t> readGroupUse(const Machine &machine,
                                            const std::string &group) {
  auto text = machine.read(group + "/memory.stat");
  if (!text.ok())
    return std::nullopt;
  for (const char *key : {"anon ", "total_rss "}) // of either version
    if (auto line = findLine(*text, key))
      if (auto bytes = parseInteger(*line); bytes && *bytes >= 0)
        return static_cast<uint64_t>(*bytes);
  return std::nullopt;
}

static Finding examineMemoryLimit(const Machine &machine) {
  auto limit =
      findLimit(machine, {"memory", "memory.max", "memory.limit_in_bytes"});
  if (!limit.ok())
    return unknown(limit.takeStatus());
  auto total = readMeminfo(machine, "MemTotal");
  if (!total.ok())
    return unknown(total.takeStatus());
  // Version 1 has a number that no machine reaches for none.
  if (!*limit || (*limit)->most >= *total)
    return ok("no group limits memory");
  std::string found =
      concat(nameBytes((*limit)->most), " by '", (*limit)->group, "'");
  auto used = readGroupUse(machine, (*limit)->group);
  if (!used)
    return ok(found);
  found += concat(", ", nameBytes(*used), " in use");
  constexpr double kMost = 75; // percent
  if (percentOf(*used, (*limit)->most) <= kMost)
    return ok(found);
  return warning(found, "give the container more, or programs a budget",
                 "docker update --memory SIZE CONTAINER");
}

static Finding examineOvercommit(const Machine &machine) {
  constexpr char kPath[] = "/proc/sys/vm/overcommit_memory";
  auto mode = machine.readInteger(kPath);
  if (!mode.ok())
    return unknown(mode.takeStatus());
  if (*mode < 0 || *mode > 2)
    return unknown(unexpected(kPath, std::to_string(*mode), "0, 1 or 2"));
  if (*mode < 2)
    return ok(concat("mode ", *mode));
  return warning("mode 2: memory that is asked for counts as used",
                 "let the system promise memory that is not touched yet, as "
                 "the CUDA driver asks for much of it",
                 machine.asRoot("sysctl -w vm.overcommit_memory=0"));
}

static Finding examineHugePages(const Machine &machine) {
  constexpr char kPath[] = "/sys/kernel/mm/transparent_hugepage/enabled";
  auto mode = machine.readChosen(kPath);
  if (!mode.ok())
    return unknown(mode.takeStatus());
  if (*mode == "always" || *mode == "madvise")
    return ok(*mode);
  if (*mode != "never")
    return unknown(unexpected(kPath, *mode, "always, madvise or never"));
  return warning(*mode, "give them to those who ask for them",
                 machine.writeTo(kPath, "madvise"));
}

static Finding examineDefrag(const Machine &machine) {
  constexpr char kPath[] = "/sys/kernel/mm/transparent_hugepage/defrag";
  auto mode = machine.readChosen(kPath);
  if (!mode.ok())
    return unknown(mode.takeStatus());
  if (*mode == "always" || *mode == "madvise" || *mode == "defer+madvise")
    return ok(*mode);
  if (*mode != "defer" && *mode != "never")
    return unknown(unexpected(kPath, *mode, "a mode of Linux"));
  return warning(concat(*mode, ": there are huge pages only while memory "
                               "happens to have some free"),
                 "have the system make room for those who ask",
                 machine.writeTo(kPath, "madvise"));
}

/// Nodes that have memory or CPUs.
static Result<std::vector<int>> readNodes(const Machine &machine) {
  return machine.readList("/sys/devices/system/node/online");
}

static Finding examineNodes(const Machine &machine) {
  auto nodes = readNodes(machine);
  if (!nodes.ok())
    return unknown(nodes.takeStatus());
  auto mask = machine.calls.affinity();
  if (!mask.ok())
    return unknown(mask.takeStatus());
  size_t used = 0;
  for (int node : *nodes) {
    std::string path =
        concat("/sys/devices/system/node/node", node, "/cpulist");
    auto text = machine.read(path);
    if (!text.ok())
      return unknown(text.takeStatus());
    if (text->empty()) // a node of memory alone
      continue;
    auto cpus = parseList(*text);
    if (!cpus)
      return unknown(unexpected(path, *text, "numbers like 0-3,8"));
    used += std::ranges::any_of(*mask, [&](int cpu) {
      return std::ranges::find(*cpus, cpu) != cpus->end();
    });
  }
  std::string found = concat("CPUs of ", used, " of ", nodes->size(),
                             nodes->size() == 1 ? " node" : " nodes");
  if (used <= 1)
    return ok(found);
  return warning(found, "begin a rank for each node, or keep to one",
                 concat("numactl --cpunodebind=", nodes->front(),
                        " --membind=", nodes->front(), " tcc-run COMMAND"));
}

static Finding examineNumaPolicy(const Machine &machine) {
  auto nodes = readNodes(machine);
  if (!nodes.ok())
    return unknown(nodes.takeStatus());
  if (nodes->size() == 1)
    return ok("one node: there is nothing to move");
  auto reclaim = machine.readInteger("/proc/sys/vm/zone_reclaim_mode");
  if (!reclaim.ok())
    return unknown(reclaim.takeStatus());
  auto balancing = machine.readInteger("/proc/sys/kernel/numa_balancing");
  if (!balancing.ok())
    return unknown(balancing.takeStatus());
  std::string found =
      concat("zone_reclaim_mode ", *reclaim, ", numa_balancing ", *balancing);
  if (*reclaim == 0 && *balancing == 0)
    return ok(found);
  return warning(
      found, "let memory stay where it was first written",
      machine.asRoot(
          "sysctl -w vm.zone_reclaim_mode=0 kernel.numa_balancing=0"));
}

/// A setting of malloc that makes allocations slow, as NAME=VALUE.
static std::optional<std::string> findSlowSetting(const Machine &machine,
                                                  std::string &name) {
  for (const char *variable :
       {"MALLOC_PERTURB_", "MALLOC_CHECK_", "MALLOC_MMAP_MAX_"}) {
    auto value = machine.calls.environment(variable);
    // No more than 0 mappings is what slows; checks are off with it.
    bool isLimit = std::string_view(variable) == "MALLOC_MMAP_MAX_";
    if (!value || (*value == "0") != isLimit)
      continue;
    name = variable;
    return concat(variable, "=", *value);
  }
  auto tunables = machine.calls.environment("GLIBC_TUNABLES");
  for (const char *slow : {"glibc.malloc.perturb=", "glibc.malloc.check="})
    if (tunables && tunables->find(slow) != std::string::npos) {
      name = "GLIBC_TUNABLES";
      return concat(name, "=", *tunables);
    }
  return std::nullopt;
}

static Finding examineMalloc(const Machine &machine) {
  std::string name;
  if (auto slow = findSlowSetting(machine, name))
    return warning(*slow,
                   "unset it: it is for debugging, and touches or checks each "
                   "block",
                   concat("unset ", name));
  if (auto loaded = machine.calls.environment("LD_PRELOAD");
      loaded && loaded->find("malloc") != std::string::npos)
    return ok(concat("LD_PRELOAD=", *loaded,
                     ", which changes little: an arena is one block"));
  return ok("none that slows");
}

static constexpr Check kChecks[] = {
    {"memory", "arenas, variables and optimizer state have to fit",
     examineMemory},
    {"swap", "a tensor that is swapped out stops the step that reads it",
     examineSwap},
    {"memory limit", "a container over its limit is killed without a word",
     examineMemoryLimit},
    {"overcommit", "an arena or a device may be refused with memory to spare",
     examineOvercommit},
    {"huge pages",
     "variables, and the copy that a checkpoint is written from, "
     "ask for them",
     examineHugePages},
    {"huge page defrag", "who asks for huge pages gets small ones else",
     examineDefrag},
    {"numa nodes", "memory of another node is read at half the speed",
     examineNodes},
    {"numa policy", "pages that move while they are used stop threads",
     examineNumaPolicy},
    {"malloc", "debugging settings slow each allocation", examineMalloc},
};

std::span<const Check> doctor::memoryChecks() { return kChecks; }

#include "runtime/ranks/Cores.h"

#include "runtime/base/CpuQuota.h"
#include "runtime/package/Digest.h"
#include "runtime/ranks/Communicator.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;

static std::string readText(const char *path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

static format::Digest digestOfText(std::string_view text) {
  return digestOf(std::as_bytes(std::span(text)));
}

/// Containers of one machine have one kernel, but names of their own.
static std::string nameMachine() {
  std::string name = readText("/proc/sys/kernel/random/boot_id");
  if (!name.empty())
    return name;
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return host;
}

/// A group's name is that within its namespace: of a group around several
/// namespaces, as that of a pod of containers, there is no word in them.
static std::string nameSpace() {
  char space[64] = {};
  (void)!readlink("/proc/self/ns/cgroup", space, sizeof(space) - 1);
  return space;
}

/// All cores where there are more than the mask has bits.
static cpu_set_t readMask() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
    return mask;
  CPU_ZERO(&mask);
  unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u,
                              unsigned(CPU_SETSIZE));
  for (unsigned core = 0; core < count; ++core)
    CPU_SET(core, &mask);
  return mask;
}

Cores runtime::readCores() {
  std::string machine = nameMachine(), space = nameSpace();
  Cores own = {.machine = digestOfText(machine), .mask = readMask()};
  std::vector<GroupQuota> found = listCpuQuotas();
  for (size_t i = 0; i < std::min(found.size(), own.quotas.size()); ++i)
    own.quotas[i] = {
        digestOfText(concat(machine, "\n", space, "\n", found[i].group)),
        found[i].cpus};
  return own;
}

static bool isIn(const Cores &cores, const format::Digest &group) {
  auto isSame = [&](const Cores::Quota &quota) {
    return quota.cpus > 0 && quota.group == group;
  };
  return std::ranges::any_of(cores.quotas, isSame);
}

int runtime::countThreads(std::span<const Cores> all, size_t rank) {
  const Cores &own = all[rank];
  int ranksOfCore[CPU_SETSIZE] = {};
  for (const Cores &other : all) {
    if (other.machine != own.machine)
      continue;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      ranksOfCore[core] += CPU_ISSET(core, &other.mask) != 0;
  }
  double count = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &own.mask))
      count += 1.0 / ranksOfCore[core];
  for (const Cores::Quota &quota : own.quotas) {
    auto ranksOfGroup = std::ranges::count_if(
        all, [&](const Cores &other) { return isIn(other, quota.group); });
    if (quota.cpus > 0)
      count = std::min(count, double(quota.cpus) / double(ranksOfGroup));
  }
  // Thirds add up to a little less than one.
  constexpr double kRounding = 1e-6;
  return std::max(static_cast<int>(count + kRounding), 1);
}

Result<int> runtime::shareCores(Communicator &ranks) {
  Cores own = readCores();
  std::vector<Cores> all(ranks.size());
  if (Status status =
          ranks.allGather(&own, all.data(), sizeof(own), DType::u8, "cores");
      !status.ok())
    return status;
  return countThreads(all, ranks.rank());
}

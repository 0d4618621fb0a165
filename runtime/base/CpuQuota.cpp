#include "runtime/base/CpuQuota.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <utility>

using namespace tcc;
using namespace tcc::runtime;

/// CPUs that one group allows by itself, 0 if it has no limit; `folder` is of
/// either version.
static double quotaOf(const std::string &folder) {
  double quota = 0, period = 0;
  std::string text;
  std::ifstream unified(folder + "/cpu.max");
  std::ifstream quotaFile(folder + "/cpu.cfs_quota_us");
  std::ifstream periodFile(folder + "/cpu.cfs_period_us");
  if (unified >> text >> period)
    quota = std::atof(text.c_str()); // "max" is 0
  else if (!(quotaFile >> quota) || !(periodFile >> period))
    return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

static void addQuota(const std::string &folder,
                     std::vector<GroupQuota> &quotas) {
  if (double cpus = quotaOf(folder); cpus > 0)
    quotas.push_back({folder, static_cast<int>(std::ceil(cpus))});
}

/// Adds the quotas from `group` up to the root of the hierarchy. A container
/// may see its own group as the root: then the folders below are not there.
static void addQuotasUpwards(const std::string &hierarchy,
                             const std::string &group,
                             std::vector<GroupQuota> &quotas) {
  addQuota(hierarchy, quotas);
  // The root's own name is "/".
  for (size_t end = group.size(); end > 1 && end != std::string::npos;
       end = group.rfind('/', end - 1))
    addQuota(hierarchy + group.substr(0, end), quotas);
}

/// Whether a comma-separated list has the CPU controller.
static bool hasCpuController(const std::string &controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

std::vector<GroupQuota> runtime::listCpuQuotas(const std::string &root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  std::vector<GroupQuota> quotas;
  // Lines of "hierarchy:controllers:group"; version 2 has no controllers.
  std::ifstream memberships(root + "/proc/self/cgroup");
  for (std::string line; std::getline(memberships, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (controllers.empty())
      addQuotasUpwards(mounts, group, quotas);
    else if (hasCpuController(controllers))
      addQuotasUpwards(mounts + "/cpu", group, quotas);
  }
  std::ranges::sort(quotas, {}, [](const GroupQuota &quota) {
    return std::pair(quota.cpus, quota.group);
  });
  return quotas;
}

int runtime::cpuQuota(const std::string &root) {
  std::vector<GroupQuota> quotas = listCpuQuotas(root);
  return quotas.empty() ? 0 : quotas.front().cpus;
}

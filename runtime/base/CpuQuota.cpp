#include "runtime/base/CpuQuota.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

using namespace tcc;
using namespace tcc::runtime;

/// No limit.
static constexpr double kUnlimited = 4096;

/// CPUs that one group allows by itself; `folder` is of either version.
static double quotaOf(const std::string &folder) {
  double quota = 0, period = 0;
  std::string text;
  std::ifstream unified(folder + "/cpu.max");
  std::ifstream quotaFile(folder + "/cpu.cfs_quota_us");
  std::ifstream periodFile(folder + "/cpu.cfs_period_us");
  if (unified >> text >> period)
    quota = std::atof(text.c_str()); // "max" is 0
  else if (!(quotaFile >> quota) || !(periodFile >> period))
    return kUnlimited;
  return quota > 0 && period > 0 ? quota / period : kUnlimited;
}

/// The smallest quota from `group` up to the root of the hierarchy. A container
/// may see its own group as the root: then the folders below are not there.
static double quotaUpwards(const std::string &hierarchy,
                           const std::string &group) {
  double smallest = quotaOf(hierarchy);
  for (size_t end = group.size(); end != 0 && end != std::string::npos;
       end = group.rfind('/', end - 1))
    smallest = std::min(smallest, quotaOf(hierarchy + group.substr(0, end)));
  return smallest;
}

/// Whether a comma-separated list has the CPU controller.
static bool hasCpuController(const std::string &controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

int runtime::cpuQuota(const std::string &root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  double smallest = kUnlimited;
  // Lines of "hierarchy:controllers:group"; version 2 has no controllers.
  std::ifstream memberships(root + "/proc/self/cgroup");
  for (std::string line; std::getline(memberships, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (controllers.empty())
      smallest = std::min(smallest, quotaUpwards(mounts, group));
    else if (hasCpuController(controllers))
      smallest = std::min(smallest, quotaUpwards(mounts + "/cpu", group));
  }
  return smallest < kUnlimited ? static_cast<int>(std::ceil(smallest)) : 0;
}

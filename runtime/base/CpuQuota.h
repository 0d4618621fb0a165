//===- CpuQuota.h - CPUs that control groups allow --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_CPUQUOTA_H
#define TCC_RUNTIME_BASE_CPUQUOTA_H

#include <string>
#include <vector>

namespace tcc::runtime {

/// CPUs that a control group allows all its processes together.
struct GroupQuota {
  std::string group; ///< its folder
  int cpus;          ///< rounded up
};

/// The quotas of this process's control group and those around it, as far as
/// they have one; the smallest first. `root` is where proc and sys are.
std::vector<GroupQuota> listCpuQuotas(const std::string &root = "");

/// The smallest of them; 0 if there is none.
int cpuQuota(const std::string &root = "");

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_CPUQUOTA_H

//===- CpuQuota.h - CPUs that control groups allow --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_CPUQUOTA_H
#define TCC_RUNTIME_BASE_CPUQUOTA_H

#include <string>

namespace tcc::runtime {

/// The smallest CPU quota of this process's control group and those around it,
/// rounded up; 0 if there is none. `root` is where proc and sys are.
int cpuQuota(const std::string &root = "");

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_CPUQUOTA_H

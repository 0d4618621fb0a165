//===- CpuFeatures.h - What this CPU can execute ----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_CPUFEATURES_H
#define TCC_RUNTIME_BASE_CPUFEATURES_H

#include <string>
#include <string_view>

namespace tcc::runtime {

/// Whether CPU and operating system support a feature, by LLVM's name for it
/// ("avx512f", "avx512vnni", ...). Unknown names are not supported. To ask for
/// one of AMX asks the operating system to let this process use it.
bool hasCpuFeature(std::string_view name);

/// Calls `visit` for every feature that this CPU has.
void visitCpuFeatures(void (*visit)(void *user, std::string_view name),
                      void *user);

/// The highest level of the x86-64 psABI that this CPU has, from 1.
int getArchitectureLevel();

/// As the CPU names itself; "x86-64" if it does not.
std::string getCpuName();

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_CPUFEATURES_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "runtime/base/CpuFeatures.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace tcc;
using namespace tcc::cpu;

bool Cpu::hasFeature(llvm::StringRef feature) const {
  return llvm::is_contained(features, feature);
}

Cpu Cpu::withoutTileRegisters() const {
  Cpu cpu = *this;
  llvm::erase_if(cpu.features, [](llvm::StringRef feature) {
    return feature.starts_with("amx");
  });
  return cpu;
}

std::string Cpu::getFeatureString() const {
  std::vector<std::string> enabled;
  for (const std::string &feature : features)
    enabled.push_back("+" + feature);
  return llvm::join(enabled, ",");
}

/// The features that change what LLVM emits for kernels, by its names; a
/// package asks for no others. The runtime tests for each
/// (runtime/base/CpuFeatures).
static constexpr llvm::StringLiteral kFeatures[] = {"amx-bf16",
                                                    "amx-tile",
                                                    "avx",
                                                    "avx2",
                                                    "avx512bf16",
                                                    "avx512bitalg",
                                                    "avx512bw",
                                                    "avx512cd",
                                                    "avx512dq",
                                                    "avx512f",
                                                    "avx512fp16",
                                                    "avx512ifma",
                                                    "avx512vbmi",
                                                    "avx512vbmi2",
                                                    "avx512vl",
                                                    "avx512vnni",
                                                    "avx512vpopcntdq",
                                                    "bmi",
                                                    "bmi2",
                                                    "f16c",
                                                    "fma",
                                                    "gfni",
                                                    "lzcnt",
                                                    "movbe",
                                                    "popcnt",
                                                    "sse3",
                                                    "sse4.1",
                                                    "sse4.2",
                                                    "ssse3"};

static void addFeature(Cpu &cpu, llvm::StringRef feature) {
  if (llvm::is_contained(kFeatures, feature))
    cpu.features.push_back(feature.str());
}

/// Kernels use fused multiply-adds and 256-bit vectors throughout.
static bool isSupported(const Cpu &cpu, std::string &error) {
  for (llvm::StringRef feature : {"avx2", "fma", "f16c"})
    if (!cpu.hasFeature(feature)) {
      error = "cpu '" + cpu.name + "' lacks " + feature.str() +
              "; the least that code is generated for is x86-64-v3";
      return false;
    }
  return true;
}

/// Whether this process may use what the CPU has: an operating system must
/// permit AMX.
static bool isUsable(llvm::StringRef feature) {
  return !feature.starts_with("amx") ||
         runtime::hasCpuFeature(std::string_view(feature));
}

std::optional<Cpu> cpu::getHostCpu(std::string &error) {
  Cpu cpu;
  cpu.name = llvm::sys::getHostCPUName().str();
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second && isUsable(feature.first()))
      addFeature(cpu, feature.first());
  llvm::sort(cpu.features);
  if (!isSupported(cpu, error))
    return std::nullopt;
  return cpu;
}

std::optional<Cpu> cpu::resolveCpu(llvm::StringRef name, std::string &error) {
  if (name == "native")
    return getHostCpu(error);
  if (llvm::X86::parseArchX86(name, /*Only64Bit=*/true) == llvm::X86::CK_None) {
    error = "unknown cpu '" + name.str() + "'";
    return std::nullopt;
  }
  Cpu cpu;
  cpu.name = name.str();
  llvm::SmallVector<llvm::StringRef> features;
  llvm::X86::getFeaturesForCPU(name, features, /*NeedPlus=*/false);
  for (llvm::StringRef feature : features)
    addFeature(cpu, feature);
  llvm::sort(cpu.features);
  if (!isSupported(cpu, error))
    return std::nullopt;
  return cpu;
}

std::vector<std::string> cpu::getCpuNames() {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  std::vector<std::string> result = {"native"};
  for (llvm::StringRef name : names)
    result.push_back(name.str());
  return result;
}

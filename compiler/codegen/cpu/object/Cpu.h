//===- Cpu.h - The CPUs that code is generated for --------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_CPU_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_CPU_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace tcc::cpu {

/// One CPU variant of a package: code may use exactly these features.
struct Cpu {
  /// As the user named it; "native" is resolved to the name of this machine's
  /// CPU, so that packages do not depend on the word.
  std::string name;
  /// LLVM's names, sorted.
  std::vector<std::string> features;

  bool hasFeature(llvm::StringRef feature) const;
  /// Bytes of the widest vector register that code should use.
  int64_t getVectorBytes() const { return hasFeature("avx512f") ? 64 : 32; }
  /// One instruction multiplies and adds pairs of bf16.
  bool hasPairProducts() const { return hasFeature("avx512bf16"); }
  /// Registers for tiles of matrices (AMX), and products of bf16 of them.
  bool hasTileRegisters() const {
    return hasFeature("amx-tile") && hasFeature("amx-bf16") &&
           hasFeature("avx512bf16");
  }
  /// The same CPU for code that has no use for tile registers: it runs where an
  /// operating system does not give them.
  Cpu withoutTileRegisters() const;
  /// "+avx2,+fma,..." for LLVM.
  std::string getFeatureString() const;
};

/// "native" or an LLVM CPU name, such as x86-64-v3 or znver5. Nullopt if the
/// name is not known; the CPU must at least have AVX2 and FMA (x86-64-v3),
/// which `error` tells.
std::optional<Cpu> resolveCpu(llvm::StringRef name, std::string &error);

/// The CPU of this machine.
std::optional<Cpu> getHostCpu(std::string &error);

/// All names that resolveCpu knows.
std::vector<std::string> getCpuNames();

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_CPU_H

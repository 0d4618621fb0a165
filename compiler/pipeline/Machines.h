//===- Machines.h - What a package has code for -----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_MACHINES_H
#define TCC_COMPILER_PIPELINE_MACHINES_H

#include "compiler/codegen/cpu/Cpu.h"
#include "compiler/codegen/cuda/Arch.h"
#include "tcc/compiler.h"

#include <vector>

namespace tcc {

/// What the options name: one variant of the host's code for each CPU.
struct Machines {
  std::vector<cpu::Cpu> cpus;
  std::vector<cuda::Arch> archs;  ///< the oldest first
  cuda::Arch ptx = {"sm_80", 80}; ///< whose PTX the package has
  bool hasPtx = true;
};

/// Returns what is wrong with the options, or nothing.
std::string resolveMachines(const CompileOptions &options, Machines &machines);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_MACHINES_H

//===- Machines.h - What code is generated for ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_MACHINES_H
#define TCC_COMPILER_PIPELINE_MACHINES_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/target/Target.h"

namespace tcc {

/// What the options ask for.
struct Machines {
  const Target *target = nullptr;
  /// The CPUs that the host's kernels are compiled for.
  std::vector<cpu::Cpu> cpus;
  /// What emits the host's kernels.
  std::unique_ptr<CodeEmitter> host;
  /// What emits the target's kernels; null without a device.
  std::unique_ptr<CodeEmitter> device;
};

/// The problem with the options, empty if there is none.
std::string resolveMachines(const CompileOptions &options, Machines &machines);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_MACHINES_H

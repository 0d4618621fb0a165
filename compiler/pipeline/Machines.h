//===- Machines.h - What code is generated for ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_MACHINES_H
#define TCC_COMPILER_PIPELINE_MACHINES_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/target/Target.h"

namespace tcc {

/// What the options ask for.
struct Machines {
  const Target *target = nullptr;
  std::vector<cpu::Cpu> cpus;          ///< of the host's kernels
  std::unique_ptr<CodeEmitter> host;   ///< of the host's kernels
  std::unique_ptr<CodeEmitter> device; ///< of the target's, if it has a device
};

/// The problem with the options, empty if there is none. `options` must outlive
/// `machines`.
std::string resolveMachines(const CompileOptions &options, Machines &machines);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_MACHINES_H

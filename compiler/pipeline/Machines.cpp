#include "compiler/pipeline/Machines.h"

#include "llvm/ADT/STLExtras.h"

namespace tcc {

static std::string findContradiction(const CompileOptions &options) {
  bool isForDevice =
      options.emulation != Emulation::None || options.artifact == Artifact::Ptx;
  if (options.target == Target::Cpu && isForDevice)
    return "--emulate and --emit=ptx need --target=cuda";
  if (options.target == Target::Cpu && options.precision == Precision::TF32)
    return "--precision=tf32: no CPU has such products; take f32 or bf16, or "
           "--target=cuda";
  return {};
}

static std::string resolveArchs(const CompileOptions &options,
                                Machines &machines) {
  std::string error;
  for (const std::string &name : options.archs) {
    if (name == "ptx" || name == "none")
      continue;
    std::optional<cuda::Arch> arch = cuda::parseArch(name, error);
    if (!arch)
      return "--arch: " + error;
    machines.archs.push_back(*arch);
  }
  llvm::sort(machines.archs, [](const cuda::Arch &a, const cuda::Arch &b) {
    return a.number < b.number;
  });
  if (!machines.archs.empty())
    machines.ptx = machines.archs.front().getPtxArch();
  machines.hasPtx = options.archs != std::vector<std::string>{"none"};
  if (options.target == Target::Cuda && !machines.hasPtx &&
      options.emulation == Emulation::None)
    return "--arch=none: the package would have no code for its kernels "
           "without "
           "--emulate";
  return {};
}

static std::string resolveCpus(const CompileOptions &options,
                               Machines &machines) {
  std::vector<std::string> names = options.cpus;
  if (names.empty())
    names = {options.target == Target::Cpu ? "native" : "x86-64-v3"};
  std::string error;
  for (const std::string &name : names) {
    std::optional<cpu::Cpu> cpu = cpu::resolveCpu(name, error);
    if (!cpu)
      return "--cpu: " + error;
    // Named twice, as `native` and by its name, it is one variant.
    auto isSame = [&](const cpu::Cpu &other) {
      return other.features == cpu->features;
    };
    if (llvm::none_of(machines.cpus, isSame))
      machines.cpus.push_back(*cpu);
  }
  return {};
}

std::string resolveMachines(const CompileOptions &options, Machines &machines) {
  std::string problem = findContradiction(options);
  if (problem.empty())
    problem = resolveArchs(options, machines);
  if (problem.empty())
    problem = resolveCpus(options, machines);
  return problem;
}

} // namespace tcc

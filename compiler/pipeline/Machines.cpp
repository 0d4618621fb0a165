#include "compiler/pipeline/Machines.h"

#include "tcc/compiler.h"

namespace tcc {

static std::string findContradiction(const CompileOptions &options,
                                     const Target &target) {
  bool isForDevice =
      options.emulation != Emulation::None || options.artifact == Artifact::Ptx;
  if (isForDevice && !target.hasDevice())
    return "--emulate and --emit=ptx need --target=" +
           listTargets([](const Target &x) { return x.hasDevice(); });
  if (!options.archs.empty() && !target.hasDevice())
    return "--arch needs --target=" +
           listTargets([](const Target &x) { return x.hasDevice(); });
  if (options.precision == Precision::TF32 && !target.getCapabilities().hasTf32)
    return "--precision=tf32: no CPU has such products; take f32 or bf16, or "
           "--target=" +
           listTargets(
               [](const Target &x) { return x.getCapabilities().hasTf32; });
  return {};
}

static std::string resolveCpus(const CompileOptions &options,
                               Machines &machines) {
  std::vector<std::string> names = options.cpus;
  if (names.empty())
    names = {machines.target->hasDevice() ? "x86-64-v3" : "native"};
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

static std::string createEmitter(const CompileOptions &options,
                                 const Target &target,
                                 llvm::ArrayRef<cpu::Cpu> cpus,
                                 std::unique_ptr<CodeEmitter> &emitter) {
  auto created = target.createEmitter(options, cpus);
  if (!created)
    return llvm::toString(created.takeError());
  emitter = std::move(*created);
  return {};
}

std::string resolveMachines(const CompileOptions &options, Machines &machines) {
  machines.target = findTarget(options.target);
  if (!machines.target)
    return "--target: there is no '" + options.target + "', expected " +
           listTargets();
  std::string problem = findContradiction(options, *machines.target);
  if (problem.empty())
    problem = resolveCpus(options, machines);
  if (problem.empty())
    problem =
        createEmitter(options, getHostTarget(), machines.cpus, machines.host);
  if (problem.empty() && machines.target->hasDevice())
    problem = createEmitter(options, *machines.target, machines.cpus,
                            machines.device);
  return problem;
}

} // namespace tcc

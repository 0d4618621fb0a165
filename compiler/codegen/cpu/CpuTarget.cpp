#include "compiler/codegen/cpu/CpuTarget.h"

#include "compiler/codegen/cpu/ExternalCode.h"
#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/cpu/kernels/PointwisePlan.h"
#include "compiler/codegen/cpu/object/EmitObjects.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/codegen/region/RowPlan.h"
#include "compiler/passes/graph/Passes.h"
#include "tcc/compiler.h"

using namespace mlir;

namespace tcc::cpu {

namespace {

class CpuEmitter : public CodeEmitter {
public:
  CpuEmitter(const Target &target, ArrayRef<Cpu> cpus)
      : target(target), cpus(cpus) {
    for (const Cpu &cpu : cpus)
      names.push_back(cpu.name);
  }

  const std::vector<std::string> &getMachines() const override { return names; }
  FailureOr<std::vector<CodeVariant>>
  emit(ModuleOp module, const EmitResources &resources,
       std::vector<std::string> &notes) override;
  FailureOr<std::string> print(ModuleOp module, const EmitResources &resources,
                               Artifact artifact) override;

private:
  FailureOr<Object> compile(exec::KernelOp kernel, StringRef name,
                            const Cpu &cpu, CodeForm form) const;

  const Target &target;
  std::vector<Cpu> cpus;
  std::vector<std::string> names; ///< of the CPUs
};

class CpuTarget : public Target {
public:
  StringRef getName() const override { return "cpu"; }
  exec::MemorySpace getSpace() const override {
    return exec::MemorySpace::host;
  }
  const Machine &getMachine() const override;
  const TargetCapabilities &getCapabilities() const override;
  std::optional<int64_t> getFixedExtent(graph::KernelKind kind) const override;
  void registerDialects(DialectRegistry &registry) const override {
    registerCodeEmission(registry);
  }
  void addPasses(OpPassManager &pm, TargetStage stage) const override;
  std::vector<std::string>
  checkCode(graph::ExternalKernelOpInterface op,
            graph::CustomCodeAttr code) const override {
    return cpu::checkCode(op.findKernel(getName()), code);
  }
  FailureOr<KernelInfo> plan(graph::FusedOp fused) const override {
    return cpu::analyzeKernel(fused);
  }
  FailureOr<OwningOpRef<ModuleOp>>
  emit(graph::FusedOp fused, StringRef name,
       const KernelOptions &options) const override {
    return cpu::emitKernel(fused, name, options);
  }
  llvm::Expected<std::unique_ptr<CodeEmitter>>
  createEmitter(const CompileOptions &options,
                ArrayRef<Cpu> hosts) const override;
};

} // namespace

// --- Emitter ---

FailureOr<Object> CpuEmitter::compile(exec::KernelOp kernel, StringRef name,
                                      const Cpu &cpu, CodeForm form) const {
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  auto loops = target.emit(fused, name, getKernelOptions(cpu));
  if (failed(loops))
    return failure();
  return emitCode(loops->get(), cpu, cpu.getVectorBytes(), form);
}

/// Whether `kernel` has a product of matrices of bf16: only those take tile
/// registers.
static bool multipliesBf16(exec::KernelOp kernel) {
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  Operation *product = codegen::getAnchor(fused);
  return product &&
         isa<graph::ProductOpInterface, graph::AttentionOpInterface>(product) &&
         llvm::any_of(product->getOperandTypes(), [](Type type) {
           return getElementTypeOrSelf(type).isBF16();
         });
}

FailureOr<std::vector<CodeVariant>>
CpuEmitter::emit(ModuleOp module, const EmitResources &resources,
                 std::vector<std::string> & /*notes*/) {
  codegen::Kernels kernels = codegen::getKernels(module, target);
  std::vector<CodeVariant> variants;
  bool multiplies = llvm::any_of(kernels, multipliesBf16);
  for (const Cpu &named : cpus) {
    const Cpu cpu = multiplies ? named : named.withoutTileRegisters();
    auto make = [&](exec::KernelOp kernel, StringRef name) {
      return compile(kernel, name, cpu, CodeForm::Object);
    };
    auto externals = collectExternals(kernels, cpu);
    if (failed(externals))
      return failure();
    auto variant = emitImage(module, kernels, cpu, target.getName(),
                             target.getName(), resources, make, *externals);
    if (failed(variant))
      return failure();
    variants.push_back(std::move(*variant));
  }
  return variants;
}

FailureOr<std::string> CpuEmitter::print(ModuleOp module,
                                         const EmitResources & /*resources*/,
                                         Artifact artifact) {
  codegen::Kernels kernels = codegen::getKernels(module, target);
  const Cpu &cpu = cpus.front();
  if (artifact == Artifact::Kernels)
    return codegen::printLoops(kernels, getKernelOptions(cpu));
  std::string text;
  if (artifact != Artifact::Assembly)
    return text;
  for (exec::KernelOp kernel : kernels) {
    FailureOr<Object> code =
        compile(kernel, kernel.getSymName(), cpu, CodeForm::Assembly);
    if (failed(code))
      return failure();
    text.append(code->begin(), code->end());
  }
  return text;
}

// --- Target ---

/// One core of a current server CPU; only the ratios matter for decisions. What
/// is measured is of an EPYC of family 26 (docs/benchmarks.md).
static constexpr Machine kMachine = {
    // A guess: activations mostly come from the last-level cache.
    .bytesPerMicrosecond = 30e3,
    // Measured: a gelu of 28 operations behind a product takes 0.26 ns.
    .flopsPerMicrosecond = 90e3,
    // Measured: 181e3 to 188e3, of a peak of 225e3 to 275e3.
    .contractionFlopsPerMicrosecond = 200e3,
    // Claiming tasks, cold instructions.
    .launchMicroseconds = 0.5,
    // One by one, not in vectors.
    .packingFactor = 12,
    // A guess: not all such kernels have vectors along other axes.
    .shortRowFactor = 3,
    .packedReuse = 128,
    .leastTasks = 8,
};

const Machine &CpuTarget::getMachine() const { return kMachine; }

const TargetCapabilities &CpuTarget::getCapabilities() const {
  // A message takes 50 us at 1 GB/s between hosts.
  static constexpr TargetCapabilities capabilities = {
      .hasBf16Attention = true,
      .readsGatheredBatches = true,
      .sumsInChains = true,
      .hasExactSums = true,
      .bucketBytes = int64_t(1) << 20,
  };
  return capabilities;
}

std::optional<int64_t> CpuTarget::getFixedExtent(graph::KernelKind kind) const {
  switch (kind) {
  case graph::KernelKind::pointwise:
    return kTile;
  case graph::KernelKind::row: // shorter ones are not reduced in lanes
    return codegen::kLanes;
  default:
    return std::nullopt;
  }
}

void CpuTarget::addPasses(OpPassManager &pm, TargetStage stage) const {
  // Panels are what its matrix kernels read.
  if (stage == TargetStage::Layout)
    pm.addPass(createPackWeightsPass());
}

llvm::Expected<std::unique_ptr<CodeEmitter>>
CpuTarget::createEmitter(const CompileOptions & /*options*/,
                         ArrayRef<Cpu> hosts) const {
  return std::make_unique<CpuEmitter>(*this, hosts);
}

const Target &getCpuTarget() {
  static const CpuTarget target;
  return target;
}

} // namespace tcc::cpu

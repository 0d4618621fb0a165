#include "compiler/codegen/cuda/CudaTarget.h"

#include "compiler/codegen/cuda/CudaEmitter.h"
#include "compiler/codegen/cuda/ExternalDeviceCode.h"
#include "compiler/codegen/cuda/kernels/DescribeLibrary.h"
#include "compiler/codegen/cuda/kernels/DeviceKernel.h"
#include "compiler/codegen/cuda/nvvm/DeviceCode.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/fusion/LibraryWork.h"

using namespace mlir;

namespace tcc::cuda {

namespace {

class CudaTarget : public Target {
public:
  StringRef getName() const override { return "cuda"; }
  exec::MemorySpace getSpace() const override {
    return exec::MemorySpace::device;
  }
  const Machine &getMachine() const override;
  const TargetCapabilities &getCapabilities() const override;
  void registerDialects(DialectRegistry &registry) const override {
    registerDeviceCode(registry);
  }
  void addPasses(OpPassManager &pm, TargetStage stage) const override;
  bool hasKernels(graph::KernelKind kind) const override {
    return cuda::hasKernels(kind);
  }
  std::vector<std::string>
  checkCode(graph::ExternalKernelOpInterface op,
            graph::CustomCodeAttr code) const override {
    return cuda::checkCode(op, code);
  }
  bool isOfLibrary(Operation *anchor, ArrayRef<Value> results,
                   function_ref<bool(Value)> isInput) const override;
  FailureOr<KernelInfo> plan(graph::FusedOp fused) const override {
    return analyzeKernel(fused);
  }
  bool canOverwrite(graph::FusedOp fused, unsigned result,
                    unsigned input) const override {
    return canLibraryOverwrite(fused, result, input);
  }
  SmallVector<int64_t> getAlignments(graph::FusedOp fused) const override {
    return cuda::getAlignments(fused);
  }
  FailureOr<OwningOpRef<ModuleOp>>
  emit(graph::FusedOp fused, StringRef name,
       const KernelOptions & /*options*/) const override {
    return emitKernel(fused, name);
  }
  llvm::Expected<std::unique_ptr<CodeEmitter>>
  createEmitter(const CompileOptions &options,
                ArrayRef<cpu::Cpu> hosts) const override {
    return createCudaEmitter(*this, options, hosts.front());
  }
};

} // namespace

/// A current data-centre GPU; only the ratios matter for decisions. What is
/// measured is of an H200 (docs/gpu-results.md).
static constexpr Machine kMachine = {
    // Measured: 3.2e6.
    .bytesPerMicrosecond = 3e6,
    // A guess: 67e6 of FMAs in NVIDIA's data sheet, which few bodies are.
    .flopsPerMicrosecond = 20e6,
    // A guess: without tensor cores.
    .contractionFlopsPerMicrosecond = 15e6,
    // Measured: 46e6 in f32, 241e6 in tf32, 417e6 in bf16.
    .libraryFlopsPerMicrosecond = 200e6,
    // Measured: 0.9 from node to node of a graph, 7 alone.
    .launchMicroseconds = 2,
    // Threads compute what they stage as they would anywhere.
    .packingFactor = 1,
    .packedReuse = 64,
    .leastTasks = 64,
};

const Machine &CudaTarget::getMachine() const { return kMachine; }

const TargetCapabilities &CudaTarget::getCapabilities() const {
  // A message takes 20 us at 100 GB/s between GPUs.
  static constexpr TargetCapabilities capabilities = {
      .hasTensorAttention = true,
      .hasLibraries = true,
      .hasTf32 = true,
      .accessBytes = kAccessBytes,
      .bucketBytes = int64_t(25) << 20};
  return capabilities;
}

void CudaTarget::addPasses(OpPassManager &pm, TargetStage stage) const {
  switch (stage) {
  case TargetStage::Layout:
    // A launch costs more than slices do.
    return pm.addPass(createMergeProductsPass());
  case TargetStage::Prepared:
    return pm.addPass(createKeepRoundedPass());
  case TargetStage::Fusion:
    return pm.addPass(createSumOperandsPass());
  }
}

bool CudaTarget::isOfLibrary(Operation *anchor, ArrayRef<Value> results,
                             function_ref<bool(Value)> isInput) const {
  return fusion::describeLibraryWork(anchor, results, isInput).has_value();
}

const Target &getCudaTarget() {
  static const CudaTarget target;
  return target;
}

} // namespace tcc::cuda

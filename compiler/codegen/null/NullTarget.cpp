#include "compiler/codegen/null/NullTarget.h"

#include "compiler/codegen/region/EmitAll.h"

using namespace mlir;

namespace tcc::null {

namespace {

class NullEmitter : public CodeEmitter {
public:
  explicit NullEmitter(const Target &target) : target(target) {}

  FailureOr<std::vector<CodeVariant>>
  emit(ModuleOp module, int /*jobs*/,
       std::vector<std::string> & /*notes*/) override {
    return std::vector<CodeVariant>{
        {target.getName().str(), target.getName().str()}};
  }
  FailureOr<std::string> print(ModuleOp module, int /*jobs*/,
                               Artifact /*artifact*/) override {
    size_t count = codegen::getKernels(module, target).size();
    return std::to_string(count) + " kernels\n";
  }

private:
  const Target &target;
};

class NullTarget : public Target {
public:
  StringRef getName() const override { return "null"; }
  exec::MemorySpace getSpace() const override {
    return exec::MemorySpace::device;
  }
  const Machine &getMachine() const override {
    static constexpr Machine machine = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    return machine;
  }
  const TargetCapabilities &getCapabilities() const override {
    static constexpr TargetCapabilities capabilities = {};
    return capabilities;
  }
  FailureOr<KernelInfo> plan(graph::FusedOp fused) const override;
  FailureOr<OwningOpRef<ModuleOp>>
  emit(graph::FusedOp fused, StringRef /*name*/,
       const KernelOptions & /*options*/) const override {
    return OwningOpRef<ModuleOp>(ModuleOp::create(fused.getLoc()));
  }
  llvm::Expected<std::unique_ptr<CodeEmitter>>
  createEmitter(const CompileOptions & /*options*/,
                ArrayRef<cpu::Cpu> /*hosts*/) const override {
    return std::make_unique<NullEmitter>(*this);
  }
};

} // namespace

FailureOr<KernelInfo> NullTarget::plan(graph::FusedOp fused) const {
  KernelInfo info;
  info.threads = 1;
  info.tasks = getAffineConstantExpr(1, fused.getContext());
  return info;
}

const Target &getNullTarget() {
  static const NullTarget target;
  return target;
}

} // namespace tcc::null

#include "compiler/codegen/null/NullTarget.h"

using namespace mlir;

namespace tcc::null {

namespace {

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
    return llvm::createStringError("the target null has no code");
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

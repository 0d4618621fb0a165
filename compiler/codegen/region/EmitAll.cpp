#include "compiler/codegen/region/EmitAll.h"

using namespace mlir;

namespace tcc::codegen {

Kernels getKernels(ModuleOp module, const Target &target) {
  Kernels kernels;
  for (auto kernel : module.getOps<exec::KernelOp>())
    if (&getTarget(kernel) == &target && !kernel.getFinished())
      kernels.push_back(kernel);
  return kernels;
}

FailureOr<std::string> printLoops(ArrayRef<exec::KernelOp> kernels,
                                  const KernelOptions &options) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (exec::KernelOp kernel : kernels) {
    auto fused = cast<graph::FusedOp>(kernel.getComputation());
    auto loops = getTarget(kernel).emit(fused, kernel.getSymName(), options);
    if (failed(loops))
      return failure();
    (*loops)->print(stream);
    stream << '\n';
  }
  return text;
}

} // namespace tcc::codegen

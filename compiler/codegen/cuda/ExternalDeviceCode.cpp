#include "compiler/codegen/cuda/ExternalDeviceCode.h"

#include "compiler/codegen/region/ExternalKernel.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static constexpr StringLiteral kTarget = "cuda";

static ExternalBitcode describe(CustomKernelAttr kernel, CustomCodeAttr code) {
  return {codegen::getExternalName(kernel), kernel.getSymbol().str(),
          codegen::getBytes(code).getBuffer()};
}

std::vector<std::string> checkCode(ExternalKernelOpInterface op,
                                   CustomCodeAttr code) {
  std::string error;
  if (!parseArch(code.getMachine().getValue(), error))
    return {"is for machine '" + code.getMachine().str() + "': " + error};
  CustomKernelAttr kernel = op.findKernel(kTarget);
  return checkBitcode(describe(kernel, code),
                      op->getNumOperands() + op->getNumResults(),
                      kernel.getSizes().getValue().getNumResults());
}

FailureOr<std::optional<ExternalBitcode>> findBitcode(FusedOp region,
                                                      const Arch &arch) {
  CustomKernelAttr kernel = codegen::findExternal(region, kTarget);
  if (!kernel)
    return std::optional<ExternalBitcode>();
  CustomCodeAttr newest;
  int most = -1;
  for (auto code : kernel.getCodes().getAsRange<CustomCodeAttr>()) {
    std::string error;
    auto machine = parseArch(code.getMachine(), error);
    if (!machine || machine->number > arch.number || machine->number <= most)
      continue;
    newest = code;
    most = machine->number;
  }
  if (!newest)
    return region.emitError("'") << kernel.getSymbol().getValue()
                                 << "' has no code for " << arch.name;
  return std::optional(describe(kernel, newest));
}

} // namespace tcc::cuda

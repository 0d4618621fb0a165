#include "compiler/codegen/cuda/ExternalDeviceCode.h"

#include "compiler/codegen/cuda/nvvm/FinishedCode.h"
#include "compiler/codegen/region/ExternalKernel.h"
#include "runtime/package/Cubin.h"

#include "llvm/ADT/MapVector.h"

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
  CustomKernelAttr kernel = op.findKernel(kTarget);
  unsigned buffers = op->getNumOperands() + op->getNumResults();
  unsigned sizes = kernel.getSizes().getValue().getNumResults();
  StringRef machine = code.getMachine(), symbol = kernel.getSymbol();
  StringRef bytes = codegen::getBytes(code).getBuffer();
  LaunchShape launch = {buffers + sizes, kernel.getThreads()};
  std::string error = "is for machine '" + machine.str() + "': ";
  if (code.getForm() == CodeForm::cubin) {
    auto target = runtime::parseCubinTarget(machine.str());
    if (!target)
      return {error + "expected sm_90, sm_90a or the like"};
    return checkCubin(bytes, symbol, target->number(), launch);
  }
  std::string reason;
  std::optional<Arch> arch = parseArch(machine, reason);
  if (!arch)
    return {error + reason};
  if (code.getForm() == CodeForm::ptx)
    return checkPtx(bytes, symbol, *arch, launch);
  return checkBitcode(describe(kernel, code), buffers, sizes);
}

// --- Finished code ---

/// PTX runs on what came after `machine`, too.
static bool runsOn(CustomCodeAttr code, const Arch &arch) {
  auto target = runtime::parseCubinTarget(code.getMachine().str());
  if (!target)
    return false;
  return code.getForm() == CodeForm::ptx
             ? target->number() <= arch.number
             : target->runsOn(arch.number / 10, arch.number % 10);
}

static LogicalResult checkArchs(exec::KernelOp kernel, ArrayRef<Arch> archs) {
  auto codes = kernel.getFinishedAttr().getCodes();
  for (const Arch &arch : archs)
    if (llvm::none_of(codes.getAsRange<CustomCodeAttr>(),
                      [&](CustomCodeAttr code) { return runsOn(code, arch); }))
      return kernel.emitError("'")
             << kernel.getFinishedAttr().getEntry().getValue()
             << "' has no code for " << arch.name
             << ": --arch says which GPUs the package is for";
  return success();
}

FailureOr<std::vector<CodeVariant>> listFinished(ModuleOp module,
                                                 ArrayRef<Arch> archs) {
  // By the code, whose bytes are those of its digest.
  llvm::MapVector<Attribute, CodeVariant> variants;
  for (auto [i, kernel] : llvm::enumerate(module.getOps<exec::KernelOp>())) {
    exec::FinishedCodeAttr finished = kernel.getFinishedAttr();
    if (!finished)
      continue;
    if (failed(checkArchs(kernel, archs)))
      return failure();
    for (auto code : finished.getCodes().getAsRange<CustomCodeAttr>()) {
      CodeVariant &variant = variants[code];
      variant.target = kTarget.str();
      variant.machine = code.getForm() == CodeForm::ptx
                            ? "ptx"
                            : code.getMachine().getValue().str();
      StringRef bytes = codegen::getBytes(code).getBuffer();
      variant.bytes.assign(bytes.begin(), bytes.end());
      variant.kernels.push_back(i);
    }
  }
  std::vector<CodeVariant> list;
  for (auto &[code, variant] : variants)
    list.push_back(std::move(variant));
  return list;
}

// --- Bitcode ---

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

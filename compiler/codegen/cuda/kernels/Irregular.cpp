#include "compiler/codegen/cuda/kernels/Irregular.h"
#include "compiler/codegen/region/ExternalKernel.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static FailureOr<LaunchPlan> planExternal(ExternalKernelOpInterface op) {
  auto kernel = codegen::getExternal(op, getOwnTarget().getName());
  if (failed(kernel))
    return failure();
  return LaunchPlan{kernel->getTasks().getValue().getResult(0),
                    kernel->getThreads()};
}

/// All threads of all blocks call it: what it becomes is the kernel's body.
static void emitExternal(KernelBuilder &b, DeviceFrame &frame,
                         ExternalKernelOpInterface op) {
  CustomKernelAttr kernel = op.findKernel(getOwnTarget().getName());
  codegen::ExternalArguments arguments =
      codegen::emitArguments(b, frame, op, kernel);
  llvm::append_range(arguments.buffers, arguments.sizes);
  codegen::emitExternalCall(b, frame.loc, kernel, arguments.buffers);
}

FailureOr<LaunchPlan> planIrregular(FusedOp region,
                                    ArrayRef<SymbolAttr> symbols) {
  Operation *anchor = codegen::getAnchor(region);
  if (auto op = dyn_cast_if_present<ExternalKernelOpInterface>(anchor))
    return planExternal(op);
  if (auto op = dyn_cast_if_present<TopKOp>(anchor))
    return planTopK(op);
  if (auto op = dyn_cast_if_present<ChooseBoxesOp>(anchor))
    return planChooseBoxes(op, symbols);
  if (auto op = dyn_cast_if_present<FindOp>(anchor))
    return planFind(op);
  if (auto op = dyn_cast_if_present<ScatterOpInterface>(anchor))
    return planScatter(op, symbols);
  return region.emitOpError("has no op that an irregular kernel is made for");
}

LogicalResult emitIrregular(KernelBuilder &b, DeviceFrame &frame) {
  Operation *anchor = codegen::getAnchor(frame.region);
  if (auto op = dyn_cast<ExternalKernelOpInterface>(anchor))
    emitExternal(b, frame, op);
  else if (auto op = dyn_cast<TopKOp>(anchor))
    emitTopK(b, frame, op);
  else if (auto op = dyn_cast<ChooseBoxesOp>(anchor))
    emitChooseBoxes(b, frame, op);
  else if (auto op = dyn_cast<FindOp>(anchor))
    emitFind(b, frame, op);
  else
    emitScatter(b, frame, cast<ScatterOpInterface>(anchor));
  return success();
}

} // namespace tcc::cuda

#include "compiler/codegen/cuda/kernels/Irregular.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

FailureOr<LaunchPlan> planIrregular(FusedOp region,
                                    ArrayRef<SymbolAttr> symbols) {
  Operation *anchor = codegen::getAnchor(region);
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
  if (auto op = dyn_cast<TopKOp>(anchor))
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

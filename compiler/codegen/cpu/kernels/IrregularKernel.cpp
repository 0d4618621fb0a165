//===- IrregularKernel.cpp - Scatter, choice of elements and boxes
//----------===//

#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

void forElements(OpBuilder &b, KernelFrame &frame, ArrayRef<AffineExpr> extents,
                 SmallVector<Value> at, ElementBody body) {
  if (at.size() == extents.size())
    return body(b, at);
  Value extent = frame.elements.size(b, frame.loc, extents[at.size()]);
  emitLoop(b, frame.loc, emitIndex(b, frame.loc, 0), extent, 1,
           [&](OpBuilder &b, Value i) {
             SmallVector<Value> inner(at);
             inner.push_back(i);
             forElements(b, frame, extents, inner, body);
           });
}

FailureOr<TaskPlan> planIrregularKernel(FusedOp region,
                                        ArrayRef<SymbolAttr> symbols) {
  Operation *anchor = getAnchor(region);
  if (auto op = dyn_cast_if_present<TopKOp>(anchor))
    return planTopK(op, symbols);
  if (auto op = dyn_cast_if_present<ChooseBoxesOp>(anchor))
    return planChooseBoxes(op, symbols);
  if (auto op = dyn_cast_if_present<FindOp>(anchor))
    return planFind(op);
  if (auto op = dyn_cast_if_present<ScatterOpInterface>(anchor))
    return planScatter(region, op, symbols);
  if (auto op = dyn_cast_if_present<ExternalKernelOpInterface>(anchor))
    return planExternal(op, symbols);
  return region.emitOpError("has no op that an irregular kernel is made for");
}

LogicalResult emitIrregularKernel(OpBuilder &b, KernelFrame &frame) {
  Operation *anchor = getAnchor(frame.region);
  if (auto op = dyn_cast<TopKOp>(anchor))
    emitTopK(b, frame, op);
  else if (auto op = dyn_cast<ExternalKernelOpInterface>(anchor))
    emitExternal(b, frame, op);
  else if (auto op = dyn_cast<ChooseBoxesOp>(anchor))
    emitChooseBoxes(b, frame, op);
  else if (auto op = dyn_cast<FindOp>(anchor))
    emitFind(b, frame, op);
  else
    emitScatter(b, frame, cast<ScatterOpInterface>(anchor));
  return success();
}

} // namespace tcc::cpu

//===- Scatter.cpp - Updates at indices read from data --------------------===//
//
// One task: updates are applied in row-major order, and several may hit one
// element.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// The position of the op's own result among those of the region.
static std::optional<unsigned> findResult(FusedOp region, Operation *op) {
  auto yields = region.getBody().front().getTerminator()->getOperands();
  auto it = llvm::find(yields, op->getResult(0));
  if (it == yields.end())
    return std::nullopt;
  return it - yields.begin();
}

FailureOr<TaskPlan> planScatter(FusedOp region, ScatterOpInterface op,
                                ArrayRef<SymbolAttr> symbols) {
  TaskPlan plan{getAffineConstantExpr(1, region.getContext())};
  // What is not a result is built in scratch memory.
  if (!findResult(region, op))
    plan.scratchBytes = getMaxCount(getExtents(op->getResult(0)), symbols) *
                        getStorageBytes(getElementTypeOrSelf(op->getResult(0)));
  return plan;
}

namespace {

class ScatterEmitter {
public:
  ScatterEmitter(KernelFrame &frame, ScatterOpInterface op, Buffer target)
      : frame(frame), op(op), x(op->getOperand(0)), updates(op->getOperand(2)),
        target(target), loc(frame.loc) {}

  void emitCopy(OpBuilder &b);
  void emitUpdates(OpBuilder &b);
  void emitEpilogue(OpBuilder &b);

private:
  KernelFrame &frame;
  ScatterOpInterface op;
  Value x, updates;
  Buffer target;
  Location loc;
};

} // namespace

void ScatterEmitter::emitCopy(OpBuilder &b) {
  if (frame.elements.getBuffer(x).getPointer() == target.getPointer())
    return;
  forElements(b, frame, getExtents(x), {}, [&](OpBuilder &b, ValueRange at) {
    frame.elements.storeElement(b, loc, x, at, target);
  });
}

void ScatterEmitter::emitUpdates(OpBuilder &b) {
  Type elementType = getElementTypeOrSelf(x);
  auto emitOne = [&](OpBuilder &b, ValueRange at) {
    Value update = frame.elements.element(b, loc, updates, at);
    Value position =
        frame.elements.position(b, loc, op->getResult(0),
                                op.emitDestination(b, loc, at, frame.elements));
    Value old = target.load(b, loc, position);
    Value combined = emitUpdate(b, loc, op, old, update);
    target.store(b, loc, emitRounding(b, loc, combined, elementType), position);
  };
  forElements(b, frame, getExtents(updates), {}, emitOne);
}

/// The other results, which read this one.
void ScatterEmitter::emitEpilogue(OpBuilder &b) {
  Value result = op->getResult(0);
  frame.elements.bind(result, target);
  forElements(b, frame, getExtents(result), {},
              [&](OpBuilder &b, ValueRange at) {
                for (auto [yielded, buffer] :
                     llvm::zip_equal(frame.getYields(), frame.results))
                  if (yielded != result)
                    frame.elements.storeElement(b, loc, yielded, at, buffer);
              });
}

void emitScatter(OpBuilder &b, KernelFrame &frame, ScatterOpInterface op) {
  Type elementType = getElementTypeOrSelf(op->getResult(0));
  std::optional<unsigned> place = findResult(frame.region, op);
  Buffer target =
      place ? frame.results[*place] : Buffer(frame.scratch, elementType);
  bool hasEpilogue = !llvm::all_equal(frame.getYields()) || !place;
  emitLoop(b, frame.loc, frame.firstTask, frame.lastTask, 1,
           [&](OpBuilder &b, Value) {
             ScatterEmitter emitter(frame, op, target);
             emitter.emitCopy(b);
             emitter.emitUpdates(b);
             if (hasEpilogue)
               emitter.emitEpilogue(b);
           });
}

} // namespace tcc::cpu

//===- PointwiseKernel.cpp - One loop nest over the results ---------------===//
//
// All results have one shape, the space. Its last axis is the inner loop; the
// others are one loop over rows. A task takes some rows, or a part of one.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernel/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

namespace {

/// Rows of so few elements are written out: the loop over rows vectorises.
constexpr int64_t kShortRow = 4;

struct PointwisePlan {
  Extents outer;
  AffineExpr inner;
  int64_t rowsPerTask = 1;
  /// Elements of a row in one task; 0: all.
  int64_t chunk = 0;

  PointwisePlan(FusedOp region, ArrayRef<SymbolAttr> symbols);
  AffineExpr getRows() const {
    return getNumElements(outer, inner.getContext());
  }
  AffineExpr getTasks() const {
    return chunk ? getRows() * inner.ceilDiv(chunk)
                 : getRows().ceilDiv(rowsPerTask);
  }
};

} // namespace

PointwisePlan::PointwisePlan(FusedOp region, ArrayRef<SymbolAttr> symbols) {
  Operation *yield = region.getBody().front().getTerminator();
  outer = getExtents(yield->getOperand(0));
  inner = getAffineConstantExpr(1, region.getContext());
  if (!outer.empty())
    inner = outer.pop_back_val();
  int64_t size = getMaxCount(inner, symbols);
  if (size > 2 * kTaskGrain)
    chunk = kTaskGrain;
  else
    rowsPerTask = getRowsPerTask(size);
}

FailureOr<TaskPlan> planPointwiseKernel(FusedOp region,
                                        ArrayRef<SymbolAttr> symbols) {
  return TaskPlan{PointwisePlan(region, symbols).getTasks(), 0};
}

namespace {

class PointwiseEmitter {
public:
  PointwiseEmitter(KernelFrame &frame)
      : frame(frame), plan(frame.region, frame.symbols), loc(frame.loc) {}

  void emitTask(OpBuilder &b, Value task);

private:
  Value size(OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, loc, expression);
  }
  void emitRow(OpBuilder &b, Value row, Value from, Value to);

  KernelFrame &frame;
  PointwisePlan plan;
  Location loc;
};

} // namespace

void PointwiseEmitter::emitTask(OpBuilder &b, Value task) {
  Value inner = size(b, plan.inner);
  if (plan.chunk) {
    Value chunks = size(b, plan.inner.ceilDiv(plan.chunk));
    SmallVector<Value> place =
        emitDelinearize(b, loc, task, {size(b, plan.getRows()), chunks});
    Value width = emitIndex(b, loc, plan.chunk);
    Value from = emitMul(b, loc, place[1], width);
    Value to = emitMin(b, loc, emitAdd(b, loc, from, width), inner);
    return emitRow(b, place[0], from, to);
  }
  Value from = emitMul(b, loc, task, emitIndex(b, loc, plan.rowsPerTask));
  Value to = emitAdd(b, loc, from, emitIndex(b, loc, plan.rowsPerTask));
  to = emitMin(b, loc, to, size(b, plan.getRows()));
  emitLoop(b, loc, from, to, 1, [&](OpBuilder &b, Value row) {
    emitRow(b, row, emitIndex(b, loc, 0), inner);
  });
}

void PointwiseEmitter::emitRow(OpBuilder &b, Value row, Value from, Value to) {
  auto sizes = llvm::map_to_vector(
      plan.outer, [&](AffineExpr extent) { return size(b, extent); });
  SmallVector<Value> indices = emitDelinearize(b, loc, row, sizes);
  auto emitElement = [&](OpBuilder &b, Value column) {
    auto getIndices = [&](Value yielded) {
      SmallVector<Value> at(indices);
      if (cast<RankedTensorType>(yielded.getType()).getRank() > 0)
        at.push_back(column);
      return at;
    };
    // A result may lie in the buffer of an input that another result reads.
    for (Value yielded : frame.getYields())
      frame.elements.element(b, loc, yielded, getIndices(yielded));
    for (auto [yielded, buffer] :
         llvm::zip_equal(frame.getYields(), frame.results))
      frame.elements.storeElement(b, loc, yielded, getIndices(yielded), buffer);
  };
  auto count = getConstant(plan.inner);
  if (!count || *count > kShortRow || plan.chunk)
    return emitLoop(b, loc, from, to, 1, emitElement);
  for (int64_t column = 0; column < *count; ++column)
    emitElement(b, emitIndex(b, loc, column));
}

LogicalResult emitPointwiseKernel(OpBuilder &b, KernelFrame &frame) {
  PointwiseEmitter emitter(frame);
  emitLoop(b, frame.loc, frame.firstTask, frame.lastTask, 1,
           [&](OpBuilder &b, Value task) { emitter.emitTask(b, task); });
  return success();
}

} // namespace tcc::codegen

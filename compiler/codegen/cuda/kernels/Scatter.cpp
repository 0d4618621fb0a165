//===- Scatter.cpp - Updates at indices read from data --------------------===//
//
// Along the axes that are not scattered an update changes the element at its
// own index: each column, the elements at one such index, is for itself. A
// thread owns some elements of a column, the slots, and keeps them in shared
// memory. It walks the updates of the column in their order and applies those
// that hit a slot, so nothing depends on what other threads do.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/Irregular.h"
#include "compiler/codegen/region/Updates.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

namespace {

constexpr int64_t kThreads = 256;

/// Threads of a block are `rows` in a column by `columns`.
struct ScatterPlan {
  ScatterOpInterface op;
  Value result, updates;
  Extents own, scattered; // extents of the result's axes
  Extents walked;         // of the updates of a column
  int64_t firstAxis;      // scattered, and walked
  int64_t rows = 1, columns = kThreads, slots;
  bool columnsAreAdjacent;

  ScatterPlan(ScatterOpInterface op, ArrayRef<SymbolAttr> symbols);
  AffineExpr count(ArrayRef<AffineExpr> extents) const {
    return getNumElements(extents, result.getContext());
  }
  /// Elements of a column that a block owns.
  int64_t getChunk() const { return rows * slots; }
  AffineExpr getChunks() const { return count(scattered).ceilDiv(getChunk()); }
  AffineExpr getBlocks() const {
    return count(own).ceilDiv(columns) * getChunks();
  }

private:
  void shareThreads(ArrayRef<SymbolAttr> symbols);
};

class ScatterEmitter {
public:
  ScatterEmitter(KernelBuilder &b, DeviceFrame &frame, ScatterOpInterface op);
  void emit();

private:
  using Values = SmallVector<Value>;

  KernelBuilder &b;
  DeviceFrame &frame;
  ScatterPlan plan;
  Buffer elements; // [slots][threads]
  Values own;      // indices of the column
  Value chunk;     // the first element of a column that the block owns
  Value row;       // this thread's among those

  Value size(AffineExpr expression) { return frame.size(b, expression); }
  Values sizes(ArrayRef<AffineExpr> extents) {
    return llvm::map_to_vector(extents, [&](AffineExpr e) { return size(e); });
  }
  Values insert(ValueRange indices) {
    Values at(own);
    at.insert(at.begin() + plan.firstAxis, indices.begin(), indices.end());
    return at;
  }
  Value getSlot(Value number) {
    return b.add(b.mul(number, b.index(kThreads)), frame.thread);
  }
  void emitColumn(Value column);
  void forSlots(function_ref<void(ValueRange at, Value slot)> body);
  void walk(Values indices);
  void apply(ValueRange at);
  Value isUpdated();
};

} // namespace

ScatterPlan::ScatterPlan(ScatterOpInterface op, ArrayRef<SymbolAttr> symbols)
    : op(op), result(op->getResult(0)), updates(op->getOperand(2)),
      own(getExtents(result)), walked(getExtents(updates)) {
  SmallVector<int64_t> axes = op.getScatteredAxes();
  firstAxis = axes.empty() ? 0 : axes.front();
  columnsAreAdjacent = firstAxis + axes.size() < own.size();
  scattered.assign(own.begin() + firstAxis,
                   own.begin() + firstAxis + axes.size());
  own.erase(own.begin() + firstAxis, own.begin() + firstAxis + axes.size());
  int64_t count = walked.size() - own.size();
  walked.assign(walked.begin() + firstAxis, walked.begin() + firstAxis + count);
  shareThreads(symbols);
}

/// Neighbouring threads take adjacent elements, as far as those of a column, or
/// columns, fill a block.
void ScatterPlan::shareThreads(ArrayRef<SymbolAttr> symbols) {
  auto room = [&](ArrayRef<AffineExpr> extents) {
    int64_t most = codegen::getMaxCount(extents, symbols);
    return std::min<int64_t>(kThreads,
                             llvm::PowerOf2Ceil(std::max<int64_t>(1, most)));
  };
  if (columnsAreAdjacent)
    rows = std::min(room(scattered),
                    kThreads / room(ArrayRef(own).drop_front(firstAxis)));
  else
    rows = room(scattered);
  columns = kThreads / rows;
  constexpr int64_t kSharedBytes = 32 << 10;
  int64_t bytes = codegen::getStorageBytes(getElementTypeOrSelf(result));
  int64_t needed = llvm::divideCeil(
      std::max<int64_t>(1, codegen::getMaxCount(scattered, symbols)), rows);
  slots = std::min(kSharedBytes / (bytes * kThreads), needed);
}

ScatterEmitter::ScatterEmitter(KernelBuilder &b, DeviceFrame &frame,
                               ScatterOpInterface op)
    : b(b), frame(frame), plan(op, frame.symbols),
      elements(frame.allocateShared(b, getElementTypeOrSelf(plan.result),
                                    plan.slots * kThreads)) {}

/// The elements that this thread owns, and the slots that they are kept in.
void ScatterEmitter::forSlots(
    function_ref<void(ValueRange at, Value slot)> body) {
  Value count = size(plan.count(plan.scattered));
  b.loop(b.index(plan.slots), [&](Value number) {
    Value place = b.add(b.mul(number, b.index(plan.rows)), row);
    place = b.add(chunk, place);
    b.when(b.less(place, count), [&] {
      body(insert(b.delinearize(place, sizes(plan.scattered))),
           getSlot(number));
    });
  });
}

/// Applies the update at `at` if it hits a slot of this thread.
void ScatterEmitter::apply(ValueRange at) {
  Values to = plan.op.emitDestination(b, frame.loc, at, frame.elements);
  Value place = b.index(0);
  for (auto [i, extent] : llvm::enumerate(plan.scattered))
    place = b.add(b.mul(place, size(extent)), to[plan.firstAxis + i]);
  Value offset = b.sub(place, chunk), rows = b.index(plan.rows);
  Value isInChunk = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, offset,
                                            b.index(plan.getChunk()));
  Value isOwn = b.equal(b.rem(offset, rows), row);
  b.when(b.create<arith::AndIOp>(isInChunk, isOwn), [&] {
    Value slot = getSlot(b.div(offset, rows));
    Value old = elements.load(b, frame.loc, slot);
    Value update = frame.elements.element(b, frame.loc, plan.updates, at);
    Value x = codegen::emitUpdate(b, frame.loc, plan.op, old, update);
    x = codegen::emitRounding(b, frame.loc, x, elements.getElementType());
    elements.store(b, frame.loc, x, slot);
  });
}

void ScatterEmitter::walk(Values indices) {
  if (indices.size() == plan.walked.size())
    return apply(insert(indices));
  b.loop(size(plan.walked[indices.size()]), [&](Value i) {
    Values inner(indices);
    inner.push_back(i);
    walk(inner);
  });
}

/// Updates may end before the columns do.
Value ScatterEmitter::isUpdated() {
  Extents extents = getExtents(plan.updates);
  extents.erase(extents.begin() + plan.firstAxis,
                extents.begin() + plan.firstAxis + plan.walked.size());
  Value isInside = b.create<arith::ConstantIntOp>(1, 1);
  for (auto [index, extent, all] : llvm::zip_equal(own, extents, plan.own))
    if (!isEqual(extent, all))
      isInside = b.create<arith::AndIOp>(isInside, b.less(index, size(extent)));
  return isInside;
}

void ScatterEmitter::emitColumn(Value column) {
  own = b.delinearize(column, sizes(plan.own));
  forSlots([&](ValueRange at, Value slot) {
    Value x = frame.elements.element(b, frame.loc, plan.op->getOperand(0), at);
    elements.store(b, frame.loc, x, slot);
  });
  b.when(isUpdated(), [&] { walk({}); });
  forSlots([&](ValueRange at, Value slot) {
    frame.elements.define(plan.result, at, elements.load(b, frame.loc, slot));
    storeResults(b, frame,
                 llvm::to_vector(llvm::seq<unsigned>(frame.results.size())), 1,
                 [&](int64_t) { return llvm::to_vector(at); });
  });
}

void ScatterEmitter::emit() {
  Value chunks = size(plan.getChunks());
  chunk = b.mul(b.rem(frame.block, chunks), b.index(plan.getChunk()));
  Value column = b.mul(b.div(frame.block, chunks), b.index(plan.columns));
  Value side = b.index(plan.columnsAreAdjacent ? plan.columns : plan.rows);
  Value minor = b.rem(frame.thread, side), major = b.div(frame.thread, side);
  row = plan.columnsAreAdjacent ? major : minor;
  column = b.add(column, plan.columnsAreAdjacent ? minor : major);
  b.when(b.less(column, size(plan.count(plan.own))),
         [&] { emitColumn(column); });
}

LaunchPlan planScatter(ScatterOpInterface op, ArrayRef<SymbolAttr> symbols) {
  return {ScatterPlan(op, symbols).getBlocks(), kThreads};
}

void emitScatter(KernelBuilder &b, DeviceFrame &frame, ScatterOpInterface op) {
  ScatterEmitter(b, frame, op).emit();
}

} // namespace tcc::cuda

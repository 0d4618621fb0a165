//===- LoopLowering.cpp - Loops with carried and scanned values -----------===//
//
// A carried value has two halves of one buffer: iteration i reads half i mod 2
// and writes the other one, so that no value is overwritten while it is read.
// After the loop the slot holds the number of iterations, so that the same
// expression finds the final value.
//
//===----------------------------------------------------------------------===//
#include "compiler/lowering/EntryLowering.h"
#include "dialects/graph/NodeNames.h"
#include "runtime/base/Alignment.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc::lowering {

struct EntryLowering::LoopState {
  AffineExpr slot;
  /// Where the body writes what it yields: the condition, the carried values,
  /// the slices. Null: nothing is to be written.
  SmallVector<Value> yields;
  /// What the loop's results are afterwards.
  SmallVector<Value> results;
  Value condition;
};

/// True if `value` is known to be true.
static bool isTrue(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
         elements.getElementType().isInteger(1) &&
         elements.getSplatValue<bool>();
}

std::optional<AffineMap> EntryLowering::lowerTrips(graph::LoopOp op) {
  Value trips = op.getTrips();
  if (!trips)
    return std::nullopt;
  MLIRContext *context = op.getContext();
  DenseElementsAttr elements;
  if (matchPattern(trips, m_Constant(&elements))) {
    int64_t count = (*elements.value_begin<APInt>()).getSExtValue();
    return AffineMap::get(0, 0, getAffineConstantExpr(count, context));
  }
  int64_t slot = slotCount++;
  builder.create<ReadSizeOp>(op.getLoc(), slot, getBuffer(trips),
                             getElementTypeOrSelf(trips), INT64_MIN, INT64_MAX,
                             getNodeName(op), "number of iterations",
                             /*lane=*/0);
  return AffineMap::get(0, slot + 1, getAffineSymbolExpr(slot, context));
}

/// The buffer that `exec.loop` reads, or null where the loop always goes on.
Value EntryLowering::lowerCondition(graph::LoopOp op, LoopState &state) {
  Value initial = op.getCondition();
  Value next = op.getBody().front().getTerminator()->getOperand(0);
  state.yields.push_back(nullptr);
  if (isTrue(next))
    return initial && !isTrue(initial) ? getBuffer(initial) : nullptr;
  Type type = next.getType();
  Value condition =
      createBuffer(op.getLoc(), StorageClass::scratch, std::nullopt, type);
  Value start;
  if (initial) {
    start = getBuffer(initial);
  } else {
    auto scalar = cast<RankedTensorType>(type);
    int64_t index = tables.getConstant(DenseElementsAttr::get(scalar, true));
    start = getConstantBuffer(op.getLoc(), index, type);
  }
  createCopy(op.getLoc(), start, condition, type);
  state.yields.back() = condition;
  return condition;
}

void EntryLowering::lowerCarried(graph::LoopOp op, unsigned index,
                                 LoopState &state) {
  Block &body = op.getBody().front();
  Value argument = body.getArgument(index + 1);
  Value init = getBuffer(op.getInits()[index]);
  Value next = body.getTerminator()->getOperand(index + 1);
  if (getSource(next) == argument) {
    buffers[argument] = init;
    state.yields.push_back(nullptr);
    state.results.push_back(init);
    return;
  }
  Location loc = op.getLoc();
  Type type = argument.getType(), first = op.getInits()[index].getType(),
       later = next.getType();
  // What is yielded is written before its size is found too large.
  int64_t half = alignTensor(
      std::max({getByteBound(type), getByteBound(first), getByteBound(later)}));
  Value both = createScratch(loc, 2 * half);
  AffineExpr zero = builder.getAffineConstantExpr(0);
  createCopy(loc, init, createView(loc, both, zero, first), first);
  Value current = createView(loc, both, state.slot % 2 * half, type);
  buffers[argument] = current;
  state.yields.push_back(
      createView(loc, both, (state.slot + 1) % 2 * half, later));
  state.results.push_back(current);
}

void EntryLowering::lowerScanned(graph::LoopOp op, unsigned index,
                                 LoopState &state,
                                 const Destinations &destinations) {
  Value result = op.getResult(index);
  Type slice =
      op.getBody().front().getTerminator()->getOperand(index + 1).getType();
  Value buffer = getDestination(result, destinations);
  state.yields.push_back(
      createView(op.getLoc(), buffer, state.slot * getByteSize(slice), slice));
  state.results.push_back(buffer);
}

/// Most iterations that the scanned results have room for.
static int64_t getMaxTrips(graph::LoopOp op,
                           ArrayRef<graph::SymbolAttr> symbols) {
  int64_t limit = INT64_MAX;
  for (Value scanned : op.getResults().drop_front(op.getInits().size()))
    limit = std::min(
        limit, graph::getRange(graph::getExtent(scanned, 0), symbols).max);
  return limit;
}

LogicalResult EntryLowering::lowerLoop(graph::LoopOp op,
                                       const Destinations &destinations) {
  Block &body = op.getBody().front();
  if (!body.getArgument(0).use_empty())
    return op.emitOpError("expected the iteration number among the carried "
                          "values");
  std::optional<AffineMap> trips = lowerTrips(op);
  int64_t slot = slotCount++;
  LoopState state;
  state.slot = builder.getAffineSymbolExpr(slot);
  state.condition = lowerCondition(op, state);
  unsigned carried = op.getInits().size();
  for (unsigned i = 0; i < carried; ++i)
    lowerCarried(op, i, state);
  for (unsigned i = carried; i < op.getNumResults(); ++i)
    lowerScanned(op, i, state, destinations);
  setSizes(op, op.getSizesBefore());

  auto loop = builder.create<LoopOp>(
      op.getLoc(), builder.getI64IntegerAttr(slot),
      trips ? AffineMapAttr::get(*trips) : AffineMapAttr(), state.condition,
      builder.getI64IntegerAttr(getMaxTrips(op, symbols)),
      builder.getStringAttr(getNodeName(op)), builder.getI64IntegerAttr(0));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&loop.getBody().emplaceBlock());
    if (failed(lowerBlock(body, state.yields)))
      return failure();
    setSizes(op, op.getSizesOfIteration());
  }
  for (auto [result, buffer] : llvm::zip(op.getResults(), state.results))
    buffers[result] = buffer;
  if (std::optional<AffineMap> count = op.getCount())
    setSizes(
        op, {{graph::getUsedSymbols(count->getResult(0)).front(), state.slot}});
  return success();
}

} // namespace tcc::lowering

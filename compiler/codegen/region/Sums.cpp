#include "compiler/codegen/region/Sums.h"

#include "compiler/passes/graph/fusion/Region.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

Type getSumType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(context, std::max(32u, integer.getWidth()));
  return elementType.isF64() ? elementType : Float32Type::get(context);
}

Type getSignless(Type elementType) {
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(integer.getContext(), integer.getWidth());
  return elementType;
}

KernelBuilder makeKernelBuilder(OpBuilder &b, Location loc) {
  KernelBuilder builder(loc, b.getContext());
  builder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
  return builder;
}

SmallVector<Value> alignBatch(KernelBuilder &b, Value operand,
                              const Extents &batch, ValueRange at) {
  SmallVector<Value> indices(at.take_back(batch.size()));
  Extents extents = getExtents(operand);
  for (auto [axis, index] : llvm::enumerate(indices)) {
    if (isEqual(extents[axis], batch[axis]))
      continue;
    int64_t part = *getConstant(extents[axis]);
    index = part == 1 ? b.index(0) : b.rem(index, b.index(part));
  }
  return indices;
}

void defineSum(KernelBuilder &b, RegionFrame &frame, Value sum,
               ValueRange indices, unsigned result) {
  Value tensor = getAnchor(frame.region)->getResult(result);
  Type elementType = getElementTypeOrSelf(tensor);
  Value element = frame.elements.round(b, frame.loc, sum, elementType);
  if (auto integer = dyn_cast<IntegerType>(elementType))
    if (integer.getWidth() < sum.getType().getIntOrFloatBitWidth())
      element = b.create<arith::TruncIOp>(getSignless(integer), sum);
  frame.elements.define(tensor, indices, element);
}

static AffineMap getStoreMap(RegionFrame &frame, Value yielded) {
  return fusion::getStoreMap(yielded.getDefiningOp(), frame.region.getKind());
}

Value getStored(RegionFrame &frame, Value yielded) {
  if (!getStoreMap(frame, yielded))
    return yielded;
  return fusion::getSource(yielded.getDefiningOp()->getOperand(0));
}

/// Indices in a tensor of extents `from` as such in one of extents `to`, whose
/// last axis is the same.
static SmallVector<Value> regroupRows(KernelBuilder &b, RegionFrame &frame,
                                      Extents from, Extents to,
                                      SmallVector<Value> at) {
  if (llvm::equal(from, to, isEqual))
    return at;
  auto getSizes = [&](Extents extents) {
    extents.pop_back();
    return frame.sizes(b, extents);
  };
  Value last = at.pop_back_val(), row = b.index(0);
  for (auto [size, index] : llvm::zip_equal(getSizes(from), at))
    row = b.add(b.mul(row, size), index);
  at = b.delinearize(row, getSizes(to));
  at.push_back(last);
  return at;
}

Value findPlace(KernelBuilder &b, RegionFrame &frame, Value yielded,
                ValueRange at) {
  AffineMap map = getStoreMap(frame, yielded);
  if (!map)
    return frame.elements.position(b, frame.loc, yielded, at);
  Value moved = yielded.getDefiningOp()->getOperand(0);
  auto indices = regroupRows(b, frame, getExtents(getStored(frame, yielded)),
                             getExtents(moved), llvm::to_vector(at));
  indices = applyPermutationMap(inversePermutation(map), ArrayRef(indices));
  return frame.elements.position(b, frame.loc, yielded, indices);
}

void storeResult(KernelBuilder &b, RegionFrame &frame, unsigned result,
                 ValueRange indices) {
  Value yielded = frame.getYields()[result];
  Value stored = getStored(frame, yielded);
  Value element = frame.elements.element(b, frame.loc, stored, indices);
  frame.results[result].store(b, frame.loc, element,
                              findPlace(b, frame, yielded, indices));
}

static bool repeatsOverAxes(BroadcastOp op, int64_t first, int64_t end) {
  Extents from = getExtents(op.getX());
  int64_t added = getExtents(op.getResult()).size() - from.size();
  for (int64_t axis = std::max(first, added); axis < end; ++axis)
    if (getConstant(from[axis - added]) != 1)
      return false;
  return true;
}

bool readsPositionsOnly(FusedOp region, int64_t first, int64_t end) {
  Operation *kernel = getAnchor(region);
  llvm::SetVector<Value> needed;
  for (Value yielded : region.getBody().front().getTerminator()->getOperands())
    needed.insert(yielded);
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i].getDefiningOp();
    if (!op || op == kernel || isa<ConstantOp>(op))
      continue;
    if (isa<PointwiseOpInterface>(op)) {
      needed.insert(op->operand_begin(), op->operand_end());
      continue;
    }
    auto broadcast = dyn_cast<BroadcastOp>(op);
    if (!broadcast || !repeatsOverAxes(broadcast, first, end))
      return false;
  }
  return true;
}

} // namespace tcc::codegen

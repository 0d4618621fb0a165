//===- Permute.cpp - Ops on operands with their axes in another order -----===//

#include "dialects/graph/GraphOps.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

/// Where each axis goes.
static SmallVector<int64_t> invert(ArrayRef<int64_t> permutation) {
  return invertPermutationVector(permutation);
}

static RankedTensorType permuteType(Value tensor,
                                    ArrayRef<int64_t> permutation) {
  Extents extents = getExtents(tensor);
  return makeTensorType(applyPermutation(ArrayRef(extents), permutation),
                        getElementTypeOrSelf(tensor));
}

/// `op` on `operands`; its attributes are still those of `op`.
template <typename Op>
static Op cloneFor(OpBuilder &builder, Op op, ValueRange operands,
                   ArrayRef<int64_t> resultPermutation) {
  auto clone = cast<Op>(builder.clone(*op));
  clone->setOperands(operands);
  clone->getResult(0).setType(permuteType(op->getResult(0), resultPermutation));
  return clone;
}

static PermutedResult makeResult(Operation *op, ArrayRef<int64_t> permutation) {
  return {op->getResult(0), llvm::to_vector(permutation)};
}

/// Permutes an op that names an axis which the result has too.
template <typename Op>
static PermutedResult permuteAxis(Op op, OpBuilder &builder,
                                  ValueRange operands,
                                  ArrayRef<int64_t> permutation) {
  auto clone = cloneFor(builder, op, operands, permutation);
  clone.setAxis(invert(permutation)[op.getAxis()]);
  return makeResult(clone, permutation);
}

PermutedResult BroadcastOp::permute(OpBuilder &builder, ValueRange operands,
                                    ArrayRef<int64_t> permutation) {
  if (getX().getType().getRank() != getType().getRank())
    return {};
  return makeResult(cloneFor(builder, *this, operands, permutation),
                    permutation);
}

PermutedResult SliceOp::permute(OpBuilder &builder, ValueRange operands,
                                ArrayRef<int64_t> permutation) {
  auto clone = cloneFor(builder, *this, operands, permutation);
  AffineMap starts = getStarts();
  auto results = applyPermutation(starts.getResults(), permutation);
  clone.setStarts(AffineMap::get(starts.getNumDims(), starts.getNumSymbols(),
                                 results, getContext()));
  clone.setSteps(applyPermutation(getSteps(), permutation));
  return makeResult(clone, permutation);
}

PermutedResult ConcatOp::permute(OpBuilder &builder, ValueRange operands,
                                 ArrayRef<int64_t> permutation) {
  return permuteAxis(*this, builder, operands, permutation);
}

PermutedResult PadOp::permute(OpBuilder &builder, ValueRange operands,
                              ArrayRef<int64_t> permutation) {
  auto clone = cloneFor(builder, *this, operands, permutation);
  clone.setLow(applyPermutation(getLow(), permutation));
  clone.setHigh(applyPermutation(getHigh(), permutation));
  clone.setInterior(applyPermutation(getInterior(), permutation));
  return makeResult(clone, permutation);
}

PermutedResult GatherOp::permute(OpBuilder &builder, ValueRange operands,
                                 ArrayRef<int64_t> permutation) {
  // Indices of one axis leave the others where they are.
  if (cast<RankedTensorType>(getIndices().getType()).getRank() != 1)
    return {};
  return permuteAxis(*this, builder, operands, permutation);
}

PermutedResult SoftmaxOp::permute(OpBuilder &builder, ValueRange operands,
                                  ArrayRef<int64_t> permutation) {
  return permuteAxis(*this, builder, operands, permutation);
}

PermutedResult LogSoftmaxOp::permute(OpBuilder &builder, ValueRange operands,
                                     ArrayRef<int64_t> permutation) {
  return permuteAxis(*this, builder, operands, permutation);
}

PermutedResult ReduceOp::permute(OpBuilder &builder, ValueRange operands,
                                 ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> places = invert(permutation), axes;
  // The place in the result of each axis that stays.
  SmallVector<int64_t> kept(permutation.size(), -1), resultPermutation;
  int64_t count = 0;
  for (size_t axis = 0; axis < permutation.size(); ++axis)
    if (llvm::is_contained(getAxes(), int64_t(axis)))
      axes.push_back(places[axis]);
    else
      kept[axis] = count++;
  for (int64_t axis : permutation)
    if (kept[axis] >= 0)
      resultPermutation.push_back(kept[axis]);
  llvm::sort(axes);
  auto clone = cloneFor(builder, *this, operands, resultPermutation);
  clone.setAxes(axes);
  return makeResult(clone, resultPermutation);
}

PermutedResult PoolOp::permute(OpBuilder &builder, ValueRange operands,
                               ArrayRef<int64_t> permutation) {
  if (getChannelsLast() ||
      ArrayRef(permutation) !=
          ArrayRef(getChannelsLastPermutation(getX().getType().getRank())))
    return {};
  auto clone = cloneFor(builder, *this, operands, permutation);
  clone.setChannelsLast(true);
  return makeResult(clone, permutation);
}

/// Axes that stay neighbours are split and merged among themselves.
PermutedResult ReshapeOp::permute(OpBuilder &builder, ValueRange operands,
                                  ArrayRef<int64_t> permutation) {
  Extents from = getExtents(getX()), to = getExtents(getResult());
  SmallVector<int64_t> places = invert(permutation);
  // The axes of the result that each group of neighbours becomes, by the place
  // of its first axis.
  std::map<int64_t, SmallVector<int64_t>> groups;
  size_t next = 0;
  for (size_t first = 0, end; first < from.size(); first = end) {
    AffineExpr count = from[first];
    for (end = first + 1;
         end < from.size() && places[end] == places[end - 1] + 1; ++end)
      count = count * from[end];
    AffineExpr found = getAffineConstantExpr(1, getContext());
    SmallVector<int64_t> &axes = groups[places[first]];
    // A unit axis becomes a unit axis, or none.
    while (next < to.size() && (!isEqual(found, count) ||
                                (axes.empty() && isEqual(to[next], count)))) {
      found = found * to[next];
      axes.push_back(next++);
    }
    if (end == from.size())
      for (; next < to.size(); ++next) {
        found = found * to[next];
        axes.push_back(next);
      }
    if (!isEqual(found, count))
      return {};
  }
  SmallVector<int64_t> resultPermutation;
  for (const auto &[place, axes] : groups)
    llvm::append_range(resultPermutation, axes);
  return makeResult(cloneFor(builder, *this, operands, resultPermutation),
                    resultPermutation);
}

SmallVector<int64_t> tcc::graph::getChannelsLastPermutation(int64_t rank) {
  SmallVector<int64_t> permutation = {0};
  for (int64_t axis = 2; axis < rank; ++axis)
    permutation.push_back(axis);
  permutation.push_back(1);
  return permutation;
}

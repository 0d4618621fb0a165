#include "compiler/codegen/cpu/kernels/MergedAxis.h"

#include "dialects/graph/Strides.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// The extents if all are constants.
static std::optional<SmallVector<int64_t>>
getConstants(ArrayRef<AffineExpr> extents) {
  SmallVector<int64_t> constants;
  for (AffineExpr extent : extents) {
    std::optional<int64_t> constant = getConstant(extent);
    if (!constant)
      return std::nullopt;
    constants.push_back(*constant);
  }
  return constants;
}

/// Whether neighbours along the last axis lie farther apart than those along
/// another.
static bool isLastFarther(ArrayRef<int64_t> strides,
                          ArrayRef<int64_t> extents) {
  for (size_t axis = 0; axis + 1 < extents.size(); ++axis)
    if (extents[axis] > 1 && strides[axis] != 0 &&
        std::abs(strides[axis]) < std::abs(strides.back()))
      return true;
  return false;
}

/// The stride of all axes but the last as one; 0 if they are not one.
static int64_t joinStrides(ArrayRef<int64_t> strides,
                           ArrayRef<int64_t> extents) {
  size_t last = extents.size() - 2;
  for (size_t axis = 0; axis < last; ++axis)
    if (strides[axis] != strides[axis + 1] * extents[axis + 1])
      return 0;
  return strides[last];
}

static const AxisGroup &findGroup(ArrayRef<AxisGroup> groups, size_t axis) {
  return *llvm::find_if(groups, [&](const AxisGroup &group) {
    return group.toBegin <= axis && axis < group.toEnd;
  });
}

std::optional<MergedAxis> findMergedAxis(Value tensor, int64_t axis,
                                         int64_t unit) {
  auto reshape = tensor.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return std::nullopt;
  Extents from = getExtents(reshape.getX()), to = getExtents(tensor);
  auto fromExtents = getConstants(from), toExtents = getConstants(to);
  if (!fromExtents || !toExtents)
    return std::nullopt;
  StridedInput source = traceInput(
      reshape.getX(), [](Value v) { return isa<BlockArgument>(v); },
      /*throughCasts=*/true);
  if (!source.input)
    return std::nullopt;
  SmallVector<AxisGroup> groups = groupAxes(from, to);
  const AxisGroup &group = findGroup(groups, axis);
  size_t first = group.fromBegin, count = group.fromEnd - first;
  auto strides = llvm::map_to_vector(
      ArrayRef(source.strides).slice(first, count),
      [](AffineExpr stride) { return getConstant(stride).value_or(0); });
  auto extents = ArrayRef(*fromExtents).slice(first, count);
  if (count < 2 || !isLastFarther(strides, extents))
    return std::nullopt;
  // The group is the axis and its units alone.
  int64_t joined = 1;
  for (size_t i = first; i < group.fromEnd; ++i)
    joined *= (*fromExtents)[i];
  int64_t last = (*fromExtents)[group.fromEnd - 1];
  if (joined != (*toExtents)[axis] * unit || last % unit != 0)
    return std::nullopt;
  return MergedAxis{reshape,
                    axis,
                    unit,
                    last / unit,
                    joined / last,
                    strides,
                    joinStrides(strides, extents)};
}

SmallVector<Value> MergedAxis::getSource(KernelBuilder &b, ValueRange at,
                                         Value number, Value place,
                                         Value u) const {
  ReshapeOp op = reshape;
  Extents from = getExtents(op.getX()), to = getExtents(op.getResult());
  auto fromExtents = *getConstants(from), toExtents = *getConstants(to);
  auto split = [&](Value position, size_t begin, size_t end) {
    SmallVector<Value> sizes;
    for (size_t i = begin; i < end; ++i)
      sizes.push_back(b.index(fromExtents[i]));
    return b.delinearize(position, sizes);
  };
  SmallVector<Value> source;
  for (const AxisGroup &group : groupAxes(from, to)) {
    bool isMerged = group.toBegin <= size_t(axis) && size_t(axis) < group.toEnd;
    if (isMerged) {
      source.append(split(number, group.fromBegin, group.fromEnd - 1));
      source.push_back(b.add(b.mul(place, b.index(unit)), u));
      continue;
    }
    Value position = b.index(0);
    for (size_t i = group.toBegin; i < group.toEnd; ++i)
      position = b.add(b.mul(position, b.index(toExtents[i])), at[i]);
    source.append(split(position, group.fromBegin, group.fromEnd));
  }
  return source;
}

} // namespace tcc::cpu

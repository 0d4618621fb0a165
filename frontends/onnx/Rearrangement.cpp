//===- Rearrangement.cpp - Movement that is more than one op --------------===//

#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Batch, channels, height, width; and a block size that fits. nullopt after
/// failing.
static std::optional<SmallVector<int64_t>> readBlocks(Node &node, Value x,
                                                      int64_t &block) {
  block = node.intAttr("blocksize", 0);
  if (!x || node.hasFailed())
    return std::nullopt;
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getRank() != 4 || block < 1 || block > kMaxContent) {
    node.fail("an input of rank 4 and a positive blocksize are expected");
    return std::nullopt;
  }
  if (!type.hasStaticShape()) {
    node.unsupported("a dynamic dimension");
    return std::nullopt;
  }
  return SmallVector<int64_t>(type.getShape());
}

static Value reshapeTo(Node &node, Value x, ArrayRef<int64_t> shape) {
  graph::Extents extents;
  for (int64_t extent : shape)
    extents.push_back(node.getSizes().constant(extent));
  return node.reshape(x, extents);
}

static void importDepthToSpace(Node &node) {
  Value x = node.input(0);
  int64_t block;
  auto shape = readBlocks(node, x, block);
  if (!shape)
    return;
  int64_t n = (*shape)[0], c = (*shape)[1], h = (*shape)[2], w = (*shape)[3];
  std::string mode = node.stringAttr("mode", "DCR");
  if (c % (block * block) != 0 || (mode != "DCR" && mode != "CRD"))
    return (void)node.fail("blocksize or mode do not fit the channels");
  int64_t depth = c / (block * block);
  Value split = mode == "DCR"
                    ? reshapeTo(node, x, {n, block, block, depth, h, w})
                    : reshapeTo(node, x, {n, depth, block, block, h, w});
  Value moved = mode == "DCR" ? node.transpose(split, {0, 3, 4, 1, 5, 2})
                              : node.transpose(split, {0, 1, 4, 2, 5, 3});
  node.setResult(0, reshapeTo(node, moved, {n, depth, h * block, w * block}));
}

static void importSpaceToDepth(Node &node) {
  Value x = node.input(0);
  int64_t block;
  auto shape = readBlocks(node, x, block);
  if (!shape)
    return;
  int64_t n = (*shape)[0], c = (*shape)[1], h = (*shape)[2], w = (*shape)[3];
  std::string mode = node.stringAttr("mode", "DCR");
  if (h % block != 0 || w % block != 0 || (mode != "DCR" && mode != "CRD"))
    return (void)node.fail("blocksize or mode do not fit the image");
  Value split = reshapeTo(node, x, {n, c, h / block, block, w / block, block});
  Value moved = mode == "DCR" ? node.transpose(split, {0, 3, 5, 1, 2, 4})
                              : node.transpose(split, {0, 1, 3, 5, 2, 4});
  node.setResult(
      0, reshapeTo(node, moved, {n, c * block * block, h / block, w / block}));
}

/// Keeps column - row >= k (upper) or <= k (lower) of each matrix.
static void importTrilu(Node &node) {
  Value x = node.input(0);
  int64_t rank = node.rank(x);
  if (!x || rank < 2)
    return (void)node.fail("an input of rank 2 or more is expected");
  Type index = IntegerType::get(node.getContext(), 64);
  Value k = node.hasInput(1) ? node.reshape(node.cast(node.input(1), index), {})
                             : node.constant(0, index);
  graph::Extents matrix(ArrayRef(node.extents(x)).take_back(2));
  Value bound = node.add(node.iota(matrix, 0, index), k);
  auto kind = node.intAttr("upper", 1) != 0 ? graph::CompareKind::ge
                                            : graph::CompareKind::le;
  Value isKept = node.compare(kind, node.iota(matrix, 1, index), bound);
  node.setResult(0, node.select(isKept, x, node.constantLike(0, x)));
}

/// The same as importCenterCropPad to extents that only a run knows.
static void centerAtRunTime(Node &node, Value x, ArrayRef<int64_t> axes) {
  SmallVector<SizeElement> target = node.elements(node.input(1)), shape;
  if (!node.hasFailed() && target.size() != axes.size())
    node.fail("one extent an axis is expected");
  if (node.hasFailed())
    return;
  for (AffineExpr extent : node.extents(x))
    shape.push_back({extent, nullptr});
  SmallVector<Value> low(shape.size(), index(node, 0));
  for (auto [axis, wanted] : llvm::zip_equal(axes, target)) {
    Value missing = node.sub(node.scalar(wanted), node.scalar(shape[axis]));
    low[axis] = node.div(missing, index(node, 2)); // to zero
    shape[axis] = wanted;
  }
  node.setResult(0,
                 padToAtRunTime(node, x, shape, low, node.constantLike(0, x)));
}

/// Crops or pads axes at both ends to the extents asked for.
static void importCenterCropPad(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  int64_t rank = node.rank(x);
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    axes.push_back(axis);
  if (auto given = node.intsAttr("axes"))
    axes = node.axes(*given, rank);
  if (node.hasFailed())
    return;
  if (node.isComputed(1))
    return centerAtRunTime(node, x, axes);
  auto target = node.requireInts(1, "a shape");
  if (target && axes.size() != target->size())
    node.fail("one extent an axis is expected");
  if (node.hasFailed())
    return;
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (auto [axis, wanted] : llvm::zip(axes, *target)) {
    auto extent = graph::getConstant(graph::getExtent(x, axis));
    if (!extent)
      return (void)node.unsupported("a dynamic dimension");
    if (wanted < 0 || wanted > kMaxElements)
      return (void)node.fail("the shape is out of range");
    int64_t missing = wanted - *extent;
    low[axis] = missing < 0 ? -(-missing / 2) : missing / 2;
    high[axis] = missing - low[axis];
  }
  node.setResult(0, node.pad(x, node.constantLike(0, x), low, high));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"CenterCropPad", 18, last, importCenterCropPad},
    {"DepthToSpace", 1, last, importDepthToSpace},
    {"SpaceToDepth", 1, last, importSpaceToDepth},
    {"Trilu", 14, last, importTrilu},
};

ArrayRef<OpRow> getRearrangementOps() { return rows; }

} // namespace tcc::onnx_import

#include "frontends/onnx/Folding.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

// --- Gather ------------------------------------------------------------------

/// Elements of a known vector.
static bool foldGather(Node &node, int64_t axis) {
  Tensor *source = node.tensor(0);
  if (axis != 0 || source->type.getRank() != 1 ||
      (isa<FloatType>(source->type.getElementType()) && !source->content))
    return false;
  auto content = node.knownContent(0), indices = node.knownContent(1);
  if (!content || !indices || !node.type(1).hasStaticShape())
    return false;
  int64_t count = content->size();
  Content result;
  for (AffineExpr element : *indices) {
    auto index = graph::getConstant(element);
    if (!index)
      return false;
    if (*index < -count || *index >= count) {
      node.fail("index " + llvm::Twine(*index) + " is out of range for " +
                llvm::Twine(count) + " elements");
      return true;
    }
    result.push_back((*content)[*index < 0 ? *index + count : *index]);
  }
  node.setContent(0,
                  RankedTensorType::get(node.type(1).getShape(),
                                        source->type.getElementType()),
                  std::move(result));
  return true;
}

/// A single known index is a slice.
static bool importAsSlice(Node &node, int64_t axis) {
  auto indices = node.knownContent(1);
  auto extent = graph::getConstant(node.shape(0)[axis]);
  if (!indices || indices->size() != 1 || !extent)
    return false;
  auto index = graph::getConstant(indices->front());
  if (!index || *index < -*extent || *index >= *extent)
    return false;
  int64_t start = *index < 0 ? *index + *extent : *index;
  Value part = node.slice(node.input(0), axis, start, 1);
  if (node.inputRank(1) == 0) {
    node.setResult(0, node.squeeze(part, {axis}));
    return true;
  }
  SmallVector<int64_t> extra;
  for (int64_t i = 1; i < node.inputRank(1); ++i)
    extra.push_back(axis);
  graph::Extents extents = part ? node.extents(part) : graph::Extents();
  for (int64_t i : extra)
    extents.insert(extents.begin() + i, node.getSizes().constant(1));
  node.setResult(0, node.reshape(part, extents));
  return true;
}

static void importGather(Node &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), node.inputRank(0));
  if (!node.tensor(1) || node.hasFailed())
    return;
  if (!foldGather(node, axis) && !importAsSlice(node, axis))
    node.setResult(0, node.gather(node.input(0), node.input(1), axis));
}

static void importGatherElements(Node &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), node.inputRank(0));
  Value x = node.input(0);
  if (node.hasFailed())
    return;
  Value indices =
      node.guardIndices(x, node.input(1), {axis}, /*areTuples=*/false);
  node.setResult(0, node.create<graph::GatherElementsOp>(
                        {x, indices}, {node.attr("axis", axis)}));
}

static void importGatherNd(Node &node) {
  int64_t batchDims = node.intAttr("batch_dims", 0);
  Value x = node.input(0), indices = node.input(1);
  auto count = node.inputRank(1) > 0 ? graph::getConstant(node.shape(1).back())
                                     : std::nullopt;
  if (count && *count > 0 && batchDims >= 0 &&
      batchDims + *count <= node.rank(x))
    indices = node.guardIndices(
        x, indices,
        llvm::to_vector(llvm::seq<int64_t>(batchDims, batchDims + *count)),
        /*areTuples=*/true);
  node.setResult(0, node.create<graph::GatherNdOp>(
                        {x, indices}, {node.attr("batch_dims", batchDims)}));
}

// --- Scatter -----------------------------------------------------------------

static NamedAttribute readScatterKind(Node &node) {
  auto kind = graph::symbolizeScatterKind(node.stringAttr("reduction", "none"));
  if (!kind)
    node.fail("reduction is unknown");
  return node.attr(
      "kind", graph::ScatterKindAttr::get(
                  node.getContext(), kind.value_or(graph::ScatterKind::none)));
}

static void importScatterElements(Node &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), node.inputRank(0));
  node.setResult(0, node.create<graph::ScatterElementsOp>(
                        {node.input(0), node.input(1), node.input(2)},
                        {node.attr("axis", axis), readScatterKind(node)}));
}

static void importScatterNd(Node &node) {
  node.setResult(0, node.create<graph::ScatterNdOp>(
                        {node.input(0), node.input(1), node.input(2)},
                        {readScatterKind(node)}));
}

// --- Choice of elements ------------------------------------------------------

/// A scalar that no element of x comes after in the order of a TopK node.
static Value makeLast(Node &node, Value x, bool isSmallest) {
  Type type = node.elementType(x);
  if (isa_and_present<FloatType>(type))
    return node.constant(isSmallest ? double(NAN) : -INFINITY, type);
  if (!type)
    return nullptr;
  unsigned width = type.getIntOrFloatBitWidth();
  APSInt last = isSmallest
                    ? APSInt::getMaxValue(width, type.isUnsignedInteger())
                    : APSInt::getMinValue(width, type.isUnsignedInteger());
  auto scalar = RankedTensorType::get({}, type);
  auto dense = DenseElementsAttr::get(scalar, ArrayRef<APInt>(last));
  return node.create<graph::ConstantOp>({}, {node.attr("value", dense)},
                                        scalar);
}

/// x with `count` elements more along the axis that are never chosen before its
/// own ones, of which at least `asked` must be there.
static Value padToChoose(Node &node, Value x, int64_t axis, AffineExpr asked,
                         int64_t count, bool isSmallest) {
  demand(node,
         node.compare(graph::CompareKind::le, node.size(asked),
                      node.size(graph::getExtent(x, axis))),
         "k is larger than the extent of axis " + llvm::Twine(axis));
  SmallVector<int64_t> none(node.rank(x), 0), behind(none);
  behind[axis] = count;
  return node.pad(x, makeLast(node, x, isSmallest), none, behind);
}

static void importTopK(Node &node) {
  Value x = node.input(0);
  const Sizes &sizes = node.getSizes();
  auto k = node.getVersion() < 10
               ? SizeElement{sizes.constant(node.intAttr("k", 0)), nullptr}
               : node.sizeInput(1, "k");
  int64_t axis = node.axis(node.intAttr("axis", -1), node.rank(x));
  if (!k || node.hasFailed())
    return;
  bool isSmallest = node.intAttr("largest", 1) == 0;
  AffineExpr extent = graph::getExtent(x, axis);
  auto known = k->value ? std::nullopt : graph::getConstant(k->known);
  bool isFixed = known && !graph::isComputed(extent, sizes.getSymbols());
  // As many are sorted as a run may ask for.
  int64_t count =
      known ? *known : node.findMost(*k, sizes.getRange(extent).max);
  if (count > kUsualElements)
    return (void)node.unsupported("a k of more than 2^22");
  AffineExpr asked = known ? sizes.constant(count)
                           : node.readSize(*k, node.getResultName(), count);
  if (!isFixed &&
      sizes.compare(SizeCompare::le, sizes.constant(count), extent) != true)
    x = padToChoose(node, x, axis, asked, count, isSmallest);
  SmallVector<NamedAttribute> attributes = {node.attr("k", count),
                                            node.attr("axis", axis)};
  if (isSmallest)
    attributes.push_back(node.flag("smallest"));
  Operation *op =
      x ? node.createOp(graph::TopKOp::getOperationName(), x, attributes)
        : nullptr;
  if (!op)
    return;
  for (int64_t i : {0, 1})
    node.setResult(
        i, node.slice(op->getResult(i), axis, sizes.constant(0), asked));
}

/// on where the index along a new axis is the input's, else off.
static void importOneHot(Node &node) {
  Value indices = node.input(0);
  auto depth = node.sizeInput(1, "depth");
  Value values = node.input(2);
  int64_t axis = node.axis(node.intAttr("axis", -1), node.rank(indices) + 1);
  if (!depth || node.hasFailed())
    return;
  auto known = depth->value ? std::nullopt : graph::getConstant(depth->known);
  if ((known && (*known < 1 || *known > kMaxElements)) ||
      node.rank(values) != 1 ||
      graph::getConstant(graph::getExtent(values, 0)) != 2)
    return (void)node.fail("depth or values are malformed");
  Type index = IntegerType::get(node.getContext(), 64);
  Value wide = node.cast(indices, index);
  Value count = node.scalar(*depth);
  Value isNegative =
      node.compare(graph::CompareKind::lt, wide, node.constant(0, index));
  Value wrapped = node.select(isNegative, node.add(wide, count), wide);
  Value expanded = node.unsqueeze(wrapped, {axis});
  if (!expanded)
    return;
  int64_t each = node.getSizes().getMaxElements(node.extents(indices));
  AffineExpr extent = node.readSize(
      *depth, node.getResultName(),
      std::min(kUsualExtent, kUsualElements / std::max<int64_t>(each, 1)));
  graph::Extents extents = node.withExtent(expanded, axis, extent);
  Value isHot = node.compare(graph::CompareKind::eq,
                             node.iota(extents, axis, index), expanded);
  Value off = node.reshape(node.slice(values, 0, 0, 1), {});
  Value on = node.reshape(node.slice(values, 0, 1, 1), {});
  node.setResult(0, node.select(isHot, on, off));
}

/// Turns the first lens[b] elements of each sequence round.
static void importReverseSequence(Node &node) {
  Value x = node.input(0), lengths = node.input(1);
  int64_t rank = node.rank(x);
  int64_t batchAxis = node.axis(node.intAttr("batch_axis", 1), rank);
  int64_t timeAxis = node.axis(node.intAttr("time_axis", 0), rank);
  if (node.hasFailed())
    return;
  if (batchAxis == timeAxis || node.rank(lengths) != 1)
    return (void)node.fail("axes or lengths are malformed");
  Type index = IntegerType::get(node.getContext(), 64);
  graph::Extents perBatch(rank, node.getSizes().constant(1));
  perBatch[batchAxis] = graph::getExtent(lengths, 0);
  Value length = node.reshape(node.cast(lengths, index), perBatch);
  Value time = node.iota(node.extents(x), timeAxis, index);
  Value turned = node.sub(node.sub(length, node.constant(1, index)), time);
  Value isInside = node.compare(graph::CompareKind::lt, time, length);
  node.setResult(0, node.create<graph::GatherElementsOp>(
                        {x, node.select(isInside, turned, time)},
                        {node.attr("axis", timeAxis)}));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Gather", 1, last, importGather},
    {"GatherElements", 11, last, importGatherElements},
    {"GatherND", 11, last, importGatherNd},
    {"OneHot", 9, last, importOneHot},
    {"ReverseSequence", 10, last, importReverseSequence},
    {"Scatter", 9, 10, importScatterElements},
    {"ScatterElements", 11, last, importScatterElements},
    {"ScatterND", 11, last, importScatterNd},
    {"TopK", 1, last, importTopK},
};

ArrayRef<OpRow> getIndexingOps() { return rows; }

} // namespace tcc::onnx_import

//===- Shapes.cpp - Shapes, slices and values made from nothing -----------===//

#include "frontends/onnx/Folding.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

static RankedTensorType getIndexVector(Node &node, int64_t count) {
  return RankedTensorType::get({count},
                               IntegerType::get(node.getContext(), 64));
}

static void importShape(Node &node) {
  graph::Extents extents = node.shape(0);
  int64_t rank = extents.size();
  auto clamp = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + rank : position, 0,
                               rank);
  };
  int64_t start = clamp(node.intAttr("start", 0));
  int64_t end = std::max(start, clamp(node.intAttr("end", rank)));
  if (node.hasFailed())
    return;
  Content part(ArrayRef(extents).slice(start, end - start));
  node.setContent(0, getIndexVector(node, end - start), part);
}

static void importSize(Node &node) {
  Size count = node.getSizes().product(node.shape(0));
  if (!count)
    return (void)node.fail("the number of elements is too large");
  auto scalar =
      RankedTensorType::get({}, IntegerType::get(node.getContext(), 64));
  node.setContent(0, scalar, {*count});
}

// --- Constants ---------------------------------------------------------------

template <typename T>
static void setNumbers(Node &node, ArrayRef<int64_t> shape, Type elementType,
                       ArrayRef<T> numbers) {
  node.setTensor(0,
                 node.getImporter().makeLiteral(node.getProto().output(0),
                                                shape, elementType, numbers));
}

static void importConstant(Node &node) {
  if (node.getNumOutputs() == 0)
    return;
  GraphImporter &importer = node.getImporter();
  std::string name = importer.qualify(node.getProto().output(0));
  if (const auto *value = node.findAttr("value"))
    return node.setTensor(0, importer.readLiteral(value->t(), name, &node));
  if (const auto *value = node.findAttr("sparse_value"))
    return node.setTensor(
        0, importer.readSparseLiteral(value->sparse_tensor(), name, &node));
  Type integer = IntegerType::get(node.getContext(), 64);
  Type real = Float32Type::get(node.getContext());
  if (const auto *value = node.findAttr("value_int"))
    return setNumbers<int64_t>(node, {}, integer, value->i());
  if (const auto *value = node.findAttr("value_float"))
    return setNumbers<float>(node, {}, real, value->f());
  if (const auto *value = node.findAttr("value_ints"))
    return setNumbers<int64_t>(
        node, value->ints_size(), integer,
        {value->ints().data(), size_t(value->ints_size())});
  if (const auto *value = node.findAttr("value_floats"))
    return setNumbers<float>(
        node, value->floats_size(), real,
        {value->floats().data(), size_t(value->floats_size())});
  node.unsupported("a constant that is not a tensor of numbers");
}

/// The scalar that fills ConstantOfShape: f32 zero unless given.
static Tensor *getFill(Node &node) {
  const auto *value = node.findAttr("value");
  if (value)
    return node.getImporter().readLiteral(value->t(), "fill", &node);
  Tensor zero;
  zero.type = RankedTensorType::get({}, Float32Type::get(node.getContext()));
  zero.content = Content{node.getSizes().constant(0)};
  return node.getImporter().getPool().make(std::move(zero));
}

static bool areExtents(Node &node, ArrayRef<AffineExpr> extents) {
  for (AffineExpr extent : extents) {
    graph::Range range = node.getSizes().getRange(extent);
    if (range.min < 0 || range.max > kMaxElements)
      return node.fail("a shape has an extent out of range") != nullptr;
  }
  return node.getSizes().getMaxElements(extents) <= kMaxElements ||
         node.fail("the result is too large") != nullptr;
}

static void importConstantOfShape(Node &node) {
  Tensor *fill = getFill(node);
  if (node.isComputed(0) && !fill->isInvalid)
    return fillAtRunTime(
        node, node.reshape(node.getImporter().materialize(*fill), {}));
  auto extents = node.requireContent(0, "a shape");
  if (!extents || fill->isInvalid || !areExtents(node, *extents))
    return;
  if (fill->type.getNumElements() != 1)
    return (void)node.fail("value must have one element");
  auto type = graph::makeTensorType(*extents, fill->type.getElementType());
  auto element = node.getImporter().getContent(*fill);
  if (element && type.hasStaticShape() && type.getNumElements() <= kMaxContent)
    return node.setContent(0, type,
                           Content(type.getNumElements(), element->front()));
  Value scalar = node.reshape(node.getImporter().materialize(*fill), {});
  node.setResult(0, node.broadcast(scalar, *extents));
}

/// ceil((limit - start) / delta), at least 0.
static Size countRange(const Sizes &sizes, AffineExpr start, AffineExpr limit,
                       int64_t delta) {
  if (delta == 0 || std::abs(delta) > kMaxElements)
    return std::nullopt;
  Size span = delta > 0 ? sizes.apply(SizeOp::sub, limit, start)
                        : sizes.apply(SizeOp::sub, start, limit);
  int64_t step = std::abs(delta);
  if (span)
    span = sizes.apply(SizeOp::max, *span, sizes.constant(0));
  if (span)
    span = sizes.apply(SizeOp::add, *span, sizes.constant(step - 1));
  return span ? sizes.apply(SizeOp::div, *span, sizes.constant(step)) : span;
}

/// start + i * delta, known for a range of integers.
static bool importIntegerRange(Node &node) {
  auto start = node.knownContent(0), limit = node.knownContent(1),
       delta = node.knownContent(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 ||
      delta->size() != 1)
    return false;
  auto step = graph::getConstant(delta->front());
  const Sizes &sizes = node.getSizes();
  Size count = step ? countRange(sizes, start->front(), limit->front(), *step)
                    : std::nullopt;
  if (!count || sizes.getRange(*count).max > kMaxElements)
    return false;
  auto type = graph::makeTensorType({*count}, node.elementType(0));
  auto known = graph::getConstant(*count);
  if (known && *known <= kMaxContent) {
    Content elements;
    for (int64_t i = 0; i < *known; ++i)
      if (Size element = sizes.apply(SizeOp::add, start->front(),
                                     sizes.constant(i * *step)))
        elements.push_back(*element);
    if (int64_t(elements.size()) == *known) {
      node.setContent(0, type, std::move(elements));
      return true;
    }
  }
  Value index = node.iota({*count}, 0, node.elementType(0));
  Value scaled = node.mul(index, node.reshape(node.input(2), {}));
  node.setResult(0, node.add(scaled, node.reshape(node.input(0), {})));
  return true;
}

static void importRange(Node &node) {
  if (!node.tensor(0) || !node.tensor(1) || !node.tensor(2) ||
      importIntegerRange(node))
    return;
  auto isKnown = [&](int64_t i) { return node.knownFloats(i).has_value(); };
  if (!isKnown(0) || !isKnown(1) || !isKnown(2))
    return rangeAtRunTime(node);
  auto start = node.requireFloats(0, "a range"),
       limit = node.requireFloats(1, "a range"),
       delta = node.requireFloats(2, "a range");
  if (!start || !limit || !delta)
    return;
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1)
    return (void)node.fail("scalars are expected");
  double count = std::ceil((limit->front() - start->front()) / delta->front());
  if (!(count <= double(kMaxElements)))
    return (void)node.fail("the range is too large");
  AffineExpr extent =
      node.getSizes().constant(std::max<int64_t>(int64_t(count), 0));
  // Narrow floats are counted in f32.
  Type type = node.elementType(0);
  Type wide = type.getIntOrFloatBitWidth() < 32 && isa<FloatType>(type)
                  ? Float32Type::get(node.getContext())
                  : type;
  auto scalar = [&](int64_t i) {
    return node.cast(node.reshape(node.input(i), {}), wide);
  };
  Value scaled = node.mul(node.iota({extent}, 0, wide), scalar(2));
  node.setResult(0, node.cast(node.add(scaled, scalar(0)), type));
}

/// 1 where column - row = k.
static void importEyeLike(Node &node) {
  graph::Extents extents = node.shape(0);
  if (extents.size() != 2)
    return (void)node.fail("an input of rank 2 is expected");
  Type type = node.elementType(0);
  if (node.findAttr("dtype"))
    type = getElementType(node.intAttr("dtype", 0), node.getContext());
  if (!type)
    return (void)node.unsupported("the element type");
  Type index = IntegerType::get(node.getContext(), 64);
  Value diagonal = node.constant(double(node.intAttr("k", 0)), index);
  Value onDiagonal =
      node.compare(graph::CompareKind::eq, node.iota(extents, 1, index),
                   node.add(node.iota(extents, 0, index), diagonal));
  node.setResult(0, node.cast(onDiagonal, type));
}

// --- Slice -------------------------------------------------------------------

/// One sliced axis: result[i] = x[start + i * step] for i < extent.
struct AxisSlice {
  int64_t axis;
  AffineExpr start, extent;
  int64_t step;
};

static std::optional<AxisSlice> resolveSlice(Node &node, int64_t axis,
                                             AffineExpr start, AffineExpr end,
                                             int64_t step) {
  const Sizes &sizes = node.getSizes();
  AffineExpr extent = node.shape(0)[axis];
  AffineExpr zero = sizes.constant(0), minusOne = sizes.constant(-1);
  auto bound = [&](AffineExpr position) -> Size {
    auto isNegative = sizes.compare(SizeCompare::lt, position, zero);
    if (!isNegative)
      return std::nullopt;
    Size counted = position;
    auto known = graph::getConstant(position);
    if (*isNegative && known && *known <= -kMaxElements)
      return step > 0 ? zero : minusOne;
    if (*isNegative)
      counted = sizes.apply(SizeOp::add, position, extent);
    Size lastIndex = sizes.apply(SizeOp::add, extent, minusOne);
    if (!counted || !lastIndex)
      return std::nullopt;
    return step > 0 ? sizes.clamp(*counted, zero, extent)
                    : sizes.clamp(*counted, minusOne, *lastIndex);
  };
  Size first = bound(start), beyond = bound(end);
  if (first && step < 0)
    first = sizes.apply(SizeOp::max, *first, zero);
  Size count =
      first && beyond ? countRange(sizes, *first, *beyond, step) : std::nullopt;
  return count ? std::optional(AxisSlice{axis, *first, *count, step})
               : std::nullopt;
}

/// Starts, ends, axes and steps: attributes before version 10, then inputs.
/// Nothing after a failure, and where no expression of the sizes tells them.
static std::optional<SmallVector<AxisSlice>> readSlices(Node &node) {
  int64_t rank = node.inputRank(0);
  const Sizes &sizes = node.getSizes();
  Content starts, ends;
  std::optional<SmallVector<int64_t>> axes, steps;
  if (node.getVersion() < 10) {
    for (int64_t n : node.intsAttr("starts").value_or(SmallVector<int64_t>()))
      starts.push_back(sizes.constant(n));
    for (int64_t n : node.intsAttr("ends").value_or(SmallVector<int64_t>()))
      ends.push_back(sizes.constant(n));
    axes = node.intsAttr("axes");
  } else {
    starts = node.requireContent(1, "starts").value_or(Content());
    ends = node.requireContent(2, "ends").value_or(Content());
    if (node.hasInput(3))
      axes = node.requireInts(3, "axes");
    if (node.hasInput(4))
      steps = node.requireInts(4, "steps");
  }
  if (node.hasFailed())
    return std::nullopt;
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts.size(); ++i)
      axes->push_back(i);
  }
  SmallVector<int64_t> resolved = node.axes(*axes, rank);
  if (!steps)
    steps = SmallVector<int64_t>(starts.size(), 1);
  if (node.hasFailed())
    return std::nullopt;
  if (ends.size() != starts.size() || resolved.size() != starts.size() ||
      steps->size() != starts.size() || llvm::is_contained(*steps, 0)) {
    node.fail("starts, ends, axes and steps do not fit together");
    return std::nullopt;
  }
  SmallVector<AxisSlice> slices;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t step = std::clamp((*steps)[i], -kMaxElements, kMaxElements);
    auto slice = resolveSlice(node, resolved[i], starts[i], ends[i], step);
    if (!slice)
      return std::nullopt;
    slices.push_back(*slice);
  }
  return slices;
}

static bool foldSlice(Node &node, ArrayRef<AxisSlice> slices) {
  if (!node.type(0).hasStaticShape())
    return false;
  SmallVector<int64_t> source(node.type(0).getShape()), shape = source;
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  for (const AxisSlice &slice : slices) {
    auto start = graph::getConstant(slice.start);
    auto extent = graph::getConstant(slice.extent);
    if (!start || !extent)
      return false;
    starts[slice.axis] = *start;
    steps[slice.axis] = slice.step;
    shape[slice.axis] = *extent;
  }
  return foldMovement(node, shape, [&](ArrayRef<int64_t> indices) {
    SmallVector<int64_t> from(indices);
    for (auto [axis, index] : llvm::enumerate(from))
      index = starts[axis] + index * steps[axis];
    return getPosition(from, source);
  });
}

static void importSlice(Node &node) {
  auto isComputed = [&](int64_t i) { return node.isComputed(i); };
  if (node.getVersion() >= 10 &&
      llvm::any_of(llvm::seq<int64_t>(1, 5), isComputed))
    return sliceAtRunTime(node);
  auto slices = node.tensor(0) ? readSlices(node) : std::nullopt;
  if (node.hasFailed() || (slices && foldSlice(node, *slices)))
    return;
  if (!slices && node.getVersion() >= 10)
    return sliceAtRunTime(node);
  if (!slices)
    return (void)node.unsupported("a slice whose bounds depend on a dynamic "
                                  "dimension in an unknown way");
  Value result = node.input(0);
  for (const AxisSlice &slice : *slices)
    result =
        node.slice(result, slice.axis, slice.start, slice.extent, slice.step);
  node.setResult(0, result);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Constant", 1, last, importConstant},
    {"ConstantOfShape", 9, last, importConstantOfShape},
    {"EyeLike", 9, last, importEyeLike},
    {"Range", 11, last, importRange},
    {"Shape", 1, last, importShape},
    {"Size", 1, last, importSize},
    {"Slice", 1, last, importSlice},
};

ArrayRef<OpRow> getShapeOps() { return rows; }

} // namespace tcc::onnx_import

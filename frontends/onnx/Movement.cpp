#include "frontends/onnx/Folding.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

// --- Changes of shape --------------------------------------------------------

/// The input in other extents: its known elements, or a reshape.
static void setReshaped(Node &node, ArrayRef<AffineExpr> extents) {
  if (node.hasFailed() || !node.tensor(0))
    return;
  auto type = graph::makeTensorType(extents, node.elementType(0));
  Tensor *source = node.tensor(0);
  bool isKnown = source->content || !isa<FloatType>(type.getElementType());
  auto content = isKnown ? node.knownContent(0) : std::nullopt;
  if (content && type.hasStaticShape() &&
      type.getNumElements() == int64_t(content->size()))
    return node.setContent(0, type, *content);
  node.setResult(0, node.reshape(node.input(0), extents));
}

/// The extents that a Reshape asks for: 0 copies the input's, -1 is what is
/// left over.
static std::optional<graph::Extents>
resolveReshape(Node &node, ArrayRef<AffineExpr> wanted) {
  graph::Extents source = node.shape(0), result;
  bool allowZero = node.intAttr("allowzero", 0) != 0;
  std::optional<size_t> open;
  for (auto [i, extent] : llvm::enumerate(wanted)) {
    auto known = graph::getConstant(extent);
    bool isOpen = known == -1, isCopy = known == 0 && !allowZero;
    if ((isOpen && open) || (isCopy && i >= source.size()) ||
        (known && (*known < -1 || *known > kMaxElements))) {
      node.fail("the shape to take is malformed");
      return std::nullopt;
    }
    if (isOpen)
      open = i;
    AffineExpr one = node.getSizes().constant(1);
    result.push_back(isCopy ? source[i] : isOpen ? one : extent);
  }
  if (!open)
    return result;
  Size rest = node.getSizes().divideProducts(source, result);
  if (!rest) {
    node.fail("the input's elements do not divide into the shape");
    return std::nullopt;
  }
  result[*open] = *rest;
  return result;
}

static void importReshape(Node &node) {
  if (node.isComputed(1))
    return reshapeAtRunTime(node);
  auto wanted = node.requireContent(1, "a shape");
  if (!wanted || !node.tensor(0))
    return;
  if (auto extents = resolveReshape(node, *wanted))
    setReshaped(node, *extents);
}

static void importFlatten(Node &node) {
  int64_t rank = node.inputRank(0), given = node.intAttr("axis", 1);
  int64_t axis = given == rank ? rank : node.axis(given, rank);
  if (node.hasFailed())
    return;
  graph::Extents extents = node.shape(0);
  Size outer = node.getSizes().product(ArrayRef(extents).take_front(axis));
  Size inner = node.getSizes().product(ArrayRef(extents).drop_front(axis));
  if (!outer || !inner)
    return (void)node.fail("the input is too large");
  setReshaped(node, {*outer, *inner});
}

static void importSqueeze(Node &node) {
  if (node.getVersion() >= 13 && node.isComputed(1))
    return squeezeAtRunTime(node);
  auto given = node.intsAttrOrInput("axes", 13, 1);
  graph::Extents extents = node.shape(0), kept;
  SmallVector<int64_t> axes =
      node.axes(given.value_or(SmallVector<int64_t>()), extents.size());
  if (node.hasFailed())
    return;
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    bool isOne = graph::getConstant(extent) == 1;
    bool isDropped = given ? llvm::is_contained(axes, int64_t(axis)) : isOne;
    if (isDropped && !isOne)
      return (void)node.fail("axis " + llvm::Twine(axis) +
                             " does not have extent 1");
    if (!isDropped)
      kept.push_back(extent);
  }
  setReshaped(node, kept);
}

static void importUnsqueeze(Node &node) {
  if (node.getVersion() >= 13 && node.isComputed(1))
    return unsqueezeAtRunTime(node);
  auto given = node.intsAttrOrInput("axes", 13, 1);
  if (!given || node.hasFailed())
    return (void)node.fail("axes are missing");
  graph::Extents extents = node.shape(0);
  int64_t rank = extents.size() + given->size();
  SmallVector<int64_t> axes = node.axes(*given, rank);
  if (node.hasFailed())
    return;
  llvm::sort(axes);
  for (int64_t axis : axes)
    extents.insert(extents.begin() + axis, node.getSizes().constant(1));
  setReshaped(node, extents);
}

static void importTranspose(Node &node) {
  int64_t rank = node.inputRank(0);
  SmallVector<int64_t> permutation;
  for (int64_t axis = rank - 1; axis >= 0; --axis)
    permutation.push_back(axis);
  permutation = node.axes(node.intsAttr("perm").value_or(permutation), rank);
  if (node.hasFailed())
    return;
  if (int64_t(permutation.size()) != rank)
    return (void)node.fail("perm must have one entry an axis");
  node.setResult(0, node.transpose(node.input(0), permutation));
}

static void importExpand(Node &node) {
  if (node.isComputed(1))
    return expandAtRunTime(node);
  auto shape = node.requireContent(1, "a shape");
  if (!shape || !node.tensor(0))
    return;
  auto extents = graph::broadcastExtents(node.shape(0), *shape);
  auto isValid = [&](AffineExpr e) {
    auto known = graph::getConstant(e);
    return !known || (*known >= 0 && *known <= kMaxElements);
  };
  if (!extents || !llvm::all_of(*extents, isValid))
    return (void)node.fail("the input does not broadcast to the shape");
  SmallVector<int64_t> target;
  for (AffineExpr extent : *extents)
    target.push_back(graph::getConstant(extent).value_or(-1));
  SmallVector<int64_t> source(node.type(0).getShape());
  auto position = [&](ArrayRef<int64_t> indices) {
    SmallVector<int64_t> own(indices.take_back(source.size()));
    for (auto [index, extent] : llvm::zip(own, source))
      index = extent == 1 ? 0 : index;
    return getPosition(own, source);
  };
  bool isStatic = !llvm::is_contained(target, -1) &&
                  node.getSizes().getMaxElements(*extents) <= kMaxContent;
  if (!isStatic || !foldMovement(node, target, position))
    node.setResult(0, node.broadcast(node.input(0), *extents));
}

/// [r, extent] of each axis, flattened.
Value tile(Node &node, Value x, ArrayRef<AffineExpr> repeats) {
  if (!x)
    return nullptr;
  graph::Extents split, repeated, joined;
  for (auto [extent, count] : llvm::zip(node.extents(x), repeats)) {
    Size product = node.getSizes().apply(SizeOp::mul, extent, count);
    if (!product || node.getSizes().getRange(count).min < 0)
      return node.fail("repeats are out of range");
    split.append({node.getSizes().constant(1), extent});
    repeated.append({count, extent});
    joined.push_back(*product);
  }
  Value tiled = node.broadcast(node.reshape(x, split), repeated);
  return node.reshape(tiled, joined);
}

static void importTile(Node &node) {
  if (node.isComputed(1))
    return tileAtRunTime(node);
  Value x = node.input(0);
  auto repeats = node.requireContent(1, "repeats");
  if (!x || !repeats)
    return;
  if (int64_t(repeats->size()) != node.rank(x))
    return (void)node.fail("one repeat an axis is expected");
  node.setResult(0, tile(node, x, *repeats));
}

// --- Parts -------------------------------------------------------------------

static bool foldConcat(Node &node) {
  Content joined;
  for (int64_t i = 0; i < node.getNumInputs(); ++i) {
    auto content = node.knownContent(i);
    if (!content || node.inputRank(i) != 1 ||
        isa<FloatType>(node.elementType(i)))
      return false;
    joined.append(*content);
  }
  if (joined.size() > size_t(kMaxContent))
    return false;
  auto type =
      RankedTensorType::get({int64_t(joined.size())}, node.elementType(0));
  node.setContent(0, type, std::move(joined));
  return true;
}

static void importConcat(Node &node) {
  if (node.getNumInputs() == 0)
    return (void)node.fail("inputs are missing");
  int64_t axis = node.axis(node.intAttr("axis", 1), node.inputRank(0));
  if (node.hasFailed() || foldConcat(node))
    return;
  node.setResult(0, node.concat(node.inputsFrom(0), axis));
}

/// The extents of the parts of a Split.
static std::optional<SmallVector<AffineExpr>> getParts(Node &node,
                                                       AffineExpr extent) {
  auto given = node.intsAttr("split");
  if (node.getVersion() >= 13 && node.hasInput(1)) {
    auto parts = node.requireContent(1, "split");
    if (parts && int64_t(parts->size()) == node.getNumOutputs())
      return parts;
    node.fail("split must have one entry an output");
    return std::nullopt;
  }
  SmallVector<AffineExpr> parts;
  if (given) {
    for (int64_t part : *given)
      parts.push_back(node.getSizes().constant(part));
    if (int64_t(parts.size()) == node.getNumOutputs())
      return parts;
    node.fail("split must have one entry an output");
    return std::nullopt;
  }
  int64_t count = node.getNumOutputs();
  AffineExpr divisor = node.getSizes().constant(count);
  auto known = graph::getConstant(extent);
  // The last part may be smaller.
  Size part = known ? node.getSizes().constant((*known + count - 1) / count)
                    : node.getSizes().divideProducts(extent, divisor);
  if (!part) {
    node.unsupported("an uneven split of a dynamic dimension");
    return std::nullopt;
  }
  parts.assign(count, *part);
  if (known)
    parts.back() = node.getSizes().constant(
        *known - *graph::getConstant(*part) * (count - 1));
  return parts;
}

static void importSplit(Node &node) {
  int64_t axis = node.axis(node.intAttr("axis", 0), node.inputRank(0));
  if (node.hasFailed() || node.getNumOutputs() == 0)
    return;
  if (node.getVersion() >= 13 && node.isComputed(1))
    return splitAtRunTime(node, axis);
  auto parts = getParts(node, node.shape(0)[axis]);
  if (!parts)
    return;
  auto content = node.inputRank(0) == 1 && !isa<FloatType>(node.elementType(0))
                     ? node.knownContent(0)
                     : std::nullopt;
  AffineExpr start = node.getSizes().constant(0);
  for (auto [i, part] : llvm::enumerate(*parts)) {
    auto first = graph::getConstant(start), count = graph::getConstant(part);
    if (content && first && count && *count >= 0 && *first >= 0 &&
        *first + *count <= int64_t(content->size()))
      node.setContent(i, RankedTensorType::get({*count}, node.elementType(0)),
                      Content(ArrayRef(*content).slice(*first, *count)));
    else if (node.getSizes().getRange(part).min < 0)
      return (void)node.fail("split has a negative entry");
    else
      node.setResult(i, node.slice(node.input(0), axis, start, part));
    Size next = node.getSizes().apply(SizeOp::add, start, part);
    if (!next)
      return (void)node.fail("split is out of range");
    start = *next;
  }
}

static std::optional<Content> getPads(Node &node) {
  if (node.getVersion() >= 11)
    return node.requireContent(1, "pads");
  Content pads;
  for (int64_t n : node.intsAttr("pads").value_or(SmallVector<int64_t>()))
    pads.push_back(node.getSizes().constant(n));
  return pads;
}

/// Borders of sizes that are not known are parts of their own.
static Value padBySizes(Node &node, Value x, Value value,
                        ArrayRef<AffineExpr> low, ArrayRef<AffineExpr> high) {
  for (auto [axis, before, after] : llvm::enumerate(low, high)) {
    SmallVector<Value> parts;
    auto addBorder = [&](AffineExpr size) {
      auto where = node.getSizes().findNegative(size);
      if (where)
        node.fail("pads may be negative for " + *where);
      graph::Extents extents = node.extents(x);
      extents[axis] = size;
      if (!where && graph::getConstant(size) != 0)
        parts.push_back(node.broadcast(value, extents));
    };
    addBorder(before);
    parts.push_back(x);
    addBorder(after);
    if (node.hasFailed())
      return {};
    if (parts.size() > 1)
      x = node.concat(parts, axis);
  }
  return x;
}

static Value padAxes(Node &node, Value x, Value value, graph::PadMode mode,
                     ArrayRef<AffineExpr> low, ArrayRef<AffineExpr> high) {
  SmallVector<int64_t> lowInts, highInts;
  for (auto [before, after] : llvm::zip(low, high)) {
    auto l = graph::getConstant(before), h = graph::getConstant(after);
    if (!l || !h) {
      if (mode == graph::PadMode::constant)
        return padBySizes(node, x, value, low, high);
      node.unsupported("pads that depend on a dynamic dimension");
      return {};
    }
    if (std::max(std::abs(*l), std::abs(*h)) >= int64_t(1) << 31)
      return node.fail("pads are malformed");
    lowInts.push_back(*l);
    highInts.push_back(*h);
  }
  return node.pad(x, value, lowInts, highInts, {}, mode);
}

static void importPad(Node &node) {
  if (node.getVersion() >= 11 && (node.isComputed(1) || node.isComputed(3)))
    return padAtRunTime(node);
  Value x = node.input(0);
  bool isOld = node.getVersion() < 11;
  auto pads = getPads(node);
  if (!x || !pads)
    return (void)node.fail("pads are missing");
  int64_t rank = node.rank(x);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (node.getVersion() >= 18 && node.hasInput(3)) {
    auto given = node.requireInts(3, "axes");
    axes = node.axes(given.value_or(SmallVector<int64_t>()), rank);
  }
  if (node.hasFailed())
    return;
  if (pads->size() != 2 * axes.size())
    return (void)node.fail("pads are malformed");
  SmallVector<AffineExpr> low(rank, node.getSizes().constant(0)), high = low;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    low[axis] = (*pads)[i];
    high[axis] = (*pads)[axes.size() + i];
  }
  Value value = isOld ? node.constantLike(node.floatAttr("value", 0), x)
                : node.hasInput(2) ? node.reshape(node.input(2), {})
                                   : node.constantLike(0, x);
  auto mode = graph::symbolizePadMode(node.stringAttr("mode", "constant"));
  if (!mode)
    return (void)node.fail("mode is unknown");
  if (Value padded = padAxes(node, x, value, *mode, low, high))
    node.setResult(0, padded);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Concat", 4, last, importConcat},
    {"Expand", 8, last, importExpand},
    {"Flatten", 1, last, importFlatten},
    {"Pad", 2, last, importPad},
    {"Reshape", 5, last, importReshape},
    {"Split", 2, last, importSplit},
    {"Squeeze", 1, last, importSqueeze},
    {"Tile", 6, last, importTile},
    {"Transpose", 1, last, importTranspose},
    {"Unsqueeze", 1, last, importUnsqueeze},
};

ArrayRef<OpRow> getMovementOps() { return rows; }

} // namespace tcc::onnx_import

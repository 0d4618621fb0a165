//===- Regions.cpp - Samples of an image where data say -------------------===//

#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Sampling.h"
#include "frontends/onnx/Window.h"

using namespace mlir;
using tcc::graph::CompareKind;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

/// Indices from the first element to the last, counted in the type of `like`.
static Bounds getIndexBounds(Node &node, AffineExpr extent, Value like) {
  Value count = node.countLike({extent}, like);
  Value lastIndex = node.sub(count, node.constantLike(1, like));
  return {node.constantLike(0, like), lastIndex, lastIndex};
}

/// A tap with its positions, behind the batch axis, as one axis.
static void flatten(Node &node, Tap &tap, AffineExpr count) {
  for (Value *part : {&tap.index, &tap.weight, &tap.isInside})
    if (*part)
      *part = node.reshape(*part, {graph::getExtent(*part, 0), count});
}

// --- RoiAlign ----------------------------------------------------------------

namespace {

/// How a RoiAlign node divides boxes: into bins of `samples` by `samples`.
struct Boxes {
  int64_t bins[2], samples;
  double scale, shift; // from the boxes' coordinates to those of the image
  bool isHalfPixel;
};

} // namespace

static std::optional<Boxes> readBoxes(Node &node) {
  Boxes boxes;
  boxes.bins[0] = node.intAttr("output_height", 1);
  boxes.bins[1] = node.intAttr("output_width", 1);
  boxes.samples = node.intAttr("sampling_ratio", 0);
  boxes.scale = node.floatAttr("spatial_scale", 1);
  bool isOld = node.getVersion() < 16;
  boxes.isHalfPixel = node.stringAttr("coordinate_transformation_mode",
                                      isOld ? "output_half_pixel"
                                            : "half_pixel") == "half_pixel";
  boxes.shift = boxes.isHalfPixel ? -0.5 : 0;
  auto isCount = [](int64_t n) { return n >= 1 && n <= kMaxContent; };
  if (boxes.samples == 0)
    node.unsupported("a number of samples that the boxes' sizes give "
                     "(sampling_ratio = 0)");
  else if (!isCount(boxes.bins[0]) || !isCount(boxes.bins[1]) ||
           !isCount(boxes.samples))
    node.fail("output_height, output_width or sampling_ratio is out of range");
  return node.hasFailed() ? std::nullopt : std::optional(boxes);
}

/// Positions of the samples along an axis, [box, bins * samples]; the boxes
/// [box, 4] hold x before y.
static Value samplePositions(Node &node, Value rois, const Boxes &boxes,
                             int64_t axis) {
  auto edge = [&](int64_t column) {
    Value x = node.slice(rois, 1, column, 1);
    return node.add(node.mul(x, node.constantLike(boxes.scale, x)),
                    node.constantLike(boxes.shift, x));
  };
  Value start = edge(1 - axis);
  Value extent = node.sub(edge(3 - axis), start);
  if (!boxes.isHalfPixel)
    extent = node.max(extent, node.constantLike(1, extent));
  if (!extent)
    return nullptr;
  int64_t count = boxes.bins[axis] * boxes.samples;
  AffineExpr one = node.getSizes().constant(1);
  Value step = node.div(extent, node.constantLike(double(count), extent));
  Value index = node.iota({one, node.getSizes().constant(count)}, 1,
                          node.elementType(extent));
  Value center = node.add(index, node.constantLike(0.5, index));
  return node.add(start, node.mul(center, step));
}

/// The taps of samples along an axis of the image; those more than 1 beyond it
/// are 0, others at its border.
static SmallVector<Tap> findSampleTaps(Node &node, Value positions,
                                       AffineExpr extent) {
  Bounds bounds = getIndexBounds(node, extent, positions);
  Value one = node.constantLike(1, positions);
  Value isInside = node.pointwise<graph::AndOp>(
      {node.compare(CompareKind::ge, positions, node.sub(bounds.low, one)),
       node.compare(CompareKind::le, positions, node.add(bounds.high, one))});
  Value inside = node.min(node.max(positions, bounds.low), bounds.high);
  auto taps = findTaps(node, inside,
                       {Interpolation::linear, Outside::border, true}, bounds);
  for (Tap &tap : taps)
    tap.isInside = isInside;
  return taps;
}

static void importRoiAlign(Node &node) {
  Value x = node.input(0), rois = node.input(1), batches = node.input(2);
  std::string mode = node.stringAttr("mode", "avg");
  auto boxes = readBoxes(node);
  if (!x || !rois || !batches || !boxes)
    return;
  graph::Extents image = node.extents(x);
  if (image.size() != 4 || node.rank(rois) != 2 || node.rank(batches) != 1 ||
      graph::getConstant(graph::getExtent(rois, 1)) != 4 ||
      (mode != "avg" && mode != "max"))
    return (void)node.fail("an image of rank 4, boxes [number, 4] and mode avg "
                           "or max are expected");
  const Sizes &sizes = node.getSizes();
  Size elements = sizes.product({image[2], image[3]});
  int64_t samples = boxes->samples;
  int64_t rows = boxes->bins[0] * samples, columns = boxes->bins[1] * samples;
  if (!elements)
    return (void)node.fail("the image is too large");
  Value y = node.unsqueeze(samplePositions(node, rois, *boxes, 0), {2});
  Value along = node.unsqueeze(samplePositions(node, rois, *boxes, 1), {1});
  if (!y || !along)
    return;
  auto taps = combine(node, findSampleTaps(node, y, image[2]),
                      findSampleTaps(node, along, image[3]), image[3]);
  for (Tap &tap : taps)
    flatten(node, tap, sizes.constant(rows * columns));
  Value flat = node.reshape(x, {image[0], image[1], *elements});
  Value sampled =
      mergeTaps(node, node.gather(flat, batches, 0), taps, mode == "max");
  Value split = node.reshape(
      sampled, {graph::getExtent(rois, 0), image[1],
                sizes.constant(boxes->bins[0]), sizes.constant(samples),
                sizes.constant(boxes->bins[1]), sizes.constant(samples)});
  if (mode == "max")
    return node.setResult(0,
                          node.reduce(ReduceKind::max, split, {3, 5}, false));
  Value sum = node.reduce(ReduceKind::sum, split, {3, 5}, false);
  Value count = node.constantLike(double(samples * samples), x);
  node.setResult(0, node.div(sum, count));
}

// --- DeformConv --------------------------------------------------------------

namespace {

/// Extents of a DeformConv node. Arrays have one entry a spatial axis.
struct Deformation {
  SmallVector<int64_t> outputs;
  int64_t taps = 1, places = 1; // elements of a filter's window and of outputs
  int64_t groups, offsetGroups;
};

} // namespace

/// Positions along `axis` that the offsets [batch * group, tap, axis, place]
/// give, [batch * group, tap * place].
static Value deformPositions(Node &node, Value offsets, const Window &window,
                             const Deformation &deformation, int64_t axis) {
  Value own = node.squeeze(node.slice(offsets, 2, axis, 1), {2});
  if (!own)
    return nullptr;
  // [tap..., output...] with the extents of one axis each.
  int64_t rank = window.getRank();
  graph::Extents taps, places;
  for (int64_t i = 0; i < rank; ++i) {
    taps.push_back(node.getSizes().constant(window.extents[i]));
    places.push_back(node.getSizes().constant(deformation.outputs[i]));
  }
  Type type = node.elementType(own);
  auto count = [&](ArrayRef<AffineExpr> extents, int64_t step, int64_t total,
                   int64_t position) {
    Value index = node.mul(node.iota(extents, axis, type),
                           node.constant(double(step), type));
    graph::Extents flat(3, node.getSizes().constant(1));
    flat[position] = node.getSizes().constant(total);
    return node.reshape(index, flat);
  };
  Value base =
      node.add(count(taps, window.dilations[axis], deformation.taps, 1),
               count(places, window.strides[axis], deformation.places, 2));
  base = node.sub(base, node.constant(double(window.low[axis]), type));
  Size all =
      node.getSizes().product({node.getSizes().constant(deformation.taps),
                               node.getSizes().constant(deformation.places)});
  if (!all)
    return node.fail("the offsets are too large");
  return node.reshape(node.add(own, base), {graph::getExtent(own, 0), *all});
}

static std::optional<Deformation> readDeformation(Node &node, Value x,
                                                  Value filter, Value offsets,
                                                  const Window &window) {
  Deformation deformation;
  deformation.groups = node.intAttr("group", 1);
  deformation.offsetGroups = node.intAttr("offset_group", 1);
  auto places = cast<RankedTensorType>(offsets.getType());
  auto channels = graph::getConstant(graph::getExtent(x, 1));
  auto shape = cast<RankedTensorType>(filter.getType()).getShape();
  if (!channels || places.getRank() != node.rank(x) ||
      llvm::any_of(places.getShape().drop_front(), ShapedType::isDynamic)) {
    node.unsupported("channels or offsets of dynamic extents");
    return std::nullopt;
  }
  llvm::append_range(deformation.outputs, places.getShape().drop_front(2));
  for (auto [extent, output] : llvm::zip(window.extents, deformation.outputs)) {
    deformation.taps *= std::min<int64_t>(extent, kMaxContent + 1);
    deformation.places *= output;
    if (deformation.taps > kMaxContent || deformation.places > kMaxElements) {
      node.fail("the window or the offsets are too large");
      return std::nullopt;
    }
  }
  int64_t groups = deformation.groups, offsetGroups = deformation.offsetGroups;
  if (groups < 1 || offsetGroups < 1 || groups > *channels ||
      offsetGroups > *channels || *channels % offsetGroups != 0 ||
      shape[1] * groups != *channels || shape[0] % groups != 0 ||
      places.getDimSize(1) !=
          offsetGroups * deformation.taps * window.getRank()) {
    node.fail("groups, filter and offsets do not fit the channels");
    return std::nullopt;
  }
  return deformation;
}

/// What each tap of the window reads for each place: [batch, channel, tap,
/// place].
static Value readColumns(Node &node, Value x, Value offsets,
                         const Window &window, const Deformation &deformation) {
  const Sizes &sizes = node.getSizes();
  graph::Extents image = node.extents(x);
  AffineExpr groups = sizes.constant(deformation.offsetGroups);
  AffineExpr taps = sizes.constant(deformation.taps);
  AffineExpr places = sizes.constant(deformation.places);
  Size elements = sizes.product(ArrayRef(image).drop_front(2));
  Size batches = sizes.product({image[0], groups});
  Size channels = sizes.divideProducts(image[1], groups);
  if (!elements || !batches || !channels)
    return node.fail("the image is too large");
  Value split = node.reshape(
      offsets, {*batches, taps, sizes.constant(window.getRank()), places});
  SmallVector<Tap> all;
  for (int64_t axis = 0; axis < window.getRank(); ++axis) {
    Value positions = deformPositions(node, split, window, deformation, axis);
    if (!positions)
      return nullptr;
    Bounds bounds = getIndexBounds(node, image[axis + 2], positions);
    auto own = findTaps(node, positions,
                        {Interpolation::linear, Outside::zeros, true}, bounds);
    all = axis == 0 ? own : combine(node, all, own, image[axis + 2]);
  }
  Value flat = node.reshape(x, {*batches, *channels, *elements});
  Value columns = mergeTaps(node, flat, all);
  if (node.hasInput(4)) {
    Value mask = node.reshape(
        node.input(4), {*batches, sizes.constant(1),
                        sizes.constant(deformation.taps * deformation.places)});
    columns = node.mul(columns, mask);
  }
  return node.reshape(columns, {image[0], image[1], taps, places});
}

/// A convolution whose windows read where offsets say.
static void importDeformConv(Node &node) {
  Value x = node.input(0), filter = node.input(1), offsets = node.input(2);
  if (!x || !filter || !offsets)
    return;
  auto type = cast<RankedTensorType>(filter.getType());
  if (type.getRank() != node.rank(x) || type.getRank() < 3 ||
      !type.hasStaticShape())
    return (void)node.fail("an input and a static filter of one rank, 3 or "
                           "more, are expected");
  auto window = readWindowAttributes(node, type.getRank() - 2,
                                     type.getShape().drop_front(2));
  auto deformation = window ? readDeformation(node, x, filter, offsets, *window)
                            : std::nullopt;
  if (!deformation)
    return;
  const Sizes &sizes = node.getSizes();
  Value columns = readColumns(node, x, offsets, *window, *deformation);
  AffineExpr groups = sizes.constant(deformation->groups);
  AffineExpr depth = sizes.constant(type.getDimSize(1) * deformation->taps);
  AffineExpr filters = sizes.constant(type.getDimSize(0) / deformation->groups);
  Value result =
      node.matmul(node.reshape(filter, {groups, filters, depth}),
                  node.reshape(columns, {graph::getExtent(x, 0), groups, depth,
                                         sizes.constant(deformation->places)}));
  graph::Extents extents = {graph::getExtent(x, 0),
                            sizes.constant(type.getDimSize(0))};
  for (int64_t extent : deformation->outputs)
    extents.push_back(sizes.constant(extent));
  result = node.reshape(result, extents);
  node.setResult(0, node.hasInput(3) ? addBias(node, result, node.input(3))
                                     : result);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"DeformConv", 19, last, importDeformConv},
    {"RoiAlign", 10, last, importRoiAlign},
};

ArrayRef<OpRow> getRegionOps() { return rows; }

} // namespace tcc::onnx_import

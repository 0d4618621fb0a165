//===- Resize.cpp - Resize and Upsample -----------------------------------===//
//
// Interpolation is separable: each axis in turn becomes a weighted sum of
// gathers. Indices and weights are computed in the module, from scales that are
// known or not; known ones fold to constants. Axes whose extents a run computes
// are resized together, as the tensors in between might be large. Nearest by a
// whole factor repeats elements.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Ops.h"
#include "frontends/onnx/ResizeTaps.h"
#include "frontends/onnx/RuntimeShapes.h"
#include <map>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

using AxisTaps = std::map<int64_t, Taps>;

// --- Emission ----------------------------------------------------------------

/// A vector along one of `rank` axes.
static Value place(Node &node, Value vector, int64_t rank, int64_t axis) {
  if (!vector)
    return nullptr;
  graph::Extents extents(rank, node.getSizes().constant(1));
  extents[axis] = graph::getExtent(vector, 0);
  return node.reshape(vector, extents);
}

/// The sum of the taps of one axis, known in number.
static Value emitTaps(Node &node, Value x, int64_t axis, const Taps &taps) {
  Value sum;
  int64_t count = *graph::getConstant(taps.count);
  for (int64_t tap = 0; tap < count; ++tap) {
    Value index = node.squeeze(node.slice(taps.index, 1, tap, 1), {1});
    Value part = node.gather(x, index, axis);
    if (count == 1 || !part)
      return part;
    Value weight = node.squeeze(node.slice(taps.weight, 1, tap, 1), {1});
    auto known = node.knownNumbers(weight);
    if (known && llvm::all_of(*known, [](double w) { return w == 0; }))
      continue;
    Value own = node.cast(weight, node.elementType(x));
    Value weighted = node.mul(part, place(node, own, node.rank(x), axis));
    sum = sum ? node.add(sum, weighted) : weighted;
  }
  return sum;
}

/// The elements of x, weighted, at number `tap` of all taps: that of the last
/// axis changes first.
static Value readTap(Node &node, Value x, const AxisTaps &all,
                     ArrayRef<AffineExpr> result, Value tap) {
  graph::Extents extents = node.extents(x);
  int64_t rank = extents.size();
  // Tensors of all axes have a bound, those of some may have none.
  auto spread = [&](Value vector, int64_t axis) {
    return node.broadcast(place(node, vector, rank, axis), result);
  };
  Value weight, position = index(node, 0), scale = index(node, 1);
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    Value extent = node.size(extents[axis]), own;
    auto found = all.find(axis);
    if (found == all.end()) {
      own = node.iota({extents[axis]}, 0, node.elementType(position));
    } else {
      const Taps &taps = found->second;
      Value count = node.size(taps.count);
      Value which = node.create<graph::RemOp>({tap, count});
      tap = node.div(tap, count);
      own = node.gather(taps.index, which, 1);
      if (taps.weight) {
        Value factor = spread(
            node.cast(node.gather(taps.weight, which, 1), node.elementType(x)),
            axis);
        weight = weight ? node.mul(weight, factor) : factor;
      }
    }
    position = node.add(position, node.mul(spread(own, axis), scale));
    scale = node.mul(scale, extent);
  }
  Value read = node.gather(flatten(node, x), position, 0);
  return weight ? node.mul(read, weight) : read;
}

/// The sum of the taps of several axes, with no tensors in between. Axes
/// without taps stay.
static Value emitTogether(Node &node, Value x, const AxisTaps &all,
                          graph::Extents result) {
  SmallVector<Value> counts;
  bool isSum = false;
  for (const auto &[axis, taps] : all) {
    counts.push_back(node.size(taps.count));
    isSum |= taps.weight != nullptr;
  }
  if (!isSum)
    return readTap(node, x, all, result, index(node, 0));
  Value trips = node.multiplySizes(counts);
  Value none = node.broadcast(node.constantLike(0, x), result);
  auto sums =
      node.loop({.trips = trips}, {none},
                [&](Value tap, ValueRange carried) -> SmallVector<Value> {
                  Value part = readTap(node, x, all, result, tap);
                  Value goesOn =
                      node.constant(1, IntegerType::get(node.getContext(), 1));
                  return {goesOn, node.add(carried[0], part)};
                });
  return sums.empty() ? nullptr : sums.front();
}

/// Elements outside the cropped input get the extrapolation value.
static Value emitOutside(Node &node, Value x, int64_t axis,
                         const ResizeOptions &options, const Taps &taps) {
  if (!options.isCropped() || !x)
    return x;
  return node.select(
      place(node, node.squeeze(taps.isOutside, {1}), node.rank(x), axis),
      node.constantLike(options.extrapolation, x), x);
}

/// Nearest by a whole factor: each element repeated. Null if it is not that.
static Value emitRepeat(Node &node, Value x, const ResizeOptions &options,
                        const AxisResize &resize) {
  bool isAsymmetric =
      options.coordinates == "asymmetric" && options.nearest == "floor";
  bool isHalfPixel = options.coordinates == "half_pixel" &&
                     (options.nearest == "round_prefer_floor" ||
                      options.nearest == "round_prefer_ceil");
  double scale = resize.known.value_or(0);
  auto factor = int64_t(scale);
  if (options.mode != "nearest" || !(isAsymmetric || isHalfPixel) ||
      double(factor) != scale || factor < 1 || factor > kMaxContent)
    return nullptr;
  graph::Extents split = node.extents(x), joined = split;
  split.insert(split.begin() + resize.axis + 1, node.getSizes().constant(1));
  graph::Extents repeated = split;
  repeated[resize.axis + 1] = node.getSizes().constant(factor);
  joined[resize.axis] = joined[resize.axis] * factor;
  Value spread = node.broadcast(node.reshape(x, split), repeated);
  return node.reshape(spread, joined);
}

/// x in the extents of the result.
static Value resizeAxes(Node &node, Value x, const ResizeOptions &options,
                        ArrayRef<AxisResize> resizes,
                        ArrayRef<AffineExpr> result) {
  AxisTaps open, all;
  for (const AxisResize &resize : resizes) {
    int64_t axis = resize.axis;
    if (resize.isKept(options))
      continue;
    if (Value repeated = emitRepeat(node, x, options, resize)) {
      x = repeated;
      continue;
    }
    Taps taps = computeTaps(node, options, resize, graph::getExtent(x, axis),
                            result[axis]);
    if (node.hasFailed())
      return nullptr;
    all.emplace(axis, taps);
    bool isComputed =
        graph::isComputed(result[axis], node.getSizes().getSymbols()) ||
        node.getSizes().getRange(graph::getExtent(x, axis)).min < 1;
    if (isComputed || !graph::getConstant(taps.count))
      open.emplace(axis, taps);
    else
      x = emitTaps(node, x, axis, taps);
  }
  if (!open.empty() && x) {
    graph::Extents extents = node.extents(x);
    for (const auto &[axis, taps] : open)
      extents[axis] = result[axis];
    x = emitTogether(node, x, open, extents);
  }
  for (const auto &[axis, taps] : all)
    x = emitOutside(node, x, axis, options, taps);
  return x;
}

// --- Reading the node --------------------------------------------------------

static std::optional<ResizeOptions> readOptions(Node &node) {
  ResizeOptions options;
  bool isOld = node.getVersion() < 11; // Upsample and Resize-10
  options.mode = node.stringAttr("mode", "nearest");
  if (options.mode == "bilinear")
    options.mode = "linear";
  options.coordinates =
      isOld ? "asymmetric"
            : node.stringAttr("coordinate_transformation_mode", "half_pixel");
  options.nearest =
      isOld ? "floor" : node.stringAttr("nearest_mode", "round_prefer_floor");
  options.cubicA = node.floatAttr("cubic_coeff_a", -0.75);
  options.extrapolation = node.floatAttr("extrapolation_value", 0);
  options.isAntialiased = node.intAttr("antialias", 0) != 0;
  options.excludesOutside = node.intAttr("exclude_outside", 0) != 0;
  auto isOneOf = [&](StringRef text, ArrayRef<StringRef> known) {
    if (!llvm::is_contained(known, text))
      node.unsupported("'" + text + "'");
  };
  isOneOf(options.mode, {"nearest", "linear", "cubic"});
  isOneOf(options.coordinates,
          {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
           "align_corners", "asymmetric", "tf_crop_and_resize"});
  isOneOf(options.nearest,
          {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  if (node.hasFailed())
    return std::nullopt;
  return options;
}

/// The numbers of a list as f64 scalars.
static SmallVector<Value> readNumbers(Node &node, int64_t i) {
  SmallVector<Value> numbers;
  if (auto known = node.knownFloats(i)) {
    for (double number : *known)
      numbers.push_back(real(node, number));
    return numbers;
  }
  Value list = node.input(i);
  auto type = list ? cast<RankedTensorType>(list.getType()) : nullptr;
  if (!type || type.getRank() != 1 || !type.hasStaticShape() ||
      type.getNumElements() > kMaxContent) {
    node.unsupported("a list of numbers of unknown length");
    return numbers;
  }
  for (int64_t k = 0; k < type.getNumElements(); ++k)
    numbers.push_back(node.cast(node.reshape(node.slice(list, 0, k, 1), {}),
                                Float64Type::get(node.getContext())));
  return numbers;
}

/// floor(extent * scale) where that is a size for all sizes.
static Size multiply(Node &node, AffineExpr extent,
                     std::optional<double> scale) {
  constexpr double kMost = double(kMaxResized);
  if (!scale || !(*scale >= 1 / kMost && *scale <= kMost))
    return std::nullopt;
  const Sizes &sizes = node.getSizes();
  auto factor = int64_t(*scale), divisor = int64_t(1 / *scale);
  if (double(factor) == *scale)
    return sizes.apply(SizeOp::mul, extent, sizes.constant(factor));
  if (llvm::isPowerOf2_64(divisor) && 1 / double(divisor) == *scale &&
      !graph::getConstant(extent))
    return sizes.apply(SizeOp::div, extent, sizes.constant(divisor));
  return std::nullopt;
}

/// The extent that a scale gives.
static void applyScale(Node &node, AffineExpr extent,
                       const ResizeOptions &options, AxisResize &resize) {
  demand(node,
         node.pointwise<graph::AndOp>(
             {node.compare(CompareKind::gt, resize.scale, real(node, 0)),
              node.compare(CompareKind::lt, resize.scale,
                           real(node, double(kMaxResized)))}),
         "a scale is out of range");
  if (Size simple = multiply(node, extent, node.knownNumber(resize.scale))) {
    resize.extent = {*simple, nullptr};
    return;
  }
  Type f32 = Float32Type::get(node.getContext()); // as ONNX infers it
  Value exact =
      node.mul(node.cast(node.size(extent), f32), node.cast(resize.scale, f32));
  resize.extent = {AffineExpr(), floorToIndex(node, exact)};
  if (!options.usesLength())
    return;
  Value isWhole =
      node.compare(CompareKind::eq, exact, node.create<graph::FloorOp>(exact));
  std::string what = "'" + options.coordinates +
                     "' with a scale that gives a fractional extent";
  demand(node, isWhole, what, /*isSupported=*/false);
}

/// Scales that sizes stand for; the policy may keep the aspect ratio.
static void applySizes(Node &node, Value x, ArrayRef<SizeElement> given,
                       MutableArrayRef<AxisResize> resizes) {
  std::string policy = node.stringAttr("keep_aspect_ratio_policy", "stretch");
  bool isLarger = policy == "not_smaller";
  if (!isLarger && policy != "not_larger" && policy != "stretch")
    return (void)node.fail("keep_aspect_ratio_policy is unknown");
  Value common;
  for (auto [resize, size] : llvm::zip_equal(resizes, given)) {
    AffineExpr extent = graph::getExtent(x, resize.axis);
    resize.extent = node.settle(size);
    Size factor =
        resize.extent.value
            ? std::nullopt
            : node.getSizes().divideProducts(resize.extent.known, extent);
    auto known = factor ? graph::getConstant(*factor) : std::nullopt;
    resize.scale =
        known ? real(node, double(*known))
              : node.div(node.cast(node.scalar(resize.extent),
                                   Float64Type::get(node.getContext())),
                         node.cast(node.size(extent),
                                   Float64Type::get(node.getContext())));
    common = !common    ? resize.scale
             : isLarger ? node.max(common, resize.scale)
                        : node.min(common, resize.scale);
  }
  for (AxisResize &resize : resizes) {
    if (policy == "stretch" || node.hasFailed())
      return;
    Value extent = node.cast(node.size(graph::getExtent(x, resize.axis)),
                             Float64Type::get(node.getContext()));
    Value exact = node.mul(extent, common);
    resize.scale = common;
    resize.extent = {AffineExpr(),
                     floorToIndex(node, node.add(exact, real(node, 0.5)))};
  }
}

/// Regions of interest hold the starts, then the ends of the axes.
static void applyCrops(Node &node, int64_t input,
                       MutableArrayRef<AxisResize> resizes) {
  SmallVector<Value> roi = readNumbers(node, input);
  if (roi.size() != 2 * resizes.size())
    return (void)node.fail("roi needs two values an axis");
  for (auto [i, resize] : llvm::enumerate(resizes)) {
    resize.cropStart = roi[i];
    resize.cropEnd = roi[resizes.size() + i];
  }
}

/// Scales are an attribute of Upsample-7, input 1 of Upsample-9 and Resize-10,
/// and input 2 after; sizes are input 3.
static SmallVector<AxisResize> readAxes(Node &node, Value x,
                                        const ResizeOptions &options) {
  int64_t rank = node.rank(x), version = node.getVersion();
  SmallVector<AxisResize> resizes;
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (auto given = node.intsAttr("axes"))
    axes = node.axes(*given, rank);
  for (int64_t axis : axes)
    resizes.push_back({axis, nullptr, {}, nullptr, nullptr, std::nullopt});
  bool hasSizes =
      version >= 11 && node.hasInput(3) &&
      !(node.type(3).hasStaticShape() && node.type(3).getNumElements() == 0);
  if (node.hasFailed())
    return resizes;
  if (hasSizes) {
    SmallVector<SizeElement> sizes = node.elements(node.input(3));
    if (sizes.size() != axes.size())
      node.fail("one size an axis is expected");
    else
      applySizes(node, x, sizes, resizes);
  } else {
    SmallVector<Value> scales;
    if (version >= 9)
      scales = readNumbers(node, version < 11 ? 1 : 2);
    else if (auto given = node.floatsAttr("scales"))
      for (double scale : *given)
        scales.push_back(real(node, scale));
    if (scales.size() != axes.size())
      node.fail("one scale an axis is expected");
    else
      for (auto [resize, scale] : llvm::zip_equal(resizes, scales)) {
        resize.scale = scale;
        applyScale(node, graph::getExtent(x, resize.axis), options, resize);
      }
  }
  if (options.isCropped() && !node.hasFailed())
    applyCrops(node, 1, resizes);
  return resizes;
}

/// The extents of the result; an axis without elements stays so.
static graph::Extents readExtents(Node &node, Value x,
                                  MutableArrayRef<AxisResize> resizes) {
  SmallVector<SizeElement> shape;
  for (AffineExpr extent : node.extents(x))
    shape.push_back({extent, nullptr});
  for (AxisResize &resize : resizes) {
    resize.known = node.knownNumber(resize.scale);
    AffineExpr own = graph::getExtent(x, resize.axis);
    SizeElement extent = node.settle(resize.extent);
    extent.max = kMaxResized;
    auto known = extent.value ? std::nullopt : graph::getConstant(extent.known);
    bool isOut = known && (*known < 1 || *known > kMaxResized);
    if (isOut || graph::getConstant(own) == 0) {
      node.fail("an extent is out of range");
      return {};
    }
    if (!resize.known && node.getSizes().getRange(own).min < 1)
      extent.value = node.select(
          node.compare(CompareKind::eq, node.size(own), index(node, 0)),
          index(node, 0), node.scalar(extent));
    if (extent.value)
      node.require(node.compare(CompareKind::ge, extent.value, index(node, 1)),
                   "an extent is out of range");
    shape[resize.axis] = extent;
  }
  return node.readShape(shape, node.getResultName(), kUsualElements);
}

static void importResize(Node &node) {
  Value x = node.input(0);
  auto options = readOptions(node);
  if (!x || !options)
    return;
  SmallVector<AxisResize> resizes = readAxes(node, x, *options);
  if (node.hasFailed())
    return;
  graph::Extents extents = readExtents(node, x, resizes);
  Type type = node.elementType(x);
  bool isRounded = isa<IntegerType>(type) && options->mode != "nearest";
  if (isRounded) // integers are interpolated as floats
    x = node.cast(x, Float32Type::get(node.getContext()));
  if (node.hasFailed())
    return;
  x = resizeAxes(node, x, *options, resizes, extents);
  node.setResult(0, isRounded && x ? node.cast(x, type) : x);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Resize", 10, last, importResize},
    {"Upsample", 7, 9, importResize},
};

ArrayRef<OpRow> getResizeOps() { return rows; }

} // namespace tcc::onnx_import

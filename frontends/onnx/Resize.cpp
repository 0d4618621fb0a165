//===- Resize.cpp - Resize and Upsample -----------------------------------===//
//
// Interpolation is separable: each axis in turn becomes a weighted sum of
// gathers, whose indices and weights are computed here. Nearest by a whole
// factor repeats elements, which also works for dynamic extents.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Node.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

namespace {

struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubicA, extrapolation;
  bool isAntialiased, excludesOutside;
};

/// One resized axis.
struct AxisResize {
  int64_t axis;
  double scale;                // result / input, as given or from the sizes
  std::optional<int64_t> size; // of the result, where given
  double cropStart = 0, cropEnd = 1; // tf_crop_and_resize
};

/// For each result element, the input elements that make it.
struct Taps {
  int64_t count; // a result element
  std::vector<int64_t> indices;
  std::vector<double> weights;
  std::vector<bool> isOutside; // a result element
};

} // namespace

// --- Coordinates -------------------------------------------------------------

/// Where result element `i` lies in the input.
static double getCoordinate(const ResizeOptions &options,
                            const AxisResize &resize, int64_t i,
                            int64_t inExtent, int64_t outExtent) {
  const std::string &mode = options.coordinates;
  if (mode == "asymmetric")
    return i / resize.scale;
  if (mode == "align_corners")
    return outExtent == 1 ? 0 : double(i) * (inExtent - 1) / (outExtent - 1);
  if (mode == "pytorch_half_pixel" && outExtent <= 1)
    return 0;
  if (mode == "tf_crop_and_resize") {
    double start = resize.cropStart, span = resize.cropEnd - start;
    if (outExtent == 1)
      return 0.5 * (resize.cropStart + resize.cropEnd) * (inExtent - 1);
    return start * (inExtent - 1) + i * span * (inExtent - 1) / (outExtent - 1);
  }
  double shift = 0;
  if (mode == "half_pixel_symmetric") {
    double exact = resize.scale * inExtent;
    shift = inExtent / 2.0 * (1 - outExtent / exact);
  }
  return shift + (i + 0.5) / resize.scale - 0.5;
}

static int64_t roundNearest(const std::string &mode, double x) {
  if (mode == "round_prefer_ceil")
    return int64_t(std::floor(x + 0.5));
  if (mode == "floor")
    return int64_t(std::floor(x));
  if (mode == "ceil")
    return int64_t(std::ceil(x));
  return int64_t(std::ceil(x - 0.5)); // round_prefer_floor
}

// --- Taps --------------------------------------------------------------------

static double getLinearWeight(double distance) {
  return std::max(0.0, 1 - std::abs(distance));
}

static double getCubicWeight(double distance, double a) {
  double d = std::abs(distance);
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? (((d - 5) * d + 8) * d - 4) * a : 0;
}

static void appendTaps(Taps &taps, const ResizeOptions &options, double x,
                       double stretch, int64_t inExtent) {
  int64_t first = int64_t(std::floor(x)) - taps.count / 2 + 1;
  double sum = 0;
  size_t begin = taps.weights.size();
  for (int64_t i = first; i < first + taps.count; ++i) {
    double distance = (i - x) / stretch;
    double weight = options.mode == "linear"
                        ? getLinearWeight(distance)
                        : getCubicWeight(distance, options.cubicA);
    bool isOutside = i < 0 || i >= inExtent;
    if (options.excludesOutside && isOutside)
      weight = 0;
    taps.indices.push_back(std::clamp<int64_t>(i, 0, inExtent - 1));
    taps.weights.push_back(weight);
    sum += weight;
  }
  for (size_t i = begin; i < taps.weights.size() && sum != 0; ++i)
    taps.weights[i] /= sum;
}

static Taps computeTaps(const ResizeOptions &options, const AxisResize &resize,
                        int64_t inExtent, int64_t outExtent) {
  Taps taps;
  bool isNearest = options.mode == "nearest";
  // Antialiasing widens the filter when the result is smaller.
  double stretch =
      options.isAntialiased && resize.scale < 1 ? 1 / resize.scale : 1;
  double support = options.mode == "cubic" ? 2 : 1;
  taps.count = isNearest ? 1 : 2 * int64_t(std::ceil(support * stretch));
  for (int64_t i = 0; i < outExtent; ++i) {
    double x = getCoordinate(options, resize, i, inExtent, outExtent);
    taps.isOutside.push_back(x < 0 || x > inExtent - 1);
    if (!isNearest) {
      appendTaps(taps, options, x, stretch, inExtent);
      continue;
    }
    int64_t index = roundNearest(options.nearest, x);
    taps.indices.push_back(std::clamp<int64_t>(index, 0, inExtent - 1));
    taps.weights.push_back(1);
  }
  return taps;
}

// --- Emission ----------------------------------------------------------------

/// Constants along `axis` that broadcast to x.
static Value emitAlong(Node &node, Value x, int64_t axis,
                       ArrayRef<double> numbers) {
  SmallVector<float> narrow(numbers.begin(), numbers.end());
  Type element = node.elementType(x);
  if (!element.isF64())
    element = Float32Type::get(node.getContext());
  auto type = RankedTensorType::get({int64_t(numbers.size())}, element);
  auto dense = element.isF64() ? DenseElementsAttr::get(type, numbers)
                               : DenseElementsAttr::get(type, ArrayRef(narrow));
  Value vector =
      node.create<graph::ConstantOp>({}, {node.attr("value", dense)}, type);
  graph::Extents extents(node.rank(x), node.getSizes().constant(1));
  extents[axis] = node.getSizes().constant(narrow.size());
  return node.reshape(node.cast(vector, node.elementType(x)), extents);
}

static Value emitTaps(Node &node, Value x, int64_t axis, const Taps &taps) {
  int64_t outExtent = taps.isOutside.size();
  Value sum;
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    SmallVector<int64_t> indices;
    SmallVector<double> weights;
    for (int64_t i = 0; i < outExtent; ++i) {
      indices.push_back(taps.indices[i * taps.count + tap]);
      weights.push_back(taps.weights[i * taps.count + tap]);
    }
    Value part = node.gather(x, node.constant(indices), axis);
    if (taps.count == 1 || !part)
      return part;
    if (llvm::all_of(weights, [](double weight) { return weight == 0; }))
      continue;
    Value weighted = node.mul(part, emitAlong(node, part, axis, weights));
    sum = sum ? node.add(sum, weighted) : weighted;
  }
  return sum;
}

/// Elements outside the cropped input get the extrapolation value.
static Value emitOutside(Node &node, Value x, int64_t axis,
                         const ResizeOptions &options, const Taps &taps) {
  if (options.coordinates != "tf_crop_and_resize" || !x)
    return x;
  SmallVector<double> flags(taps.isOutside.begin(), taps.isOutside.end());
  Value flag = emitAlong(node, x, axis, flags);
  Value isOutside =
      node.compare(graph::CompareKind::ne, flag, node.constantLike(0, flag));
  return node.select(isOutside, node.constantLike(options.extrapolation, x), x);
}

/// Nearest by a whole factor: each element repeated. Null if it is not that.
static Value emitRepeat(Node &node, Value x, const ResizeOptions &options,
                        const AxisResize &resize) {
  bool isAsymmetric =
      options.coordinates == "asymmetric" && options.nearest == "floor";
  bool isHalfPixel = options.coordinates == "half_pixel" &&
                     (options.nearest == "round_prefer_floor" ||
                      options.nearest == "round_prefer_ceil");
  auto factor = int64_t(resize.scale);
  if (options.mode != "nearest" || !(isAsymmetric || isHalfPixel) ||
      double(factor) != resize.scale || factor < 1 || factor > kMaxContent)
    return nullptr;
  graph::Extents split = node.extents(x), joined = split;
  split.insert(split.begin() + resize.axis + 1, node.getSizes().constant(1));
  graph::Extents repeated = split;
  repeated[resize.axis + 1] = node.getSizes().constant(factor);
  joined[resize.axis] = joined[resize.axis] * factor;
  Value spread = node.broadcast(node.reshape(x, split), repeated);
  return node.reshape(spread, joined);
}

/// More than this many result elements or taps are refused.
constexpr int64_t kMaxResized = 1 << 16, kMaxTaps = 64;

/// True if coordinates depend on the length of the result. Where a scale makes
/// that a fraction, ONNX's text takes its floor and its reference does not.
static bool usesLength(const ResizeOptions &options) {
  return options.coordinates == "align_corners" ||
         options.coordinates == "tf_crop_and_resize";
}

static Value resizeAxis(Node &node, Value x, const ResizeOptions &options,
                        const AxisResize &resize) {
  auto extent = graph::getConstant(graph::getExtent(x, resize.axis));
  if (!resize.size || (extent && *extent * resize.scale == *resize.size))
    if (Value repeated = emitRepeat(node, x, options, resize))
      return repeated;
  if (!extent)
    return node.unsupported("interpolation along a dynamic dimension");
  float exact = float(*extent) * float(resize.scale); // as ONNX infers it
  double scaled = std::floor(exact);
  if (*extent < 1 || !(scaled >= 0 && scaled <= double(kMaxResized)))
    return node.fail("an extent is out of range");
  if (!resize.size && usesLength(options) && scaled != exact)
    return node.unsupported("'" + options.coordinates +
                            "' with a scale that gives a fractional extent");
  int64_t size = resize.size.value_or(int64_t(scaled));
  if (size < 1 || size > kMaxResized)
    return node.fail("an extent is out of range");
  bool isWide = options.isAntialiased && 1 / resize.scale * 4 > kMaxTaps;
  if (isWide)
    return node.unsupported("antialiasing by a factor of more than 16");
  Taps taps = computeTaps(options, resize, *extent, size);
  return emitOutside(node, emitTaps(node, x, resize.axis, taps), resize.axis,
                     options, taps);
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

/// Scales that sizes stand for; the policy may keep the aspect ratio.
static bool applySizes(Node &node, Value x, ArrayRef<int64_t> sizes,
                       MutableArrayRef<AxisResize> resizes) {
  std::string policy = node.stringAttr("keep_aspect_ratio_policy", "stretch");
  double smallest = INFINITY, largest = 0;
  for (auto [resize, size] : llvm::zip(resizes, sizes)) {
    auto extent = graph::getConstant(graph::getExtent(x, resize.axis));
    if (!extent)
      return node.unsupported("sizes of a dynamic dimension") != nullptr;
    if (*extent < 1 || size < 1 || size > kMaxResized)
      return node.fail("an extent is out of range") != nullptr;
    resize.scale = double(size) / double(*extent);
    resize.size = size;
    smallest = std::min(smallest, resize.scale);
    largest = std::max(largest, resize.scale);
  }
  if (policy == "stretch")
    return true;
  if (policy != "not_larger" && policy != "not_smaller")
    return node.fail("keep_aspect_ratio_policy is unknown") != nullptr;
  for (AxisResize &resize : resizes) {
    int64_t extent = *graph::getConstant(graph::getExtent(x, resize.axis));
    resize.scale = policy == "not_larger" ? smallest : largest;
    resize.size = int64_t(std::floor(extent * resize.scale + 0.5));
  }
  return true;
}

/// Regions of interest hold the starts, then the ends of the axes.
static bool applyCrops(Node &node, int64_t input,
                       MutableArrayRef<AxisResize> resizes) {
  auto roi = node.requireFloats(input, "a region of interest");
  if (!roi)
    return false;
  if (roi->size() != 2 * resizes.size())
    return node.fail("roi needs two values an axis") != nullptr;
  for (auto [i, resize] : llvm::enumerate(resizes)) {
    resize.cropStart = (*roi)[i];
    resize.cropEnd = (*roi)[resizes.size() + i];
  }
  return true;
}

/// Scales are an attribute of Upsample-7, input 1 of Upsample-9 and Resize-10,
/// and input 2 after; sizes are input 3.
static std::optional<SmallVector<AxisResize>>
readAxes(Node &node, Value x, const ResizeOptions &options) {
  int64_t rank = node.rank(x), version = node.getVersion();
  SmallVector<AxisResize> resizes;
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    axes.push_back(axis);
  if (auto given = node.intsAttr("axes"))
    axes = node.axes(*given, rank);
  if (node.hasFailed())
    return std::nullopt;
  for (int64_t axis : axes)
    resizes.push_back({axis, 1, std::nullopt});
  bool hasSizes =
      version >= 11 && node.hasInput(3) &&
      !(node.type(3).hasStaticShape() && node.type(3).getNumElements() == 0);
  if (hasSizes) {
    auto sizes = node.requireInts(3, "sizes");
    if (!sizes)
      return std::nullopt;
    if (sizes->size() != axes.size())
      node.fail("one size an axis is expected");
    if (node.hasFailed() || !applySizes(node, x, *sizes, resizes))
      return std::nullopt;
  } else {
    auto scales = version < 9
                      ? node.floatsAttr("scales")
                      : node.requireFloats(version < 11 ? 1 : 2, "scales");
    if (!scales || scales->size() != axes.size()) {
      node.fail("one scale an axis is expected");
      return std::nullopt;
    }
    for (auto [resize, scale] : llvm::zip(resizes, *scales)) {
      if (!(scale > 0 && scale < double(kMaxResized)))
        node.fail("a scale is out of range");
      resize.scale = scale;
    }
  }
  if (options.coordinates == "tf_crop_and_resize")
    applyCrops(node, 1, resizes);
  if (node.hasFailed())
    return std::nullopt;
  return resizes;
}

static void importResize(Node &node) {
  Value x = node.input(0);
  auto options = readOptions(node);
  auto resizes = x && options ? readAxes(node, x, *options) : std::nullopt;
  if (!resizes)
    return;
  Type type = node.elementType(x);
  bool isRounded = isa<IntegerType>(type) && options->mode != "nearest";
  if (isRounded) // integers are interpolated as floats
    x = node.cast(x, Float32Type::get(node.getContext()));
  bool isCropped = options->coordinates == "tf_crop_and_resize";
  for (const AxisResize &resize : *resizes)
    if (x && (resize.scale != 1 || isCropped))
      x = resizeAxis(node, x, *options, resize);
  node.setResult(0, isRounded && x ? node.cast(x, type) : x);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Resize", 10, last, importResize},
    {"Upsample", 7, 9, importResize},
};

ArrayRef<OpRow> getResizeOps() { return rows; }

} // namespace tcc::onnx_import

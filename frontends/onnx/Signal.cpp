//===- Signal.cpp - Windows and Fourier transforms ------------------------===//
//
// A transform of a known length is a product with matrices of sines and
// cosines.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

static Type getF64(Node &node) { return Float64Type::get(node.getContext()); }

static Type getIndex(Node &node) {
  return IntegerType::get(node.getContext(), 64);
}

// --- Windows -----------------------------------------------------------------

/// c0 + c1 cos(2 pi n / N) + c2 cos(4 pi n / N)
static void setWindow(Node &node, ArrayRef<double> coefficients) {
  auto size = node.sizeInput(0, "a size");
  int64_t typeNumber = node.intAttr("output_datatype", 1);
  Type type = getElementType(typeNumber, node.getContext());
  bool isPeriodic = node.intAttr("periodic", 1) != 0;
  if (!size || node.hasFailed())
    return;
  if (!type)
    return (void)node.unsupported("element type " + getTypeName(typeNumber));
  if (!size->value &&
      (node.getSizes().getRange(size->known).min < 1 ||
       node.getSizes().getMaxElements({size->known}) > kMaxElements))
    return (void)node.fail("the size is out of range");
  Type real = getF64(node);
  AffineExpr count = node.readSize(*size, node.getResultName(), kUsualExtent);
  AffineExpr steps = isPeriodic ? count : count - 1;
  Value turns =
      node.div(node.iota({count}, 0, real), node.cast(node.size(steps), real));
  Value sum = node.constant(coefficients[0], real);
  for (int64_t i : {1, 2}) {
    Value angle = node.mul(turns, node.constant(2 * M_PI * i, real));
    Value cosine = node.create<graph::CosOp>(angle);
    sum = node.add(sum, node.mul(cosine, node.constant(coefficients[i], real)));
  }
  node.setResult(0, node.cast(sum, type));
}

static void importHannWindow(Node &node) { setWindow(node, {0.5, -0.5, 0}); }
static void importHammingWindow(Node &node) {
  setWindow(node, {25.0 / 46, -21.0 / 46, 0});
}
static void importBlackmanWindow(Node &node) {
  setWindow(node, {0.42, -0.5, 0.08});
}

// --- Fourier transforms ------------------------------------------------------

namespace {

struct Dft {
  int64_t axis, length;
  bool isInverse, isOneSided;

  int64_t getHalf() const { return length / 2 + 1; }
  int64_t getInputs() const {
    return isInverse && isOneSided ? getHalf() : length;
  }
  int64_t getOutputs() const {
    return !isInverse && isOneSided ? getHalf() : length;
  }
};

} // namespace

/// A matrix of known numbers, stored as a constant of the model would be.
static Value emitMatrix(Node &node, StringRef name,
                        std::array<int64_t, 2> shape, ArrayRef<double> numbers,
                        Type type) {
  GraphImporter &importer = node.getImporter();
  std::string path = node.getProto().output(0) + "/" + name.str();
  std::vector<float> narrow(numbers.begin(), numbers.end());
  Type f32 = Float32Type::get(node.getContext());
  Tensor *tensor =
      type.isF64() ? importer.makeLiteral(path, shape, type, numbers)
                   : importer.makeLiteral(path, shape, f32, ArrayRef(narrow));
  return node.cast(importer.materialize(*tensor), type);
}

/// A matrix [inputs, outputs] of sines or cosines of 2 pi i j / length.
static Value emitWaves(Node &node, const Dft &dft, StringRef name,
                       double (*wave)(double), double scale, Type type) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < dft.getInputs(); ++i) {
    // Bins other than the first and the middle one stand for two.
    bool isDouble =
        dft.isInverse && dft.isOneSided && i != 0 && 2 * i != dft.length;
    for (int64_t j = 0; j < dft.getOutputs(); ++j) {
      double turns = double(i * j % dft.length) / double(dft.length);
      numbers.push_back((isDouble ? 2 : 1) * scale * wave(2 * M_PI * turns));
    }
  }
  return emitMatrix(node, name, {dft.getInputs(), dft.getOutputs()}, numbers,
                    type);
}

/// The first `count` elements of an axis, zeros where there are fewer.
static Value fitAxis(Node &node, Value x, int64_t axis, int64_t count) {
  auto extent = graph::getConstant(graph::getExtent(x, axis));
  if (!extent)
    return node.unsupported("a transform along a dynamic dimension");
  if (*extent >= count)
    return node.slice(x, axis, 0, count);
  SmallVector<int64_t> low(node.rank(x), 0), high(node.rank(x), 0);
  high[axis] = count - *extent;
  return node.pad(x, node.constantLike(0, x), low, high);
}

/// Transforms x [..., 1 or 2], of which the last axis holds the real and the
/// imaginary part.
static Value emitDft(Node &node, Value x, const Dft &dft) {
  if (!x)
    return nullptr;
  int64_t parts = node.rank(x) - 1; // the axis of the two parts
  auto partCount = graph::getConstant(graph::getExtent(x, parts));
  if (parts < 2 || dft.axis == parts || (partCount != 1 && partCount != 2))
    return node.fail("a signal [batch, ..., 1 or 2] and an axis before the "
                     "last are expected");
  if (dft.length < 1 || dft.length > kMaxContent)
    return node.unsupported("a transform of " + llvm::Twine(dft.length) +
                            " elements");
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, parts));
  std::swap(permutation[dft.axis], permutation.back());
  Value fitted = fitAxis(node, x, dft.axis, dft.getInputs());
  auto part = [&](int64_t i) {
    Value one = node.squeeze(node.slice(fitted, parts, i, 1), {parts});
    return node.transpose(one, permutation);
  };
  if (!fitted)
    return nullptr;
  Value real = part(0), imaginary = partCount == 2 ? part(1) : nullptr;
  Type type = node.elementType(x);
  double scale = dft.isInverse ? 1 / double(dft.length) : 1;
  Value cosines = emitWaves(node, dft, "cosines", std::cos, scale, type);
  Value sines = emitWaves(node, dft, "sines", std::sin,
                          dft.isInverse ? -scale : scale, type);
  auto arrange = [&](Value y) {
    return node.unsqueeze(node.transpose(y, permutation), {parts});
  };
  // (a + bi)(cos - i sin)
  Value first = node.matmul(real, cosines);
  if (imaginary)
    first = node.add(first, node.matmul(imaginary, sines));
  if (dft.isInverse && dft.isOneSided)
    return arrange(first);
  Value second = node.create<graph::NegOp>(node.matmul(real, sines));
  if (imaginary)
    second = node.add(node.matmul(imaginary, cosines), second);
  return node.hasFailed()
             ? nullptr
             : node.concat({arrange(first), arrange(second)}, parts);
}

// --- Transforms whose length only a run knows
// ---------------------------------

namespace {

/// A transform whose numbers may be computed: i64 scalars.
struct OpenDft {
  SizeElement axis;
  std::optional<SizeElement> length; // else that of the axis
  bool isInverse, isOneSided;
};

} // namespace

/// [inputs, outputs] as emitWaves has it; zeros for inputs behind the last one.
static Value computeWaves(Node &node, const OpenDft &dft, Value length,
                          ArrayRef<AffineExpr> extents, bool isSine,
                          Type type) {
  Value i = node.iota(extents, 0, getIndex(node));
  Value j = node.iota(extents, 1, getIndex(node));
  Value zero = index(node, 0), one = index(node, 1), two = index(node, 2);
  Value turns = node.cast(
      node.pointwise<graph::RemOp>({node.mul(i, j), length}), getF64(node));
  Value count = node.cast(length, getF64(node));
  Value angle =
      node.mul(node.div(turns, count), node.constant(2 * M_PI, getF64(node)));
  Value wave = isSine ? node.create<graph::SinOp>(angle)
                      : node.create<graph::CosOp>(angle);
  Value inputs = length;
  if (dft.isInverse) {
    wave = node.div(
        wave, isSine ? node.sub(node.constant(0, getF64(node)), count) : count);
    if (dft.isOneSided) {
      inputs = node.add(node.div(length, two), one);
      // Bins other than the first and the middle one stand for two.
      Value isSingle = node.pointwise<graph::OrOp>(
          {node.compare(graph::CompareKind::eq, i, zero),
           node.compare(graph::CompareKind::eq, node.mul(i, two), length)});
      wave = node.select(isSingle, wave, node.add(wave, wave));
    }
  }
  Value isInside = node.compare(graph::CompareKind::lt, i, inputs);
  return node.cast(node.select(isInside, wave, node.constant(0, getF64(node))),
                   type);
}

/// x [before, signal, behind, 1 or 2] with its signals transformed.
static Value transformRows(Node &node, Value x, const OpenDft &dft,
                           Value length) {
  if (!x || node.hasFailed())
    return nullptr;
  graph::Extents extents = node.extents(x);
  Value one = index(node, 1);
  length = node.max(length, one);
  bool hasHalf = dft.isOneSided && !dft.isInverse;
  Value outputs =
      hasHalf ? node.add(node.div(length, index(node, 2)), one) : length;
  int64_t outer = node.getSizes().getMaxElements({extents[0], extents[2]});
  int64_t most =
      std::min(kMaxContent, kUsualElements / std::max<int64_t>(outer, 1));
  if (most < 1)
    return node.unsupported("so large a signal whose axis or length is known "
                            "only at run time");
  AffineExpr count = node.readSize(node.settle({AffineExpr(), outputs}),
                                   node.getResultName() + ".bins", most);
  Type type = node.elementType(x);
  Value cosines, sines;
  if (!node.hasFailed()) {
    cosines = computeWaves(node, dft, length, {extents[1], count}, false, type);
    sines = computeWaves(node, dft, length, {extents[1], count}, true, type);
  }
  auto multiply = [&](int64_t part, Value waves) {
    Value rows = node.squeeze(node.slice(x, 3, part, 1), {3});
    return node.matmul(node.transpose(rows, {0, 2, 1}), waves);
  };
  auto arrange = [&](Value y) {
    return node.unsqueeze(node.transpose(y, {0, 2, 1}), {3});
  };
  bool isComplex = graph::getConstant(extents[3]) == 2;
  Value real = multiply(0, cosines);
  if (isComplex)
    real = node.add(real, multiply(1, sines));
  if (dft.isInverse && dft.isOneSided)
    return real ? arrange(real) : nullptr;
  Value imaginary = multiply(0, sines);
  imaginary = isComplex ? node.sub(multiply(1, cosines), imaginary)
                        : node.sub(node.constantLike(0, x), imaginary);
  return node.hasFailed() ? nullptr
                          : node.concat({arrange(real), arrange(imaginary)}, 3);
}

namespace {

/// What lies before an axis, along it and behind it; and for each axis whether
/// it is that one, or null values where it is known.
struct Split {
  SmallVector<SizeElement> extents;
  SmallVector<Value> isHere;
  std::optional<int64_t> axis;
};

} // namespace

static Split splitAround(Node &node, ArrayRef<AffineExpr> extents,
                         const SizeElement &axisElement) {
  Split split;
  MLIRContext *context = node.getContext();
  int64_t rank = extents.size();
  if (!axisElement.value) {
    // The axis of the parts is counted, too.
    int64_t axis = node.axis(*graph::getConstant(axisElement.known), rank + 1);
    if (axis == rank)
      node.fail("an axis before the last is expected");
    split.axis = std::min(axis, rank - 1);
    for (auto part :
         {extents.take_front(*split.axis), extents.slice(*split.axis, 1),
          extents.drop_front(*split.axis + 1)})
      split.extents.push_back({graph::getNumElements(part, context), nullptr});
    return split;
  }
  Value axis = axisElement.value, one = index(node, 1);
  Value before = one, signal = one, behind = one;
  Value isBefore = node.constant(1, IntegerType::get(context, 1));
  requireAxis(node, axis, rank + 1);
  for (int64_t i = 0; i < rank; ++i) {
    Value extent = node.size(extents[i]);
    split.isHere.push_back(isAxis(node, axis, i, rank + 1));
    Value isOther = node.create<graph::NotOp>(split.isHere[i]);
    signal = node.select(isOther, signal, extent);
    Value own = node.select(isOther, extent, one);
    behind = node.mul(behind, node.select(isBefore, one, own));
    isBefore = node.create<graph::AndOp>({isBefore, isOther});
    before = node.mul(before, node.select(isBefore, own, one));
  }
  for (Value part : {before, signal, behind})
    split.extents.push_back({AffineExpr(), part});
  return split;
}

/// A transform along an axis, or of a length, that only a run knows.
static Value emitDft(Node &node, Value x, const OpenDft &dft) {
  int64_t rank = node.rank(x) - 1;
  graph::Extents own = node.extents(x);
  auto parts = rank < 0 ? std::nullopt : graph::getConstant(own[rank]);
  if (rank < 2 || (parts != 1 && parts != 2))
    return node.fail("a signal [batch, ..., 1 or 2] is expected");
  Split split = splitAround(node, ArrayRef(own).drop_back(), dft.axis);
  if (node.hasFailed())
    return nullptr;
  Value one = index(node, 1), length;
  if (dft.length) {
    length = node.scalar(*dft.length);
  } else {
    length = node.scalar(split.extents[1]);
    if (dft.isInverse && dft.isOneSided)
      length = node.mul(node.sub(length, one), index(node, 2));
  }
  demand(node, node.compare(graph::CompareKind::ge, length, one),
         "dft_length is out of range");
  std::string name = node.getResultName();
  split.extents.push_back({own[rank], nullptr});
  Value result = transformRows(
      node, reshapeChecked(node, x, split.extents, name + ".rows"), dft,
      length);
  if (!result)
    return nullptr;
  AffineExpr bins = graph::getExtent(result, 1);
  SmallVector<SizeElement> shape;
  for (int64_t i = 0; i < rank; ++i) {
    SizeElement extent{split.axis == i ? bins : own[i], nullptr};
    if (!split.axis)
      extent.value =
          node.select(split.isHere[i], node.size(bins), node.size(own[i]));
    shape.push_back(extent);
  }
  shape.push_back({graph::getExtent(result, 3), nullptr});
  return reshapeChecked(node, result, shape, name);
}

/// The length to transform: given, or that of the axis.
static std::optional<int64_t> readLength(Node &node, Value x, const Dft &dft) {
  if (node.hasInput(1))
    return node.requireInt(1, "dft_length", 0);
  auto extent = graph::getConstant(graph::getExtent(x, dft.axis));
  if (!extent) {
    node.unsupported("a transform along a dynamic dimension");
    return std::nullopt;
  }
  return dft.isInverse && dft.isOneSided ? 2 * (*extent - 1) : *extent;
}

static void importDft(Node &node) {
  Value x = node.input(0);
  bool isOld = node.getVersion() < 20;
  if (x && (node.isComputed(1) || (!isOld && node.isComputed(2)))) {
    OpenDft open{
        {node.getSizes().constant(isOld ? node.intAttr("axis", 1) : -2),
         nullptr},
        std::nullopt,
        node.intAttr("inverse", 0) != 0,
        node.intAttr("onesided", 0) != 0};
    if (node.hasInput(1))
      open.length = node.sizeInput(1, "dft_length");
    if (!isOld && node.hasInput(2))
      open.axis = node.sizeInput(2, "axis").value_or(SizeElement());
    return node.hasFailed() ? void()
                            : node.setResult(0, emitDft(node, x, open));
  }
  auto axis = isOld ? std::optional(node.intAttr("axis", 1))
                    : node.requireInt(2, "axis", -2);
  if (!x || !axis)
    return;
  Dft dft;
  dft.axis = node.axis(*axis, node.rank(x));
  dft.isInverse = node.intAttr("inverse", 0) != 0;
  dft.isOneSided = node.intAttr("onesided", 0) != 0;
  auto length = node.hasFailed() ? std::nullopt : readLength(node, x, dft);
  if (!length)
    return;
  dft.length = *length;
  node.setResult(0, emitDft(node, x, dft));
}

constexpr char kMisfit[] = "frame_step, frame_length and window do not fit";

/// Transforms overlapping frames: x [batch, signal, 1 or 2] gives [batch,
/// frame, bin, 2].
static void importStft(Node &node) {
  Value x = node.input(0);
  Value window = node.hasInput(2) ? node.input(2) : nullptr;
  auto step = node.sizeInput(1, "frame_step");
  if (!x || !step || node.hasFailed())
    return;
  if (node.rank(x) != 3 || (window && node.rank(window) != 1))
    return (void)node.fail("a signal of rank 3 and a window are expected");
  const Sizes &sizes = node.getSizes();
  AffineExpr signal = graph::getExtent(x, 1);
  std::optional<SizeElement> length =
      SizeElement{window ? graph::getExtent(window, 0) : signal, nullptr};
  if (node.hasInput(3))
    length = node.sizeInput(3, "frame_length");
  if (!length)
    return;
  Value one = index(node, 1), hop = node.scalar(*step);
  Value samples = node.scalar(*length);
  demand(node, node.compare(graph::CompareKind::ge, hop, one), kMisfit);
  demand(node, node.compare(graph::CompareKind::ge, samples, one), kMisfit);
  std::string name = node.getResultName();
  int64_t most = sizes.getRange(signal).max;
  AffineExpr extent = node.readSize(*length, name + ".length", most);
  if (window)
    demand(node,
           node.compare(graph::CompareKind::eq, samples,
                        node.size(graph::getExtent(window, 0))),
           kMisfit);
  Value rest = node.sub(node.size(signal), samples);
  demand(node, node.compare(graph::CompareKind::ge, rest, index(node, 0)),
         "the signal is shorter than a frame");
  if (node.hasFailed())
    return;
  Size known, span = sizes.apply(SizeOp::sub, signal, extent);
  if (span && !step->value)
    known = sizes.apply(SizeOp::div, *span, step->known);
  Value hops = node.div(rest, node.max(hop, one));
  SizeElement frameCount =
      known ? SizeElement{*known + 1, nullptr}
            : node.settle({AffineExpr(), node.add(hops, one)});
  graph::Extents frames = {node.readSize(frameCount, name + ".frames", most),
                           extent};
  if (window) // of the same extent
    window = node.reshape(window, {extent});
  Value start = node.mul(node.iota(frames, 0, getIndex(node)), hop);
  Value framed =
      node.gather(x, node.add(start, node.iota(frames, 1, getIndex(node))), 1);
  if (window)
    framed = node.mul(framed, node.unsqueeze(window, {1}));
  bool isOneSided = node.intAttr("onesided", 1) != 0;
  auto fixed = graph::getConstant(extent);
  node.setResult(
      0, fixed ? emitDft(node, framed, Dft{2, *fixed, false, isOneSided})
               : emitDft(node, framed,
                         OpenDft{{sizes.constant(2), nullptr},
                                 SizeElement{extent, nullptr},
                                 false,
                                 isOneSided}));
}

// --- Mel scale ---------------------------------------------------------------

/// The spectrum's bins at which the triangles of the mel scale begin, peak and
/// end, [bins + 2] in i64: those of bin i are edges i, i + 1 and i + 2.
static Value findMelEdges(Node &node, AffineExpr bins, Value length, Value rate,
                          Value low, Value high) {
  Type real = getF64(node);
  auto number = [&](double value) { return node.constant(value, real); };
  auto getMel = [&](Value hertz) {
    Value ratio = node.add(node.div(hertz, number(700)), number(1));
    Value logarithm =
        node.div(node.create<graph::LogOp>(ratio), number(std::log(10)));
    return node.mul(number(2595), logarithm);
  };
  Value lowMel = getMel(low);
  Value step = node.div(node.sub(getMel(high), lowMel),
                        node.cast(node.size(bins + 2), real));
  Value mel = node.add(lowMel, node.mul(node.iota({bins + 2}, 0, real), step));
  Value power =
      node.pointwise<graph::PowOp>({number(10), node.div(mel, number(2595))});
  Value hertz = node.mul(number(700), node.sub(power, number(1)));
  Value count = node.add(node.cast(length, real), number(1));
  return node.cast(node.create<graph::FloorOp>(
                       node.div(node.mul(count, hertz), node.cast(rate, real))),
                   getIndex(node));
}

/// Weights [spectrum bin, mel bin] that rise to a peak and fall linearly.
static Value weighMel(Node &node, Value edges, AffineExpr rows,
                      AffineExpr bins) {
  graph::Extents extents = {rows, bins};
  auto edge = [&](int64_t i) {
    Value own = node.slice(edges, 0, node.getSizes().constant(i), bins);
    return node.broadcast(node.unsqueeze(own, {0}), extents);
  };
  Value low = edge(0), peak = edge(1), high = edge(2);
  Value row = node.iota(extents, 0, getIndex(node));
  auto share = [&](Value part, Value whole) {
    Value positive = node.max(part, index(node, 0));
    return node.div(node.cast(positive, getF64(node)),
                    node.cast(node.max(whole, index(node, 1)), getF64(node)));
  };
  Value rise = share(node.sub(row, low), node.sub(peak, low));
  Value fall = share(node.sub(high, row), node.sub(high, peak));
  Value isBefore = node.compare(graph::CompareKind::lt, row, peak);
  Value isPeak = node.compare(graph::CompareKind::eq, row, peak);
  return node.select(isPeak, node.constant(1, getF64(node)),
                     node.select(isBefore, rise, fall));
}

static void importMelWeightMatrix(Node &node) {
  SizeElement sizes[3];
  StringRef names[] = {"num_mel_bins", "dft_length", "sample_rate"};
  for (int64_t i = 0; i < 3; ++i)
    sizes[i] = node.sizeInput(i, names[i]).value_or(SizeElement());
  int64_t typeNumber = node.intAttr("output_datatype", 1);
  Type type = getElementType(typeNumber, node.getContext());
  Value hertz[2];
  for (int64_t i = 0; i < 2 && !node.hasFailed(); ++i) {
    auto known = node.knownFloats(3 + i);
    hertz[i] =
        known && known->size() == 1
            ? node.constant(known->front(), getF64(node))
            : node.cast(node.reshape(node.input(3 + i), {}), getF64(node));
  }
  if (node.hasFailed())
    return;
  if (!type)
    return (void)node.unsupported("element type " + getTypeName(typeNumber));
  Value one = index(node, 1), length = node.scalar(sizes[1]);
  Value rate = node.scalar(sizes[2]);
  for (const SizeElement &size : sizes)
    demand(node, node.compare(graph::CompareKind::ge, node.scalar(size), one),
           "an input is out of range");
  constexpr int64_t kMaxLength = 1 << 20;
  SmallVector<SizeElement> shape = {
      node.settle({AffineExpr(),
                   node.add(node.div(length, index(node, 2)), one),
                   kMaxLength}),
      node.settle(sizes[0])};
  shape[1].max = kMaxContent;
  for (const SizeElement &size : shape)
    if (!size.value && node.getSizes().getRange(size.known).max > size.max)
      return (void)node.fail("an input is out of range");
  graph::Extents extents =
      node.readShape(shape, node.getResultName(), kUsualElements);
  if (node.hasFailed())
    return;
  Value edges =
      findMelEdges(node, extents[1], length, rate, hertz[0], hertz[1]);
  Value first = node.reshape(node.slice(edges, 0, 0, 1), {});
  Value last = node.reshape(
      node.slice(edges, 0, extents[1] + 1, node.getSizes().constant(1)), {});
  demand(node,
         node.create<graph::AndOp>(
             {node.create<graph::AndOp>(
                  {node.compare(graph::CompareKind::ge, first, index(node, 0)),
                   node.compare(graph::CompareKind::ge, last, first)}),
              node.compare(graph::CompareKind::le, last,
                           node.div(length, index(node, 2)))}),
         "the edges are outside of the spectrum");
  node.setResult(
      0, node.cast(weighMel(node, edges, extents[0], extents[1]), type));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"BlackmanWindow", 17, last, importBlackmanWindow},
    {"DFT", 17, last, importDft},
    {"HammingWindow", 17, last, importHammingWindow},
    {"HannWindow", 17, last, importHannWindow},
    {"MelWeightMatrix", 17, last, importMelWeightMatrix},
    {"STFT", 17, last, importStft},
};

ArrayRef<OpRow> getSignalOps() { return rows; }

} // namespace tcc::onnx_import

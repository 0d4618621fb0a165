//===- Signal.cpp - Windows and Fourier transforms ------------------------===//
//
// A transform of a known length is a product with matrices of sines and
// cosines.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

static Type getF64(Node &node) { return Float64Type::get(node.getContext()); }

static Type getIndex(Node &node) {
  return IntegerType::get(node.getContext(), 64);
}

// --- Windows -----------------------------------------------------------------

/// c0 + c1 cos(2 pi n / N) + c2 cos(4 pi n / N)
static void setWindow(Node &node, ArrayRef<double> coefficients) {
  auto size = node.requireContent(0, "a size");
  int64_t typeNumber = node.intAttr("output_datatype", 1);
  Type type = getElementType(typeNumber, node.getContext());
  bool isPeriodic = node.intAttr("periodic", 1) != 0;
  if (!size || node.hasFailed())
    return;
  if (!type)
    return (void)node.unsupported("element type " + getTypeName(typeNumber));
  if (size->size() != 1 || node.getSizes().getRange(size->front()).min < 1 ||
      node.getSizes().getMaxElements(*size) > kMaxElements)
    return (void)node.fail("the size is out of range");
  Type real = getF64(node);
  AffineExpr steps = isPeriodic ? size->front() : size->front() - 1;
  Value turns =
      node.div(node.iota(*size, 0, real), node.cast(node.size(steps), real));
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
  auto axis = node.getVersion() < 20 ? std::optional(node.intAttr("axis", 1))
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

/// Transforms overlapping frames: x [batch, signal, 1 or 2] gives [batch,
/// frame, bin, 2].
static void importStft(Node &node) {
  Value x = node.input(0);
  Value window = node.hasInput(2) ? node.input(2) : nullptr;
  auto step = node.requireInt(1, "frame_step", 1);
  if (!x || !step || node.hasFailed())
    return;
  if (node.rank(x) != 3 || (window && node.rank(window) != 1))
    return (void)node.fail("a signal of rank 3 and a window are expected");
  auto whole = graph::getConstant(window ? graph::getExtent(window, 0)
                                         : graph::getExtent(x, 1));
  auto length = node.requireInt(3, "frame_length", whole.value_or(0));
  if (!length)
    return;
  if (*step < 1 || *length < 1 || (window && whole != *length))
    return (void)node.fail("frame_step, frame_length and window do not fit");
  const Sizes &sizes = node.getSizes();
  Size rest =
      sizes.apply(SizeOp::sub, graph::getExtent(x, 1), sizes.constant(*length));
  Size hops = rest ? sizes.apply(SizeOp::div, *rest, sizes.constant(*step))
                   : std::nullopt;
  if (!hops || sizes.getRange(*rest).min < 0)
    return (void)node.fail("the signal is shorter than a frame");
  Type index = getIndex(node);
  graph::Extents frames = {*hops + 1, sizes.constant(*length)};
  Value start = node.mul(node.iota(frames, 0, index),
                         node.constant(double(*step), index));
  Value framed =
      node.gather(x, node.add(start, node.iota(frames, 1, index)), 1);
  if (window)
    framed = node.mul(framed, node.unsqueeze(window, {1}));
  bool isOneSided = node.intAttr("onesided", 1) != 0;
  node.setResult(0, emitDft(node, framed, {2, *length, false, isOneSided}));
}

// --- Mel scale ---------------------------------------------------------------

/// The spectrum's bins at which the triangles of the mel scale begin, peak and
/// end: those of bin i are edges i, i + 1 and i + 2. Empty if one is outside.
static SmallVector<int64_t> getMelEdges(int64_t bins, int64_t length,
                                        double rate, double low, double high) {
  auto getMel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  auto getHertz = [](double mel) {
    return 700 * (std::pow(10, mel / 2595) - 1);
  };
  double step = (getMel(high) - getMel(low)) / double(bins + 2);
  SmallVector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = getHertz(getMel(low) + double(i) * step);
    double edge = std::floor(double(length + 1) * hertz / rate);
    bool isInside = edge >= (edges.empty() ? 0 : double(edges.back())) &&
                    edge <= double(length / 2);
    if (!isInside)
      return {};
    edges.push_back(int64_t(edge));
  }
  return edges;
}

/// Weights [spectrum bin, mel bin] that rise and fall linearly.
static std::vector<double> makeMelWeights(int64_t bins, int64_t rows,
                                          ArrayRef<int64_t> edges) {
  std::vector<double> weights(rows * bins, 0.0);
  for (int64_t i = 0; i < bins; ++i) {
    int64_t low = edges[i], peak = edges[i + 1], high = edges[i + 2];
    for (int64_t j = low; j < peak; ++j)
      weights[j * bins + i] = double(j - low) / double(peak - low);
    weights[peak * bins + i] = 1;
    for (int64_t j = peak + 1; j < high; ++j)
      weights[j * bins + i] = double(high - j) / double(high - peak);
  }
  return weights;
}

static void importMelWeightMatrix(Node &node) {
  auto bins = node.requireInt(0, "num_mel_bins", 0);
  auto length = node.requireInt(1, "dft_length", 0);
  auto rate = node.requireInt(2, "sample_rate", 0);
  auto low = node.requireFloats(3, "lower_edge_hertz");
  auto high = node.requireFloats(4, "upper_edge_hertz");
  int64_t typeNumber = node.intAttr("output_datatype", 1);
  Type type = getElementType(typeNumber, node.getContext());
  if (!bins || !length || !rate || !low || !high || node.hasFailed())
    return;
  if (!type)
    return (void)node.unsupported("element type " + getTypeName(typeNumber));
  constexpr int64_t kMaxLength = 1 << 20;
  if (*bins < 1 || *bins > kMaxContent || *length < 1 || *length > kMaxLength ||
      *rate < 1 || low->size() != 1 || high->size() != 1)
    return (void)node.fail("an input is out of range");
  auto edges =
      getMelEdges(*bins, *length, double(*rate), low->front(), high->front());
  if (edges.empty())
    return (void)node.fail("the edges are outside of the spectrum");
  int64_t rows = *length / 2 + 1;
  node.setResult(0, emitMatrix(node, "weights", {rows, *bins},
                               makeMelWeights(*bins, rows, edges), type));
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

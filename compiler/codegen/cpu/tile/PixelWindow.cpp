#include "compiler/codegen/cpu/tile/Window.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Vectors of channels and neighbouring pixels that are worked on at once: each
/// is a chain of dependent combinations, which take several cycles each.
constexpr int64_t vectorsAtOnce = 4, pixelsAtOnce = 2;

/// Emits rows of pixels. Vectors of results run along the channels, so that all
/// lanes have the same taps inside the input.
class PixelEmitter {
public:
  PixelEmitter(KernelBuilder &b, const Window &window);
  void emitRow(Value row);

private:
  KernelBuilder &b;
  const Window &window;
  int64_t lanes;
  VectorType resultType, inputType;
  SmallVector<Value> strides; // of the input's dimensions
  Value inputChannels, imageSize;
  Memory results;  // of one block, for the epilogue
  Memory computed; // a vector of inputs

  // The row, and the block of channels.
  Value image, imageStart;
  SmallVector<Value> outer;
  Value channel;
  int64_t vectors = 0;
  Value mask, inputMask; // of the channels that exist; null if all do

  /// What the combinations of a block carry: vectors of one pixel after those
  /// of another.
  using Partials = SmallVector<Value>;

  const WindowDimension &row() const { return window.dimensions.back(); }
  Value toInputs(Value channels);
  Value makeMask(Value count);
  void emitBlock(Value firstChannel, int64_t vectorCount, Value lanesInside);
  std::pair<Value, Value> findWholePixels();
  void emitPixels(Value column, int64_t count, bool isWhole);
  Partials combineTaps(size_t d, SmallVector<Value> tap,
                       SmallVector<Value> position, ValueRange columns,
                       bool isWhole, Partials partials);
  Partials combinePixels(ArrayRef<Value> tap, ArrayRef<Value> position,
                         ValueRange columns, const Partials &partials);
  std::pair<Value, Value> findTaps(const WindowDimension &d, Value output);
  Value inputPosition(const WindowDimension &d, Value output, Value tap);
  Value spread(Value inputs, int64_t number);
  Value loadInputs(ArrayRef<Value> position, Value firstChannel);
  void finishPixel(Value column, ArrayRef<Value> partials);
};

} // namespace

PixelEmitter::PixelEmitter(KernelBuilder &b, const Window &window)
    : b(b), window(window),
      lanes(std::min(window.unit.bytes / 4,
                     window.unit.lanes(window.initial.getType()))) {
  resultType = VectorType::get(lanes, window.initial.getType());
  inputType = VectorType::get(lanes, window.input.type);
  strides.resize(window.dimensions.size());
  inputChannels = toInputs(window.channels);
  imageSize = inputChannels;
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = imageSize;
    imageSize = b.mul(imageSize, window.dimensions[d].input);
  }
  results = b.allocate(window.initial.getType(), vectorsAtOnce * lanes);
  if (!window.input.base)
    computed = b.allocate(window.input.type, lanes);
}

void PixelEmitter::emitRow(Value number) {
  SmallVector<Value> sizes = {window.images};
  for (const WindowDimension &d : ArrayRef(window.dimensions).drop_back())
    sizes.push_back(d.output);
  SmallVector<Value> at = b.delinearize(number, sizes);
  image = at.front();
  outer.assign(at.begin() + 1, at.end());
  if (window.input.base)
    imageStart = b.mul(image, imageSize);

  Value step = b.index(vectorsAtOnce * lanes), one = b.index(lanes);
  Value blocks = b.mul(b.div(window.channels, step), step);
  Value whole = b.mul(b.div(window.channels, one), one);
  b.loop(b.index(0), blocks, step,
         [&](Value first) { emitBlock(first, vectorsAtOnce, nullptr); });
  b.loop(blocks, whole, one,
         [&](Value first) { emitBlock(first, 1, nullptr); });
  b.when(b.less(whole, window.channels),
         [&] { emitBlock(whole, 1, b.sub(window.channels, whole)); });
}

/// The channels of the input that whole groups of `channels` read.
Value PixelEmitter::toInputs(Value channels) {
  if (window.groupInputs == window.groupSize)
    return channels;
  return b.mul(b.div(channels, b.index(window.groupSize)),
               b.index(window.groupInputs));
}

/// The first `count` lanes.
Value PixelEmitter::makeMask(Value count) {
  auto laneType = VectorType::get(lanes, b.getI32Type());
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, ArrayRef<int32_t>(numbers)));
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), count);
  Value all = b.createOrFold<vector::SplatOp>(laneType, narrow);
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, iota, all);
}

/// `lanesInside` is null if all channels of the block exist.
void PixelEmitter::emitBlock(Value firstChannel, int64_t vectorCount,
                             Value lanesInside) {
  channel = firstChannel;
  vectors = vectorCount;
  mask = inputMask = nullptr;
  if (lanesInside)
    mask = inputMask = makeMask(lanesInside);
  if (window.groupInputs < window.groupSize)
    inputMask = makeMask(toInputs(lanesInside ? lanesInside : b.index(lanes)));
  auto emitSingly = [&](Value from, Value to) {
    b.loop(from, to, b.index(1),
           [&](Value column) { emitPixels(column, 1, false); });
  };
  auto [begin, end] = findWholePixels();
  Value step = b.index(pixelsAtOnce);
  end = b.add(begin, b.mul(b.div(b.sub(end, begin), step), step));
  emitSingly(b.index(0), begin);
  b.loop(begin, end, step,
         [&](Value column) { emitPixels(column, pixelsAtOnce, true); });
  emitSingly(end, row().output);
}

/// The columns [begin, end) of the output whose windows read none outside.
std::pair<Value, Value> PixelEmitter::findWholePixels() {
  const WindowDimension &d = row();
  Value begin = b.min(b.ceilDiv(d.padBegin, d.stride), d.output);
  Value reach = b.mul(b.sub(d.taps, b.index(1)), b.index(d.dilation));
  Value room = b.sub(b.add(d.input, d.padBegin), reach);
  Value count = b.ceilDiv(b.max(room, b.index(0)), d.stride);
  return {begin, b.max(begin, b.min(count, d.output))};
}

void PixelEmitter::emitPixels(Value column, int64_t count, bool isWhole) {
  Value initial = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(resultType, window.initial));
  SmallVector<Value> columns;
  for (int64_t i = 0; i < count; ++i)
    columns.push_back(b.add(column, b.index(i)));
  Partials partials = combineTaps(0, {}, {}, columns, isWhole,
                                  Partials(count * vectors, initial));
  for (auto [i, at] : llvm::enumerate(columns))
    finishPixel(at, ArrayRef(partials).slice(i * vectors, vectors));
}

/// May lie outside [0, input).
Value PixelEmitter::inputPosition(const WindowDimension &d, Value output,
                                  Value tap) {
  Value begin = b.sub(b.mul(output, b.index(d.stride)), d.padBegin);
  return b.add(begin, b.mul(tap, b.index(d.dilation)));
}

/// The taps [from, to) that read inside the input.
std::pair<Value, Value> PixelEmitter::findTaps(const WindowDimension &d,
                                               Value output) {
  Value begin = inputPosition(d, output, b.index(0)), zero = b.index(0);
  Value from = b.ceilDiv(b.max(b.sub(zero, begin), zero), d.dilation);
  Value room = b.max(b.sub(d.input, begin), zero);
  return {from, b.min(b.ceilDiv(room, d.dilation), d.taps)};
}

/// One loop for each dimension, over the taps inside the input.
PixelEmitter::Partials
PixelEmitter::combineTaps(size_t d, SmallVector<Value> tap,
                          SmallVector<Value> position, ValueRange columns,
                          bool isWhole, Partials partials) {
  if (d == window.dimensions.size())
    return combinePixels(tap, position, columns, partials);
  bool isLast = d + 1 == window.dimensions.size();
  const WindowDimension &dimension = window.dimensions[d];
  Value output = isLast ? columns.front() : outer[d];
  Value from = b.index(0), to = dimension.taps;
  if (!isLast || !isWhole)
    std::tie(from, to) = findTaps(dimension, output);
  tap.push_back(nullptr);
  position.push_back(nullptr);
  return b.loop(from, to, partials, [&](Value t, ValueRange carried) {
    tap.back() = t;
    position.back() = inputPosition(dimension, output, t);
    return combineTaps(d + 1, tap, position, columns, isWhole,
                       Partials(carried));
  });
}

/// `position` is that of the first column; the others are strides apart.
PixelEmitter::Partials PixelEmitter::combinePixels(ArrayRef<Value> tap,
                                                   ArrayRef<Value> position,
                                                   ValueRange columns,
                                                   const Partials &partials) {
  Partials next;
  for (size_t i = 0; i < columns.size(); ++i) {
    SmallVector<Value> at(position);
    at.back() = b.add(at.back(), b.index(i * row().stride));
    for (int64_t v = 0; v < vectors; ++v) {
      Value first = b.add(channel, b.index(v * lanes));
      Value inputs = loadInputs(at, toInputs(first));
      Value partial = partials[next.size()];
      for (int64_t c = 0; c < window.groupInputs; ++c)
        partial = window.combineChannels(b, partial, spread(inputs, c), first,
                                         tap, c, mask);
      next.push_back(partial);
    }
  }
  return next;
}

/// Input channel `number` of each lane's group.
Value PixelEmitter::spread(Value inputs, int64_t number) {
  SmallVector<int64_t> sources;
  for (int64_t lane = 0; lane < lanes; ++lane)
    sources.push_back(lane / window.groupSize * window.groupInputs + number);
  if (window.groupSize == 1)
    return inputs;
  return b.create<vector::ShuffleOp>(inputs, inputs, sources);
}

Value PixelEmitter::loadInputs(ArrayRef<Value> position, Value firstChannel) {
  if (window.input.base) {
    Value at = b.add(imageStart, firstChannel);
    for (auto [p, stride] : llvm::zip_equal(position, strides))
      at = b.add(at, b.mul(p, stride));
    if (!inputMask)
      return b.loadVector(window.input.base, at, lanes);
    return b.loadMasked(window.input.base, at, inputMask, b.zero(inputType));
  }
  Value last = b.sub(inputChannels, b.index(1));
  b.loop(b.index(lanes), [&](Value lane) {
    Value at = b.min(b.add(firstChannel, lane), last);
    b.store(window.input.element(b, image, at, position), computed, lane);
  });
  return b.loadVector(computed, b.index(0), lanes);
}

void PixelEmitter::finishPixel(Value column, ArrayRef<Value> partials) {
  for (auto [v, partial] : llvm::enumerate(partials))
    b.store(partial, results, b.index(v * lanes));
  SmallVector<Value> position(outer);
  position.push_back(column);
  Value count = b.index(vectors * lanes);
  if (mask)
    count = b.sub(window.channels, channel);
  b.loop(count, [&](Value lane) {
    Value result = b.load(results, lane);
    window.epilogue(b, result, image, b.add(channel, lane), position);
  });
}

void tcc::cpu::emitPixelWindow(KernelBuilder &b, const Window &window,
                               Value firstTask, Value lastTask) {
  PixelEmitter emitter(b, window);
  Value grain = b.index(window.unitsPerTask), rows = window.images;
  for (const WindowDimension &d : ArrayRef(window.dimensions).drop_back())
    rows = b.mul(rows, d.output);
  b.loop(b.mul(firstTask, grain), b.min(b.mul(lastTask, grain), rows),
         b.index(1), [&](Value row) { emitter.emitRow(row); });
}

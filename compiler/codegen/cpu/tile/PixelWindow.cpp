#include "compiler/codegen/cpu/tile/GroupLanes.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "compiler/codegen/cpu/tile/Window.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <map>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Vectors of channels and neighbouring pixels that are worked on at once: each
/// is a chain of dependent combinations, which take several cycles each.
struct AtOnce {
  int64_t vectors, pixels;
};

/// Taps of a row that are combined without a loop, at most.
constexpr int64_t kMaxUnrolledTaps = 7;

/// Many channels of a pixel are what prefetching likes. Without a loop over the
/// taps of a row, though, what neighbouring pixels read both is loaded, and
/// widened, once, which counts more where they are a tap apart, or are widened.
constexpr AtOnce kManyChannels = {4, 2}, kManyPixels = {2, 4};

/// The taps of a window that meet elements of the input: `first` + j *
/// inputDilation, j < count, which meet element `begin` + j * dilation. That
/// may lie outside [0, input).
struct Reach {
  Value first, count, begin;
};

/// Emits rows of pixels. Vectors of results run along the channels, so that all
/// lanes have the same taps inside the input. Where the input is dilated,
/// pixels that lie so far apart have the same taps: these are a phase of the
/// row.
class PixelEmitter {
public:
  PixelEmitter(KernelBuilder &b, const Window &window);
  void emitRow(Value row);

private:
  KernelBuilder &b;
  const Window &window;
  GroupLanes groups;
  int64_t lanes;
  std::optional<int64_t> unrolledTaps; // of a row
  AtOnce atOnce;
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
  AtOnce chooseAtOnce() const;
  void emitBlock(Value firstChannel, int64_t vectorCount, Value lanesInside);
  void emitPhase(Value first);
  std::pair<Value, Value> findWholePixels(Value first, Value count);
  void emitPixels(Value column, int64_t count, bool isWhole);
  Partials combineTaps(size_t d, SmallVector<Value> tap,
                       SmallVector<Value> position, ValueRange columns,
                       bool isWhole, Partials partials);
  Partials combinePixels(ArrayRef<Value> tap, ArrayRef<Value> position,
                         int64_t count, const Partials &partials);
  Partials combineRow(SmallVector<Value> tap, SmallVector<Value> position,
                      Value begin, int64_t count, Partials partials);
  Value combineInputs(Value partial, Value inputs, Value firstChannel,
                      ArrayRef<Value> tap);
  Reach findReach(const WindowDimension &d, Value output);
  std::pair<Value, Value> clip(const WindowDimension &d, const Reach &reach);
  Value loadInputs(ArrayRef<Value> position, Value firstChannel);
  void finishPixel(Value column, ArrayRef<Value> partials);
};

} // namespace

/// The taps of a row `d` where there are few; nullopt if they are not.
static std::optional<int64_t> findUnrolledTaps(const WindowDimension &d) {
  std::optional<int64_t> taps = getConstantIntValue(d.taps);
  bool areFew = taps && *taps <= kMaxUnrolledTaps && d.inputDilation == 1;
  return areFew ? taps : std::nullopt;
}

PixelEmitter::PixelEmitter(KernelBuilder &b, const Window &window)
    : b(b), window(window),
      groups{std::min(window.unit.bytes / 4,
                      window.unit.lanes(window.initial.getType())),
             window.groupSize, window.groupInputs},
      lanes(groups.lanes), unrolledTaps(findUnrolledTaps(row())),
      atOnce(chooseAtOnce()) {
  resultType = VectorType::get(lanes, window.initial.getType());
  inputType = VectorType::get(lanes, window.input.type);
  strides.resize(window.dimensions.size());
  inputChannels = groups.toInputs(b, window.channels);
  imageSize = inputChannels;
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = imageSize;
    imageSize = b.mul(imageSize, window.dimensions[d].input);
  }
  results = b.allocate(window.initial.getType(), atOnce.vectors * lanes);
  if (!window.input.base)
    computed = b.allocate(window.input.type, lanes);
}

AtOnce PixelEmitter::chooseAtOnce() const {
  bool isWidened = window.input.type != window.initial.getType();
  bool sharesMuch = row().stride == 1 || isWidened;
  return unrolledTaps && sharesMuch ? kManyPixels : kManyChannels;
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
  groups.walk(b, b.index(0), window.channels,
              constantOf(window.channels).value_or(1), atOnce.vectors,
              [&](Value first, int64_t count, Value inside) {
                emitBlock(first, count, inside);
              });
}

/// `lanesInside` is null if all channels of the block exist.
void PixelEmitter::emitBlock(Value firstChannel, int64_t vectorCount,
                             Value lanesInside) {
  channel = firstChannel;
  vectors = vectorCount;
  mask = lanesInside ? groups.makeMask(b, lanesInside) : Value();
  inputMask = groups.makeInputMask(b, lanesInside);
  if (row().inputDilation == 1)
    return emitPhase(b.index(0));
  b.loop(b.index(row().inputDilation), [&](Value first) { emitPhase(first); });
}

/// The pixels of the row from column `first` on that have its taps.
void PixelEmitter::emitPhase(Value first) {
  int64_t apart = row().inputDilation;
  auto columnOf = [&](Value number) {
    return b.add(first, b.mul(number, b.index(apart)));
  };
  auto emitSingly = [&](Value from, Value to) {
    b.loop(from, to, b.index(1),
           [&](Value number) { emitPixels(columnOf(number), 1, false); });
  };
  Value count = b.ceilDiv(b.sub(row().output, first), apart);
  auto [begin, end] = findWholePixels(first, count);
  Value step = b.index(atOnce.pixels);
  end = b.add(begin, b.mul(b.div(b.sub(end, begin), step), step));
  emitSingly(b.index(0), begin);
  b.loop(begin, end, step, [&](Value number) {
    emitPixels(columnOf(number), atOnce.pixels, true);
  });
  emitSingly(end, count);
}

/// The pixels [begin, end), of the `count` of a phase, whose windows read none
/// outside.
std::pair<Value, Value> PixelEmitter::findWholePixels(Value first,
                                                      Value count) {
  const WindowDimension &d = row();
  Reach reach = findReach(d, first);
  Value zero = b.index(0), before = b.max(b.sub(zero, reach.begin), zero);
  Value begin = b.min(b.ceilDiv(before, d.stride), count);
  Value extent = b.mul(b.sub(reach.count, b.index(1)), b.index(d.dilation));
  Value room = b.sub(b.sub(d.input, reach.begin), extent);
  Value end = b.ceilDiv(b.max(room, zero), d.stride);
  return {begin, b.max(begin, b.min(end, count))};
}

void PixelEmitter::emitPixels(Value column, int64_t count, bool isWhole) {
  Value initial = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(resultType, window.initial));
  SmallVector<Value> columns;
  for (int64_t i = 0; i < count; ++i)
    columns.push_back(b.add(column, b.index(i * row().inputDilation)));
  Partials partials = combineTaps(0, {}, {}, columns, isWhole,
                                  Partials(count * vectors, initial));
  for (auto [i, at] : llvm::enumerate(columns))
    finishPixel(at, ArrayRef(partials).slice(i * vectors, vectors));
}

Reach PixelEmitter::findReach(const WindowDimension &d, Value output) {
  if (d.inputDilation == 1)
    return {b.index(0), d.taps,
            b.sub(b.mul(output, b.index(d.stride)), d.padBegin)};
  // begin = ceil((output - padBegin) / dilation), of numbers that are not
  // negative.
  Value dilation = b.index(d.inputDilation);
  Value pads = b.mul(d.padBegin, b.index(d.inputDilation - 1));
  Value begin =
      b.sub(b.ceilDiv(b.add(output, pads), d.inputDilation), d.padBegin);
  Value first = b.sub(b.add(b.mul(begin, dilation), d.padBegin), output);
  // No tap is left where first >= taps.
  Value count =
      b.ceilDiv(b.max(b.sub(d.taps, first), b.index(0)), d.inputDilation);
  return {first, count, begin};
}

/// Which of them, [from, to), read inside the input.
std::pair<Value, Value> PixelEmitter::clip(const WindowDimension &d,
                                           const Reach &reach) {
  Value zero = b.index(0);
  Value from = b.ceilDiv(b.max(b.sub(zero, reach.begin), zero), d.dilation);
  Value room = b.max(b.sub(d.input, reach.begin), zero);
  return {from, b.min(b.ceilDiv(room, d.dilation), reach.count)};
}

/// One loop for each dimension, over the taps inside the input.
PixelEmitter::Partials
PixelEmitter::combineTaps(size_t d, SmallVector<Value> tap,
                          SmallVector<Value> position, ValueRange columns,
                          bool isWhole, Partials partials) {
  if (d == window.dimensions.size())
    return combinePixels(tap, position, columns.size(), partials);
  bool isLast = d + 1 == window.dimensions.size();
  const WindowDimension &dimension = window.dimensions[d];
  Value output = isLast ? columns.front() : outer[d];
  Reach reach = findReach(dimension, output);
  Value from = b.index(0), to = reach.count;
  if (!isLast || !isWhole)
    std::tie(from, to) = clip(dimension, reach);
  tap.push_back(nullptr);
  position.push_back(nullptr);
  if (isLast && isWhole && unrolledTaps)
    return combineRow(tap, position, reach.begin, columns.size(), partials);
  return b.loop(from, to, partials, [&](Value j, ValueRange carried) {
    tap.back() = b.add(reach.first, b.mul(j, b.index(dimension.inputDilation)));
    position.back() = b.add(reach.begin, b.mul(j, b.index(dimension.dilation)));
    return combineTaps(d + 1, tap, position, columns, isWhole,
                       Partials(carried));
  });
}

/// `position` is that of the first of `count` columns; the others are strides
/// apart.
PixelEmitter::Partials PixelEmitter::combinePixels(ArrayRef<Value> tap,
                                                   ArrayRef<Value> position,
                                                   int64_t count,
                                                   const Partials &partials) {
  Partials next;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value> at(position);
    at.back() = b.add(at.back(), b.index(i * row().stride));
    for (int64_t v = 0; v < vectors; ++v) {
      Value first = b.add(channel, b.index(v * lanes));
      Value inputs = loadInputs(at, groups.toInputs(b, first));
      next.push_back(combineInputs(partials[next.size()], inputs, first, tap));
    }
  }
  return next;
}

/// All taps of a row, of `count` columns, of which the first reads from `begin`
/// on. Each input is loaded once.
PixelEmitter::Partials PixelEmitter::combineRow(SmallVector<Value> tap,
                                                SmallVector<Value> position,
                                                Value begin, int64_t count,
                                                Partials partials) {
  std::map<std::pair<int64_t, int64_t>, Value> loaded; // by column and vector
  auto load = [&](int64_t column, int64_t v, Value first) {
    Value &inputs = loaded[{column, v}];
    if (!inputs) {
      position.back() = b.add(begin, b.index(column));
      inputs = loadInputs(position, groups.toInputs(b, first));
    }
    return inputs;
  };
  for (int64_t j = 0; j < *unrolledTaps; ++j) {
    tap.back() = b.index(j);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t v = 0; v < vectors; ++v) {
        Value first = b.add(channel, b.index(v * lanes));
        Value inputs = load(i * row().stride + j * row().dilation, v, first);
        Value &partial = partials[i * vectors + v];
        partial = combineInputs(partial, inputs, first, tap);
      }
  }
  return partials;
}

Value PixelEmitter::combineInputs(Value partial, Value inputs,
                                  Value firstChannel, ArrayRef<Value> tap) {
  GroupLanes units = groups;
  if (int64_t group = window.packing.group; group > 1) {
    units.groupInputs /= group;
    Type unit = getUnitType(window.input.type, window.packing);
    inputs =
        b.create<LLVM::BitcastOp>(VectorType::get(lanes / group, unit), inputs);
  }
  for (int64_t c = 0; c < units.groupInputs; ++c)
    partial = window.combineChannels(b, partial, units.spread(b, inputs, c),
                                     firstChannel, tap, c, mask);
  return partial;
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

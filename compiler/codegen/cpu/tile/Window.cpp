#include "compiler/codegen/cpu/tile/Window.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Taps along a row that are unrolled, so that their masks stay in registers.
constexpr int64_t maxUnrolledTaps = 8;
/// Rows of results that are worked on at once: each is a chain of dependent
/// combinations, which take several cycles each.
constexpr int64_t rowsAtOnce = 4;

/// Emits one plane after the other. A vector of results runs along the
/// innermost dimension; for each tap some of its lanes lie inside the input.
class WindowEmitter {
public:
  WindowEmitter(KernelBuilder &b, const Window &window);
  void emitPlane(Value plane);

private:
  KernelBuilder &b;
  const Window &window;
  int64_t lanes;
  VectorType resultType, inputType, laneType;
  SmallVector<Value> strides; // of the input's dimensions
  Value planeSize;
  Memory results; // a vector's lanes, for the epilogue
  Memory inputs;  // ... and for inputs that are computed

  Value image, channel, inputChannel, planeStart;
  Value column; // of lane 0 in the output

  const WindowDimension &row() const { return window.dimensions.back(); }
  Value laneNumbers(int64_t first, int64_t step);
  Value splat(Value index);
  Value inputPosition(const WindowDimension &d, Value output, Value tap);
  void emitRows(Value rows, ValueRange outerSizes);
  std::pair<Value, Value> findWholeRows();
  void emitRow(ValueRange outer);
  void emitWholeRows(Value first);
  Value initialPartial();
  Value combineTaps(ValueRange outer, size_t d, SmallVector<Value> tap,
                    SmallVector<Value> position, Value partial);
  Value combineRow(ArrayRef<Value> tap, ArrayRef<Value> position,
                   Value partial);
  Value combineTap(ArrayRef<Value> tap, ArrayRef<Value> position,
                   Value partial);
  Value isInside(Value lanes, Value start, int64_t stride);
  Value loadInputs(ArrayRef<Value> position, Value start, Value inside);
  Value computeInputs(ArrayRef<Value> position, Value start);
  void finishRow(ValueRange outer, Value result);
};

} // namespace

WindowEmitter::WindowEmitter(KernelBuilder &b, const Window &window)
    : b(b), window(window),
      lanes(std::min(window.unit.bytes / 4,
                     window.unit.lanes(window.initial.getType()))) {
  resultType = VectorType::get(lanes, window.initial.getType());
  inputType = VectorType::get(lanes, window.input.type);
  laneType = VectorType::get(lanes, b.getI32Type());
  strides.resize(window.dimensions.size());
  planeSize = b.index(1);
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = planeSize;
    planeSize = b.mul(planeSize, window.dimensions[d].input);
  }
  results = b.allocate(window.initial.getType(), lanes);
  if (!window.input.base)
    inputs = b.allocate(window.input.type, lanes);
}

Value WindowEmitter::laneNumbers(int64_t first, int64_t step) {
  SmallVector<int32_t> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(first + lane * step);
  return b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, ArrayRef<int32_t>(numbers)));
}

Value WindowEmitter::splat(Value index) {
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  return b.createOrFold<vector::SplatOp>(laneType, narrow);
}

/// May lie outside [0, input).
Value WindowEmitter::inputPosition(const WindowDimension &d, Value output,
                                   Value tap) {
  Value begin = b.sub(b.mul(output, b.index(d.stride)), d.padBegin);
  return b.add(begin, b.mul(tap, b.index(d.dilation)));
}

void WindowEmitter::emitPlane(Value plane) {
  image = b.div(plane, window.channels);
  channel = b.rem(plane, window.channels);
  Value groupSize = b.index(window.groupSize);
  inputChannel = b.div(channel, groupSize);
  // Output planes of one group follow each other.
  Value inputPlane = b.div(plane, groupSize);
  if (window.input.base)
    planeStart = b.mul(inputPlane, planeSize);
  SmallVector<Value> outerSizes;
  Value rows = b.index(1);
  for (const WindowDimension &d : ArrayRef(window.dimensions).drop_back()) {
    outerSizes.push_back(d.output);
    rows = b.mul(rows, d.output);
  }
  // Vectors below each other have the same lanes inside the input.
  b.loop(b.index(0), row().output, b.index(lanes), [&](Value firstColumn) {
    column = firstColumn;
    emitRows(rows, outerSizes);
  });
}

/// With two dimensions, rows whose windows lie inside the input are worked on
/// several at once, those before and after one by one.
void WindowEmitter::emitRows(Value rows, ValueRange outerSizes) {
  auto emitSingly = [&](Value from, Value to) {
    b.loop(from, to, b.index(1),
           [&](Value r) { emitRow(b.delinearize(r, outerSizes)); });
  };
  if (outerSizes.size() != 1)
    return emitSingly(b.index(0), rows);
  auto [begin, end] = findWholeRows();
  Value step = b.index(rowsAtOnce);
  end = b.add(begin, b.mul(b.div(b.sub(end, begin), step), step));
  emitSingly(b.index(0), begin);
  b.loop(begin, end, step, [&](Value r) { emitWholeRows(r); });
  emitSingly(end, rows);
}

/// The rows [begin, end) of the output whose windows read no row outside.
std::pair<Value, Value> WindowEmitter::findWholeRows() {
  const WindowDimension &d = window.dimensions[0];
  Value begin = b.min(b.ceilDiv(d.padBegin, d.stride), d.output);
  Value reach = b.mul(b.sub(d.taps, b.index(1)), b.index(d.dilation));
  Value room = b.sub(b.add(d.input, d.padBegin), reach);
  Value count = b.ceilDiv(b.max(room, b.index(0)), d.stride);
  return {begin, b.max(begin, b.min(count, d.output))};
}

Value WindowEmitter::initialPartial() {
  return b.create<arith::ConstantOp>(
      DenseElementsAttr::get(resultType, window.initial));
}

void WindowEmitter::emitRow(ValueRange outer) {
  finishRow(outer, combineTaps(outer, 0, {}, {}, initialPartial()));
}

void WindowEmitter::emitWholeRows(Value first) {
  const WindowDimension &d = window.dimensions[0];
  SmallVector<Value> rows, initial(rowsAtOnce, initialPartial());
  for (int64_t i = 0; i < rowsAtOnce; ++i)
    rows.push_back(b.add(first, b.index(i)));
  auto combine = [&](Value tap, ValueRange partials) {
    SmallVector<Value> next;
    for (auto [r, partial] : llvm::zip_equal(rows, partials))
      next.push_back(combineRow({tap}, {inputPosition(d, r, tap)}, partial));
    return next;
  };
  SmallVector<Value> results = b.loop(b.index(0), d.taps, initial, combine);
  for (auto [r, result] : llvm::zip_equal(rows, results))
    finishRow(r, result);
}

/// One loop for each outer dimension, over the taps inside the input.
Value WindowEmitter::combineTaps(ValueRange outer, size_t d,
                                 SmallVector<Value> tap,
                                 SmallVector<Value> position, Value partial) {
  if (d == outer.size())
    return combineRow(tap, position, partial);
  const WindowDimension &dimension = window.dimensions[d];
  Value begin = inputPosition(dimension, outer[d], b.index(0));
  Value zero = b.index(0);
  Value from = b.ceilDiv(b.max(b.sub(zero, begin), zero), dimension.dilation);
  Value room = b.max(b.sub(dimension.input, begin), zero);
  Value to = b.min(b.ceilDiv(room, dimension.dilation), dimension.taps);
  tap.push_back(nullptr);
  position.push_back(nullptr);
  return b
      .loop(from, to, {partial},
            [&](Value t, ValueRange carried) -> SmallVector<Value> {
              tap.back() = t;
              position.back() = inputPosition(dimension, outer[d], t);
              return {combineTaps(outer, d + 1, tap, position, carried[0])};
            })
      .front();
}

Value WindowEmitter::combineRow(ArrayRef<Value> tap, ArrayRef<Value> position,
                                Value partial) {
  SmallVector<Value> taps(tap);
  taps.push_back(nullptr);
  std::optional<int64_t> count = constantOf(row().taps);
  if (count && *count <= maxUnrolledTaps) {
    for (int64_t t = 0; t < *count; ++t) {
      taps.back() = b.index(t);
      partial = combineTap(taps, position, partial);
    }
    return partial;
  }
  return b
      .loop(b.index(0), row().taps, {partial},
            [&](Value t, ValueRange carried) -> SmallVector<Value> {
              taps.back() = t;
              return {combineTap(taps, position, carried[0])};
            })
      .front();
}

Value WindowEmitter::combineTap(ArrayRef<Value> tap, ArrayRef<Value> position,
                                Value partial) {
  Value start = inputPosition(row(), column, tap.back());
  Value inside = isInside(laneNumbers(0, 1), start, row().stride);
  Value input = window.input.base ? loadInputs(position, start, inside)
                                  : computeInputs(position, start);
  Value next = window.combine(b, partial, input, channel, tap);
  return b.create<arith::SelectOp>(inside, next, partial);
}

/// Whether start + lane * stride is a position of the input.
Value WindowEmitter::isInside(Value lanes, Value start, int64_t stride) {
  Value scale = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, static_cast<int32_t>(stride)));
  Value at = b.create<arith::AddIOp>(b.create<arith::MulIOp>(lanes, scale),
                                     splat(start));
  // Unsigned, so that positions before the input are outside too.
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at,
                                 splat(row().input));
}

Value WindowEmitter::loadInputs(ArrayRef<Value> position, Value start,
                                Value inside) {
  Value at = b.add(planeStart, start);
  for (auto [d, p] : llvm::enumerate(position))
    at = b.add(at, b.mul(p, strides[d]));
  if (row().stride == 1)
    return b.loadMasked(window.input.base, at, inside, b.zero(inputType));
  if (row().stride == 2)
    return b.loadEverySecond(window.input.base, at, inside);
  Value offsets = laneNumbers(0, row().stride);
  return b.gather(window.input.base, at, offsets, inside);
}

Value WindowEmitter::computeInputs(ArrayRef<Value> position, Value start) {
  SmallVector<Value> at(position);
  at.push_back(nullptr);
  b.loop(b.index(lanes), [&](Value lane) {
    Value last = b.sub(row().input, b.index(1));
    Value column = b.add(start, b.mul(lane, b.index(row().stride)));
    at.back() = b.max(b.min(column, last), b.index(0));
    Value value = window.input.element(b, image, inputChannel, at);
    b.store(value, inputs, lane);
  });
  return b.loadVector(inputs, b.index(0), lanes);
}

void WindowEmitter::finishRow(ValueRange outer, Value result) {
  b.store(result, results, b.index(0));
  Value count = b.min(b.index(lanes), b.sub(row().output, column));
  SmallVector<Value> position(outer);
  position.push_back(nullptr);
  auto finish = [&](Value end) {
    b.loop(end, [&](Value lane) {
      position.back() = b.add(column, lane);
      Value value = b.load(results, lane);
      window.epilogue(b, value, image, channel, position);
    });
  };
  b.when(
      b.equal(count, b.index(lanes)), [&] { finish(b.index(lanes)); },
      [&] { finish(count); });
}

int64_t tcc::cpu::chooseWindowGrain(int64_t work) {
  constexpr int64_t grain = 1 << 17; // takes some ten microseconds
  return std::max<int64_t>(1, grain / std::max<int64_t>(1, work));
}

void tcc::cpu::emitWindow(KernelBuilder &b, const Window &window,
                          Value firstTask, Value lastTask) {
  WindowEmitter emitter(b, window);
  Value grain = b.index(window.unitsPerTask);
  Value planes = b.mul(window.images, window.channels);
  b.loop(b.mul(firstTask, grain), b.min(b.mul(lastTask, grain), planes),
         b.index(1), [&](Value plane) { emitter.emitPlane(plane); });
}

#include "compiler/codegen/cpu/tile/PlaneConvolution.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "compiler/codegen/cpu/tile/Packing.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

// --- Sizes

/// The most lanes of a vector register.
static constexpr int64_t kMaxLanes = 16;
/// More filters leave registers for few vectors of pixels.
static constexpr int64_t kMaxFilters = 12;
/// What tasks copy stays in the second-level cache.
static constexpr int64_t kGoodBytes = 256 << 10, kMostBytes = 1 << 20;
/// Threads have something to do with so many tasks of an image.
static constexpr int64_t kTasks = 8;

int64_t PlaneWindow::getInputRows(int64_t rowsOfResults) const {
  return (rowsOfResults - 1) * rows.stride + (rows.taps - 1) * rows.dilation +
         1;
}

int64_t PlaneWindow::getWidth() const {
  int64_t last = (columns.taps - 1) * columns.dilation / columns.stride;
  return llvm::alignTo(llvm::alignTo(columns.output, kMaxLanes) + last,
                       kMaxLanes);
}

/// Bytes of a sum, of a unit, and of where an element is in planes.
static constexpr int64_t kSumBytes = 4, kPlaceBytes = 8;

int64_t PlaneWindow::getPlaneBytes(int64_t rowsOfResults) const {
  int64_t elements =
      getPlanes() * getInputRows(rowsOfResults) * columns.stride * getWidth();
  return elements * kSumBytes / (hasUnits() ? 1 : packing.group);
}

int64_t PlaneWindow::getScratchBytes(int64_t rowsOfResults) const {
  return llvm::alignTo(getPlaneBytes(rowsOfResults), kPlaceBytes) +
         getDepth() * kPlaceBytes;
}

bool tcc::cpu::isPlaneRows(const PlaneWindow &window, int64_t rows) {
  return rows > 0 && rows <= window.rows.output &&
         window.filters <= kMaxFilters &&
         window.getScratchBytes(rows) <= kMostBytes;
}

int64_t tcc::cpu::choosePlaneRows(const PlaneWindow &window) {
  const PlaneAxis &columns = window.columns;
  if (window.filters > kMaxFilters || columns.output < kMaxLanes)
    return 0;
  int64_t rows =
      std::max<int64_t>(1, llvm::divideCeil(window.rows.output, kTasks));
  while (rows > 1 && window.getPlaneBytes(rows) > kGoodBytes)
    rows /= 2;
  if (!isPlaneRows(window, rows))
    return 0;
  // Cycles for a pixel and a plane: two multiply-adds of a vector are one, of
  // which a product has one for the filters of a tap. Copies are transposed.
  double taps = double(window.rows.taps * columns.taps);
  if (!window.hasUnits())
    taps /= double(window.packing.group);
  double filled = double(window.filters) / kMaxLanes;
  double saved = taps * (1 - filled) / 2;
  double copied =
      double(window.getInputRows(rows) * columns.stride) / double(rows);
  constexpr double kTransposed = 1, kAdjacent = 0.1;
  bool isAdjacent = window.getPlanes() == 1 && columns.stride == 1;
  return saved > copied * (isAdjacent ? kAdjacent : kTransposed) ? rows : 0;
}

// --- Code

namespace {

class PlaneEmitter {
public:
  PlaneEmitter(KernelBuilder &b, const PlaneConvolution &c, Value scratch);
  void listPlaces();
  void emitTask(Value task);

private:
  KernelBuilder &b;
  const PlaneConvolution &c;
  const PlaneWindow &window;
  int64_t lanes, vectors; // a tile has so many vectors of pixels
  int64_t planeCount, inputRows, width;
  VectorType vectorType;
  Memory input;    // of what planes hold
  Memory planes;   // [planes][rows][phases][width], of the task
  Memory places;   // of what the first window reads of planes, in order of k
  Memory finished; // of a tile, [filters][pixels], on the stack
  Value image, firstRow, rowCount;

  /// The vectors of a filter follow those of the one before.
  using Sums = SmallVector<Value>;

  Value planeRow(Value channel, Value row, Value phase);
  void fill(Value channel, Value row, int64_t phase, int64_t from, int64_t to);
  void copyRows();
  void copyRow(Value row, Value source);
  void copyPhase(Value row, Value source, int64_t phase);
  void copyBlocks(Value row, Value source, int64_t phase, int64_t from,
                  int64_t to);
  void copyAdjacent(Value row, Value source, int64_t from, int64_t to);
  void copySingly(Value row, Value source, int64_t phase, int64_t from,
                  int64_t to);
  Value sourceOf(Value source, int64_t phase, Value place);
  void emitRow(Value row);
  void emitTile(Value row, Value column, int64_t vectorCount, int64_t pixels);
  Sums accumulate(Value row, Value column, int64_t vectorCount);
  SmallVector<Value> load(Value k, Value start, int64_t vectorCount);
  Sums addProducts(Value k, ArrayRef<Value> pixels, ValueRange sums);
  void finish(Value row, Value column, int64_t pixels);
};

} // namespace

PlaneEmitter::PlaneEmitter(KernelBuilder &b, const PlaneConvolution &c,
                           Value scratch)
    : b(b), c(c), window(c.window), lanes(c.unit.lanes(b.getF32Type())),
      planeCount(window.getPlanes()),
      inputRows(window.getInputRows(c.taskRows)), width(window.getWidth()),
      vectorType(VectorType::get(lanes, b.getF32Type())),
      input(window.hasUnits() ? asUnits(c.input, window.packing)
                              : c.input.asBits()) {
  // As many sums as leave registers for a vector of each and a weight.
  const int64_t sums = c.unit.bytes == 64 ? 24 : 12;
  int64_t all = llvm::divideCeil(window.columns.output, lanes);
  int64_t most = std::max<int64_t>(1, sums / window.filters);
  vectors = llvm::divideCeil(all, llvm::divideCeil(all, most));
  planes = b.view(scratch, 0, input.element);
  int64_t bytes = window.getScratchBytes(c.taskRows);
  places =
      b.view(scratch, bytes - window.getDepth() * kPlaceBytes, b.getI64Type());
  finished = b.allocate(b.getF32Type(), window.filters * vectors * lanes);
}

/// The units of two vectors of elements each.
static SmallVector<Value> interleaveAll(KernelBuilder &b, ArrayRef<Value> low,
                                        ArrayRef<Value> high) {
  return llvm::map_to_vector(llvm::zip_equal(low, high), [&](auto pair) {
    return interleave(b, {std::get<0>(pair), std::get<1>(pair)});
  });
}

// --- Copies

/// Where the columns of a phase begin.
Value PlaneEmitter::planeRow(Value channel, Value row, Value phase) {
  int64_t phases = window.columns.stride;
  return b.linearize({channel, row, phase},
                     {b.index(inputRows * phases * width),
                      b.index(phases * width), b.index(width)});
}

/// Zeros at places [from, to) of a row.
void PlaneEmitter::fill(Value channel, Value row, int64_t phase, int64_t from,
                        int64_t to) {
  if (from >= to)
    return;
  Memory plane = b.from(planes, planeRow(channel, row, b.index(phase)));
  Value zero = b.zero(input.element);
  b.loop(b.index(from), b.index(to), b.index(1),
         [&](Value place) { b.store(zero, plane, place); });
}

void PlaneEmitter::copyRows() {
  const PlaneAxis &rows = window.rows;
  Value rowSize = b.index(window.columns.input * planeCount);
  Value start = b.mul(image, b.mul(b.index(rows.input), rowSize));
  Value first =
      b.sub(b.mul(firstRow, b.index(rows.stride)), b.index(rows.padLow));
  Value count = b.add(b.mul(b.sub(rowCount, b.index(1)), b.index(rows.stride)),
                      b.index((rows.taps - 1) * rows.dilation + 1));
  b.loop(count, [&](Value row) {
    Value from = b.add(first, row);
    // Unsigned, so that rows before the input are outside, too.
    Value isInside = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, from,
                                             b.index(rows.input));
    b.when(
        isInside, [&] { copyRow(row, b.add(start, b.mul(from, rowSize))); },
        [&] {
          b.loop(b.index(planeCount), [&](Value channel) {
            for (int64_t phase = 0; phase < window.columns.stride; ++phase)
              fill(channel, row, phase, 0, width);
          });
        });
  });
}

void PlaneEmitter::copyRow(Value row, Value source) {
  for (int64_t phase = 0; phase < window.columns.stride; ++phase)
    copyPhase(row, source, phase);
}

/// Place i of a phase has column i * stride + phase - padLow.
void PlaneEmitter::copyPhase(Value row, Value source, int64_t phase) {
  const PlaneAxis &columns = window.columns;
  auto placeOf = [&](int64_t column) {
    int64_t after = std::max<int64_t>(0, column + columns.padLow - phase);
    return std::min(width, int64_t(llvm::divideCeil(after, columns.stride)));
  };
  int64_t from = placeOf(0), to = placeOf(columns.input);
  b.loop(b.index(planeCount), [&](Value channel) {
    fill(channel, row, phase, 0, from);
    fill(channel, row, phase, to, width);
  });
  int64_t whole = from + (to - from) / lanes * lanes;
  if (planeCount == 1 && columns.stride == 1) {
    copyAdjacent(row, source, from, whole);
  } else if (planeCount % 4 == 0) {
    copyBlocks(row, source, phase, from, whole);
  } else {
    whole = from;
  }
  copySingly(row, source, phase, whole, to);
}

/// The first channel of the column at `place`.
Value PlaneEmitter::sourceOf(Value source, int64_t phase, Value place) {
  const PlaneAxis &columns = window.columns;
  Value column =
      b.sub(b.add(b.mul(place, b.index(columns.stride)), b.index(phase)),
            b.index(columns.padLow));
  return b.add(source, b.mul(column, b.index(planeCount)));
}

void PlaneEmitter::copyAdjacent(Value row, Value source, int64_t from,
                                int64_t to) {
  Memory plane = b.from(planes, planeRow(b.index(0), row, b.index(0)));
  b.loop(b.index(from), b.index(to), b.index(lanes), [&](Value place) {
    Value x = b.loadVector(input, sourceOf(source, 0, place), lanes);
    b.store(x, plane, place);
  });
}

/// Vectors of channels are transposed: of some columns, their lanes are then
/// columns of one channel after those of another.
void PlaneEmitter::copyBlocks(Value row, Value source, int64_t phase,
                              int64_t from, int64_t to) {
  int64_t block = std::min(lanes, planeCount & -planeCount);
  auto copyBlock = [&](Value place, Value first) {
    SmallVector<Value> turned;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value column = sourceOf(source, phase, b.add(place, b.index(lane)));
      turned.push_back(b.loadVector(input, b.add(column, first), block));
    }
    transpose(b, turned);
    for (auto [i, x] : llvm::enumerate(turned)) {
      int64_t number = int64_t(i) * block;
      Value channel = b.add(first, b.index(number / lanes));
      Value at = b.add(place, b.index(number % lanes));
      b.store(x, planes, b.add(planeRow(channel, row, b.index(phase)), at));
    }
  };
  b.loop(b.index(from), b.index(to), b.index(lanes), [&](Value place) {
    b.loop(b.index(0), b.index(planeCount), b.index(block),
           [&](Value first) { copyBlock(place, first); });
  });
}

void PlaneEmitter::copySingly(Value row, Value source, int64_t phase,
                              int64_t from, int64_t to) {
  if (from >= to)
    return;
  b.loop(b.index(planeCount), [&](Value channel) {
    Memory plane = b.from(planes, planeRow(channel, row, b.index(phase)));
    b.loop(b.index(from), b.index(to), b.index(1), [&](Value place) {
      Value column = sourceOf(source, phase, place);
      b.store(b.load(input, b.add(column, channel)), plane, place);
    });
  });
}

// --- Sums

/// k is (row, column, plane) of the window.
void PlaneEmitter::listPlaces() {
  const PlaneAxis &rows = window.rows, &columns = window.columns;
  Value phases = b.index(columns.stride);
  b.loop(b.index(window.getDepth()), [&](Value k) {
    SmallVector<Value> at = b.delinearize(
        k, {b.index(rows.taps), b.index(columns.taps), b.index(planeCount)});
    Value y = b.mul(at[0], b.index(rows.dilation));
    Value x = b.mul(at[1], b.index(columns.dilation));
    Value place = b.add(planeRow(at[2], y, b.rem(x, phases)), b.div(x, phases));
    b.store(b.create<arith::IndexCastOp>(b.getI64Type(), place), places, k);
  });
}

void PlaneEmitter::emitTask(Value task) {
  int64_t blocks = llvm::divideCeil(window.rows.output, c.taskRows);
  SmallVector<Value> at = b.delinearize(task, {c.images, b.index(blocks)});
  image = constantOf(c.images) == 1 ? b.index(0) : at[0];
  firstRow = b.mul(at[1], b.index(c.taskRows));
  rowCount =
      b.min(b.index(c.taskRows), b.sub(b.index(window.rows.output), firstRow));
  copyRows();
  b.loop(rowCount, [&](Value row) { emitRow(row); });
}

void PlaneEmitter::emitRow(Value row) {
  int64_t pixels = vectors * lanes, output = window.columns.output;
  int64_t whole = output / pixels * pixels;
  b.loop(b.index(0), b.index(whole), b.index(pixels),
         [&](Value column) { emitTile(row, column, vectors, pixels); });
  if (int64_t rest = output - whole)
    emitTile(row, b.index(whole), llvm::divideCeil(rest, lanes), rest);
}

void PlaneEmitter::emitTile(Value row, Value column, int64_t vectorCount,
                            int64_t pixels) {
  Sums sums = accumulate(row, column, vectorCount);
  for (auto [i, sum] : llvm::enumerate(sums)) {
    int64_t filter = int64_t(i) / vectorCount,
            vector = int64_t(i) % vectorCount;
    b.store(sum, finished, b.index((filter * vectors + vector) * lanes));
  }
  finish(row, column, pixels);
}

PlaneEmitter::Sums PlaneEmitter::accumulate(Value row, Value column,
                                            int64_t vectorCount) {
  Value first = b.mul(row, b.index(window.rows.stride));
  Value start = b.add(planeRow(b.index(0), first, b.index(0)), column);
  int64_t depth = window.getDepth();
  int64_t group = window.hasUnits() ? 1 : window.packing.group;
  Sums none(window.filters * vectorCount, b.zero(vectorType));
  Sums sums = b.loop(
      b.index(0), b.index(depth / group), none, [&](Value k, ValueRange sums) {
        if (group == 1)
          return addProducts(k, load(k, start, vectorCount), sums);
        Value low = b.mul(k, b.index(group)), high = b.add(low, b.index(1));
        return addProducts(k,
                           interleaveAll(b, load(low, start, vectorCount),
                                         load(high, start, vectorCount)),
                           sums);
      });
  if (depth % group == 0)
    return sums;
  SmallVector<Value> last = load(b.index(depth - 1), start, vectorCount);
  SmallVector<Value> zeros(vectorCount, b.zero(last.front().getType()));
  return addProducts(b.index(depth / group), interleaveAll(b, last, zeros),
                     sums);
}

/// What the pixels whose first window begins at `start` read at k.
SmallVector<Value> PlaneEmitter::load(Value k, Value start,
                                      int64_t vectorCount) {
  Value place =
      b.create<arith::IndexCastOp>(b.getIndexType(), b.load(places, k));
  SmallVector<Value> pixels;
  for (int64_t v = 0; v < vectorCount; ++v) {
    Value at = b.add(b.add(start, b.index(v * lanes)), place);
    pixels.push_back(b.loadVector(planes, at, lanes));
  }
  return pixels;
}

/// Adds the products of `pixels` with the weights of row k of the panel.
PlaneEmitter::Sums PlaneEmitter::addProducts(Value k, ArrayRef<Value> pixels,
                                             ValueRange sums) {
  Value at = b.add(c.weights.offset, b.mul(k, c.weights.kStride));
  Sums next;
  for (int64_t filter = 0; filter < window.filters; ++filter) {
    Value weight = b.load(c.weights.base, b.add(at, b.index(filter)));
    weight = b.create<vector::BroadcastOp>(
        VectorType::get(lanes, weight.getType()), weight);
    for (Value x : pixels) {
      Value sum = sums[next.size()];
      next.push_back(window.packing.group == 1
                         ? b.multiplyAdd(x, weight, sum)
                         : multiplyUnits(b, x, weight, sum, c.unit));
    }
  }
  return next;
}

void PlaneEmitter::finish(Value row, Value column, int64_t pixels) {
  Value y =
      b.add(b.mul(image, b.index(window.rows.output)), b.add(firstRow, row));
  Value first = b.add(b.mul(y, b.index(window.columns.output)), column);
  Value apart = b.index(vectors * lanes), zero = b.index(0);
  b.loop(b.index(pixels), [&](Value pixel) {
    b.loop(b.index(window.filters), [&](Value filter) {
      Value sum = b.load(finished, b.add(b.mul(filter, apart), pixel));
      c.epilogue(b, sum, zero, b.add(first, pixel), filter);
    });
  });
}

void tcc::cpu::emitPlaneConvolution(KernelBuilder &b,
                                    const PlaneConvolution &convolution,
                                    Value firstTask, Value lastTask,
                                    Value scratch) {
  PlaneEmitter emitter(b, convolution, scratch);
  emitter.listPlaces();
  b.loop(firstTask, lastTask, b.index(1),
         [&](Value task) { emitter.emitTask(task); });
}

#include "compiler/codegen/cpu/tile/MatrixTile.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

PanelView PanelView::at(KernelBuilder &b, Value panel, Value k) const {
  PanelView view = *this;
  view.offset = b.add(offset, b.linearize({panel, k}, {panelStride, kStride}));
  return view;
}

PanelView tcc::cpu::packedPanels(KernelBuilder &b, Memory base, Value offset,
                                 int64_t width, Value depth) {
  Value lanes = b.index(width);
  return {base, offset, b.mul(depth, lanes), b.index(1), lanes};
}

static constexpr int64_t lineBytes = 64;

namespace {

/// A part of a tile whose sums stay in registers through the loop over k.
class SubTile {
public:
  SubTile(KernelBuilder &b, const MatrixTile &tile, Arithmetic arithmetic,
          VectorUnit unit)
      : b(b), tile(tile), arithmetic(arithmetic), unit(unit),
        lanes(unit.lanes(arithmetic.sum)),
        sumType(VectorType::get(lanes, arithmetic.sum)) {}

  void emit(int64_t firstRow, int64_t rowCount, Value firstColumn,
            int64_t vectorCount);

private:
  KernelBuilder &b;
  const MatrixTile &tile;
  Arithmetic arithmetic;
  VectorUnit unit;
  int64_t lanes;
  VectorType sumType;
  int64_t firstRow = 0, endRow = 0;
  Value firstColumn;
  Memory columns; // the right operand from the first column on
  int64_t vectorCount = 0;

  /// Rows of the left operand, elements `stride` apart.
  struct Rows {
    SmallVector<Memory> starts;
    Value stride;
  };
  SmallVector<Value> accumulateRows(ValueRange sums);
  SmallVector<Value> accumulateRuns(ValueRange sums);
  SmallVector<Value> accumulate(const Rows &rows, Value shift, Value from,
                                Value to, ValueRange sums);
  SmallVector<Value> multiply(const Rows &rows, Memory panel, int64_t k,
                              ValueRange sums);
  Value widen(Value x, bool isUnsigned);
  Value multiplyAdd(Value x, Value y, Value sum);
  Value rowOffset(int64_t row);
  void prefetchAhead(Value k, int64_t step);
  Value sumPosition(Value offset, int64_t row, int64_t vector);
  SmallVector<Value> initialSums();
};

} // namespace

Value SubTile::rowOffset(int64_t row) {
  Value i = b.index(row);
  if (tile.lastRow)
    i = b.min(i, tile.lastRow);
  return b.add(tile.lhs.offset, b.mul(i, tile.lhs.laneStride));
}

/// For the `step`th k of an iteration: those that reach another line.
void SubTile::prefetchAhead(Value k, int64_t step) {
  for (const Prefetch &next : tile.ahead) {
    int64_t line = lineBytes / bytesOf(next.base.element);
    if (step * next.stride % line >= next.stride)
      continue;
    Value at = b.add(next.offset, b.mul(k, b.index(next.stride)));
    b.prefetch(next.base, at, KernelBuilder::secondLevel);
  }
}

Value SubTile::sumPosition(Value offset, int64_t row, int64_t vector) {
  Value column = b.add(offset, firstColumn);
  return b.add(column, b.index(row * kPanelColumns + vector * lanes));
}

SmallVector<Value> SubTile::initialSums() {
  SmallVector<Value> zeros((endRow - firstRow) * vectorCount, b.zero(sumType));
  if (!tile.from)
    return zeros;
  auto load = [&] {
    SmallVector<Value> sums;
    for (int64_t row = firstRow; row < endRow; ++row)
      for (int64_t v = 0; v < vectorCount; ++v)
        sums.push_back(b.loadVector(
            tile.from, sumPosition(tile.fromOffset, row, v), lanes));
    return sums;
  };
  return b.choose(tile.isFirst, TypeRange(zeros), [&] { return zeros; }, load);
}

void SubTile::emit(int64_t firstRow, int64_t rowCount, Value firstColumn,
                   int64_t vectorCount) {
  this->firstRow = firstRow;
  this->firstColumn = firstColumn;
  this->vectorCount = vectorCount;
  endRow = firstRow + rowCount;
  columns = b.from(tile.rhs.base, b.add(tile.rhs.offset, firstColumn));
  SmallVector<Value> sums = initialSums();
  sums = tile.lhsRuns ? accumulateRuns(sums) : accumulateRows(sums);
  for (size_t s = 0; s < sums.size(); ++s) {
    int64_t row = firstRow + s / vectorCount;
    b.store(sums[s], tile.into,
            sumPosition(tile.intoOffset, row, s % vectorCount));
  }
}

SmallVector<Value> SubTile::accumulateRows(ValueRange sums) {
  Rows rows{.starts = {}, .stride = tile.lhs.kStride};
  for (int64_t row = firstRow; row < endRow; ++row)
    rows.starts.push_back(b.from(tile.lhs.base, rowOffset(row)));
  Value zero = b.index(0);
  return accumulate(rows, zero, zero, tile.depth, sums);
}

SmallVector<Value> SubTile::accumulateRuns(ValueRange sums) {
  Value length = b.index(tile.runLength), zero = b.index(0);
  Value end = b.add(tile.k, tile.depth);
  auto accumulateRows = [&](const RowRun &run, Value number,
                            ValueRange carried) {
    auto own = ArrayRef(run.starts).slice(firstRow, endRow - firstRow);
    Rows rows{.starts = llvm::to_vector(own), .stride = b.index(1)};
    Value first = b.mul(number, length);
    Value from = b.max(b.sub(tile.k, first), zero);
    Value to = b.min(b.sub(end, first), length);
    Value shift = b.sub(first, tile.k);
    return accumulate(rows, shift, from, to, carried);
  };
  auto accumulateRun = [&](Value number, ValueRange carried) {
    RowRun run = tile.lhsRuns(b, number);
    if (!run.areZeros)
      return accumulateRows(run, number, carried);
    return b.choose(
        run.areZeros, carried.getTypes(),
        [&] { return llvm::to_vector(carried); },
        [&] { return accumulateRows(run, number, carried); });
  };
  return b.loop(b.div(tile.k, length), b.ceilDiv(end, tile.runLength), sums,
                [&](Value number, ValueRange carried) {
                  if (!tile.skipsRun)
                    return accumulateRun(number, carried);
                  return b.choose(
                      tile.skipsRun(b, number), carried.getTypes(),
                      [&] { return llvm::to_vector(carried); },
                      [&] { return accumulateRun(number, carried); });
                });
}

/// Adds the products of elements [from, to) of rows; the right operand stands
/// `shift` further. Several make one iteration of a large tile: they share the
/// loop itself and the fetching of a line. What an iteration reads lies at
/// constant distances from a few pointers.
SmallVector<Value> SubTile::accumulate(const Rows &rows, Value shift,
                                       Value from, Value to, ValueRange sums) {
  auto steps = [&](Value first, int64_t count, ValueRange carried) {
    Value k = b.add(shift, first);
    Memory panel = b.from(columns, b.mul(k, tile.rhs.kStride));
    Rows own{.starts = {}, .stride = rows.stride};
    for (Memory start : rows.starts)
      own.starts.push_back(b.from(start, b.mul(first, rows.stride)));
    SmallVector<Value> next(carried);
    for (int64_t i = 0; i < count; ++i) {
      prefetchAhead(b.add(k, b.index(i)), i);
      next = multiply(own, panel, i, next);
    }
    return next;
  };
  // Rows with pointers of their own leave few registers for the others.
  bool haveOwnPointers = tile.lastRow || tile.lhsRuns;
  constexpr size_t kManySums = 12;
  const int64_t unroll = sums.size() < kManySums ? 1
                         : haveOwnPointers
                             ? std::max<int64_t>(1, tile.unroll / 2)
                             : tile.unroll;
  Value stride = b.index(unroll);
  Value whole = b.add(from, b.mul(b.div(b.sub(to, from), stride), stride));
  SmallVector<Value> most =
      b.loop(from, whole, stride, sums, [&](Value first, ValueRange carried) {
        return steps(first, unroll, carried);
      });
  if (tile.depthMultiple % unroll == 0)
    return most;
  return b.loop(whole, to, b.index(1), most,
                [&](Value first, ValueRange carried) {
                  return steps(first, 1, carried);
                });
}

/// One k, counted from where rows and panel start. A panel is more than the
/// first-level cache holds: it is fetched from the second a little ahead.
SmallVector<Value> SubTile::multiply(const Rows &rows, Memory panel, int64_t k,
                                     ValueRange sums) {
  constexpr int64_t distance = 4;
  SmallVector<Value> rhs, next;
  Value at = b.mul(b.index(k), tile.rhs.kStride);
  Value soon = b.mul(b.index(k + distance), tile.rhs.kStride);
  for (int64_t v = 0; v < vectorCount; ++v) {
    Value column = b.index(v * lanes);
    if (v * lanes * bytesOf(panel.element) % lineBytes == 0)
      b.prefetch(panel, b.add(soon, column), KernelBuilder::firstLevel);
    Value y = b.loadVector(panel, b.add(at, column), lanes);
    rhs.push_back(widen(y, arithmetic.rhsUnsigned));
  }
  Value e = b.mul(b.index(k), rows.stride);
  for (Memory row : rows.starts) {
    Value x = widen(b.load(row, e), arithmetic.lhsUnsigned);
    x = b.create<vector::BroadcastOp>(sumType.clone(x.getType()), x);
    for (Value y : rhs)
      next.push_back(multiplyAdd(x, y, sums[next.size()]));
  }
  return next;
}

Value SubTile::widen(Value x, bool isUnsigned) {
  bool isUnit = arithmetic.packing.group > 1;
  return isUnit ? x : b.widen(x, arithmetic.sum, isUnsigned);
}

Value SubTile::multiplyAdd(Value x, Value y, Value sum) {
  return arithmetic.packing.group > 1 ? multiplyUnits(b, x, y, sum, unit)
                                      : b.multiplyAdd(x, y, sum);
}

/// As many vectors and rows as leave the sums, the vectors and a broadcast in
/// registers: 24 sums of 32 registers with AVX-512, 12 of 16 before it.
void tcc::cpu::emitTile(KernelBuilder &b, const MatrixTile &tile,
                        Arithmetic arithmetic, VectorUnit unit) {
  int64_t lanes = unit.lanes(arithmetic.sum);
  int64_t vectors = llvm::divideCeil(tile.columns, lanes);
  const int64_t sums = unit.bytes == 64 ? 24 : 12;
  // Few rows take more vectors: chains hide the latency of each other.
  int64_t vectorStep =
      llvm::bit_floor(uint64_t(sums / std::min(tile.rows, panelRows)));
  vectorStep = std::min(vectorStep, vectors);
  int64_t rowStep = sums / vectorStep;
  SubTile part(b, tile, arithmetic, unit);
  auto emitColumns = [&](Value first, int64_t vectorCount) {
    for (int64_t row = 0; row < tile.rows; row += rowStep)
      part.emit(row, std::min(rowStep, tile.rows - row), first, vectorCount);
  };
  int64_t whole = vectors / vectorStep * vectorStep;
  b.loop(b.index(0), b.index(whole * lanes), b.index(vectorStep * lanes),
         [&](Value first) { emitColumns(first, vectorStep); });
  if (whole < vectors)
    emitColumns(b.index(whole * lanes), vectors - whole);
}

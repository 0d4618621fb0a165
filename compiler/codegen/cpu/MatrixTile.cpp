#include "compiler/codegen/cpu/MatrixTile.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
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

static int64_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

namespace {

/// A part of a tile whose sums stay in registers through the loop over k.
class SubTile {
public:
  SubTile(KernelBuilder &b, const MatrixTile &tile, Arithmetic arithmetic,
          VectorUnit unit)
      : b(b), tile(tile), arithmetic(arithmetic),
        lanes(unit.lanes(arithmetic.sum)),
        sumType(VectorType::get(lanes, arithmetic.sum)) {}

  void emit(int64_t firstRow, int64_t rowCount, int64_t firstColumn,
            int64_t vectorCount);

private:
  KernelBuilder &b;
  const MatrixTile &tile;
  Arithmetic arithmetic;
  int64_t lanes;
  VectorType sumType;
  int64_t firstRow = 0, endRow = 0;

  SmallVector<Value> accumulateRows(ArrayRef<Value> columns, ValueRange sums);
  SmallVector<Value> accumulateRuns(ArrayRef<Value> columns, ValueRange sums);
  using RowElement = function_ref<Value(int64_t row, Value)>;
  SmallVector<Value> accumulate(ArrayRef<Value> columns, Value shift,
                                Value from, Value to, ValueRange sums,
                                RowElement lhs);
  SmallVector<Value> multiply(ArrayRef<Value> columns, Value k, ValueRange sums,
                              function_ref<Value(int64_t)> lhs);
  Value rowOffset(int64_t row);
  void prefetchAhead(Value k);
  Value sumPosition(Value offset, int64_t row, int64_t column);
  SmallVector<Value> initialSums(int64_t firstColumn, int64_t vectorCount);
};

} // namespace

Value SubTile::rowOffset(int64_t row) {
  Value i = b.index(row);
  if (tile.lastRow)
    i = b.min(i, tile.lastRow);
  return b.add(tile.lhs.offset, b.mul(i, tile.lhs.laneStride));
}

void SubTile::prefetchAhead(Value k) {
  if (!tile.ahead)
    return;
  Value at = b.add(tile.ahead, b.mul(k, b.index(tile.aheadStride)));
  b.prefetch(tile.rhs.base, at, KernelBuilder::secondLevel);
}

Value SubTile::sumPosition(Value offset, int64_t row, int64_t column) {
  return b.add(offset, b.index(row * panelColumns + column));
}

SmallVector<Value> SubTile::initialSums(int64_t firstColumn,
                                        int64_t vectorCount) {
  SmallVector<Value> zeros((endRow - firstRow) * vectorCount, b.zero(sumType));
  if (!tile.from)
    return zeros;
  auto load = [&] {
    SmallVector<Value> sums;
    for (int64_t row = firstRow; row < endRow; ++row)
      for (int64_t v = 0; v < vectorCount; ++v) {
        int64_t column = firstColumn + v * lanes;
        Value at = sumPosition(tile.fromOffset, row, column);
        sums.push_back(b.loadVector(tile.from, at, lanes));
      }
    return sums;
  };
  return b.choose(tile.isFirst, TypeRange(zeros), [&] { return zeros; }, load);
}

void SubTile::emit(int64_t firstRow, int64_t rowCount, int64_t firstColumn,
                   int64_t vectorCount) {
  this->firstRow = firstRow;
  endRow = firstRow + rowCount;
  SmallVector<Value> columns;
  for (int64_t v = 0; v < vectorCount; ++v)
    columns.push_back(b.add(tile.rhs.offset, b.index(firstColumn + v * lanes)));
  SmallVector<Value> sums = initialSums(firstColumn, vectorCount);
  sums = tile.lhsRuns ? accumulateRuns(columns, sums)
                      : accumulateRows(columns, sums);
  for (size_t s = 0; s < sums.size(); ++s) {
    int64_t row = firstRow + s / vectorCount;
    int64_t column = firstColumn + s % vectorCount * lanes;
    b.store(sums[s], tile.into, sumPosition(tile.intoOffset, row, column));
  }
}

SmallVector<Value> SubTile::accumulateRows(ArrayRef<Value> columns,
                                           ValueRange sums) {
  SmallVector<Value> rows(tile.rows);
  for (int64_t row = firstRow; row < endRow; ++row)
    rows[row] = rowOffset(row);
  Value zero = b.index(0);
  return accumulate(columns, zero, zero, tile.depth, sums,
                    [&](int64_t row, Value k) {
                      Value at = b.mul(k, tile.lhs.kStride);
                      return b.load(tile.lhs.base, b.add(rows[row], at));
                    });
}

SmallVector<Value> SubTile::accumulateRuns(ArrayRef<Value> columns,
                                           ValueRange sums) {
  Value length = b.index(tile.runLength), zero = b.index(0);
  Value end = b.add(tile.k, tile.depth);
  return b.loop(b.div(tile.k, length), b.ceilDiv(end, tile.runLength), sums,
                [&](Value number, ValueRange carried) {
                  SmallVector<Memory> rows = tile.lhsRuns(b, number);
                  Value first = b.mul(number, length);
                  Value from = b.max(b.sub(tile.k, first), zero);
                  Value to = b.min(b.sub(end, first), length);
                  return accumulate(columns, b.sub(first, tile.k), from, to,
                                    carried, [&](int64_t row, Value e) {
                                      return b.load(rows[row], e);
                                    });
                });
}

/// Adds the products of elements [from, to) of rows; the right operand stands
/// `shift` further. Several make one iteration of a large tile: they share the
/// loop itself and the fetching of a line.
SmallVector<Value> SubTile::accumulate(ArrayRef<Value> columns, Value shift,
                                       Value from, Value to, ValueRange sums,
                                       RowElement lhs) {
  const int64_t unroll = sums.size() >= 12 ? 4 : 1;
  const int64_t line = lineBytes / bytesOf(tile.rhs.base.element);
  auto step = [&](Value e, ValueRange sums) {
    return multiply(columns, b.add(shift, e), sums,
                    [&](int64_t row) { return lhs(row, e); });
  };
  Value steps = b.index(unroll);
  Value whole = b.add(from, b.mul(b.div(b.sub(to, from), steps), steps));
  auto many = [&](Value first, ValueRange carried) {
    SmallVector<Value> next(carried);
    for (int64_t i = 0; i < unroll; ++i) {
      Value e = b.add(first, b.index(i));
      if (i * tile.aheadStride % line < tile.aheadStride)
        prefetchAhead(b.add(shift, e));
      next = step(e, next);
    }
    return next;
  };
  SmallVector<Value> most = b.loop(from, whole, steps, sums, many);
  return b.loop(whole, to, b.index(1), most, step);
}

/// One k; `lhs` gives the element of a row. A panel is more than the
/// first-level cache holds: it is fetched from the second a little ahead.
SmallVector<Value> SubTile::multiply(ArrayRef<Value> columns, Value k,
                                     ValueRange sums,
                                     function_ref<Value(int64_t)> lhs) {
  constexpr int64_t distance = 4;
  const Memory &panel = tile.rhs.base;
  SmallVector<Value> rhs, next;
  Value at = b.mul(k, tile.rhs.kStride);
  Value soon = b.mul(b.add(k, b.index(distance)), tile.rhs.kStride);
  for (auto [v, column] : llvm::enumerate(columns)) {
    if (v * lanes * bytesOf(panel.element) % lineBytes == 0)
      b.prefetch(panel, b.add(column, soon), KernelBuilder::firstLevel);
    Value y = b.loadVector(panel, b.add(column, at), lanes);
    rhs.push_back(b.widen(y, arithmetic.sum, arithmetic.rhsUnsigned));
  }
  for (int64_t row = firstRow; row < endRow; ++row) {
    Value x = b.widen(lhs(row), arithmetic.sum, arithmetic.lhsUnsigned);
    x = b.create<vector::BroadcastOp>(sumType, x);
    for (Value y : rhs)
      next.push_back(b.multiplyAdd(x, y, sums[next.size()]));
  }
  return next;
}

/// As many vectors and rows as leave the sums, the vectors and a broadcast in
/// registers: 24 sums of 32 registers with AVX-512, 12 of 16 before it.
void tcc::cpu::emitTile(KernelBuilder &b, const MatrixTile &tile,
                        Arithmetic arithmetic, VectorUnit unit) {
  int64_t lanes = unit.lanes(arithmetic.sum);
  int64_t vectors = llvm::divideCeil(tile.columns, lanes);
  bool isWide = unit.bytes == 64;
  int64_t vectorStep = std::min<int64_t>(isWide ? 4 : 2, vectors);
  int64_t rowStep = (isWide ? 24 : 12) / vectorStep;
  SubTile part(b, tile, arithmetic, unit);
  for (int64_t v = 0; v < vectors; v += vectorStep)
    for (int64_t row = 0; row < tile.rows; row += rowStep)
      part.emit(row, std::min(rowStep, tile.rows - row), v * lanes,
                std::min(vectorStep, vectors - v));
}

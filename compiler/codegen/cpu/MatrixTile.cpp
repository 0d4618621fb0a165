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
  SmallVector<Value> multiply(ArrayRef<Value> columns, Value k, ValueRange sums,
                              function_ref<Value(int64_t)> lhs);
  Value rowOffset(int64_t row);
  void prefetch(Value k);
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

void SubTile::prefetch(Value k) {
  if (!tile.ahead)
    return;
  Value at = b.add(tile.ahead, b.mul(k, b.index(tile.aheadStride)));
  b.prefetch(tile.rhs.base, at);
}

Value SubTile::sumPosition(Value offset, int64_t row, int64_t column) {
  return b.add(offset, b.index(row * panelColumns + column));
}

SmallVector<Value> SubTile::initialSums(int64_t firstColumn,
                                        int64_t vectorCount) {
  SmallVector<Value> sums;
  Value zero = b.zero(sumType);
  for (int64_t row = firstRow; row < endRow; ++row)
    for (int64_t v = 0; v < vectorCount; ++v) {
      if (!tile.from) {
        sums.push_back(zero);
        continue;
      }
      Value at = sumPosition(tile.fromOffset, row, firstColumn + v * lanes);
      Value before = b.loadVector(tile.from, at, lanes);
      sums.push_back(b.create<arith::SelectOp>(tile.isFirst, zero, before));
    }
  return sums;
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
  return b.loop(b.index(0), tile.depth, sums, [&](Value k, ValueRange carried) {
    prefetch(k);
    Value at = b.mul(k, tile.lhs.kStride);
    return multiply(columns, k, carried, [&](int64_t row) {
      return b.load(tile.lhs.base, b.add(rows[row], at));
    });
  });
}

SmallVector<Value> SubTile::accumulateRuns(ArrayRef<Value> columns,
                                           ValueRange sums) {
  Value length = b.index(tile.runLength), zero = b.index(0);
  Value end = b.add(tile.k, tile.depth);
  return b.loop(
      b.div(tile.k, length), b.ceilDiv(end, tile.runLength), sums,
      [&](Value number, ValueRange carried) {
        SmallVector<Memory> rows = tile.lhsRuns(b, number);
        Value first = b.mul(number, length);
        Value from = b.max(b.sub(tile.k, first), zero);
        Value to = b.min(b.sub(end, first), length);
        Value shift = b.sub(first, tile.k);
        return b.loop(from, to, carried, [&](Value e, ValueRange inner) {
          Value k = b.add(shift, e);
          prefetch(k);
          return multiply(columns, k, inner,
                          [&](int64_t row) { return b.load(rows[row], e); });
        });
      });
}

/// One k; `lhs` gives the element of a row.
SmallVector<Value> SubTile::multiply(ArrayRef<Value> columns, Value k,
                                     ValueRange sums,
                                     function_ref<Value(int64_t)> lhs) {
  SmallVector<Value> rhs, next;
  Value at = b.mul(k, tile.rhs.kStride);
  for (Value column : columns) {
    Value y = b.loadVector(tile.rhs.base, b.add(column, at), lanes);
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

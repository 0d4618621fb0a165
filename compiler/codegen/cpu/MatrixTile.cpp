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

  void emit(int64_t firstColumn, int64_t vectorCount);

private:
  KernelBuilder &b;
  const MatrixTile &tile;
  Arithmetic arithmetic;
  int64_t lanes;
  VectorType sumType;

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
  for (int64_t row = 0; row < tile.rows; ++row)
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

void SubTile::emit(int64_t firstColumn, int64_t vectorCount) {
  SmallVector<Value> rows, columns;
  for (int64_t row = 0; row < tile.rows; ++row)
    rows.push_back(rowOffset(row));
  for (int64_t v = 0; v < vectorCount; ++v)
    columns.push_back(b.add(tile.rhs.offset, b.index(firstColumn + v * lanes)));

  auto accumulate = [&](Value k, ValueRange sums) {
    SmallVector<Value> rhs, next;
    prefetch(k);
    Value lhsAtK = b.mul(k, tile.lhs.kStride);
    Value rhsAtK = b.mul(k, tile.rhs.kStride);
    for (Value column : columns) {
      Value y = b.loadVector(tile.rhs.base, b.add(column, rhsAtK), lanes);
      rhs.push_back(b.widen(y, arithmetic.sum, arithmetic.rhsUnsigned));
    }
    for (Value row : rows) {
      Value x = b.load(tile.lhs.base, b.add(row, lhsAtK));
      x = b.widen(x, arithmetic.sum, arithmetic.lhsUnsigned);
      x = b.create<vector::BroadcastOp>(sumType, x);
      for (Value y : rhs)
        next.push_back(b.multiplyAdd(x, y, sums[next.size()]));
    }
    return next;
  };
  SmallVector<Value> sums =
      b.loop(b.index(0), tile.depth, initialSums(firstColumn, vectorCount),
             accumulate);

  for (size_t s = 0; s < sums.size(); ++s) {
    int64_t row = s / vectorCount;
    int64_t column = firstColumn + s % vectorCount * lanes;
    b.store(sums[s], tile.into, sumPosition(tile.intoOffset, row, column));
  }
}

/// As many vectors of columns as leave the sums of all rows, the vectors and a
/// broadcast in registers: 24 sums of 32 registers with AVX-512, 12 of 16
/// before it.
void tcc::cpu::emitTile(KernelBuilder &b, const MatrixTile &tile,
                        Arithmetic arithmetic, VectorUnit unit) {
  int64_t lanes = unit.lanes(arithmetic.sum);
  int64_t vectors = llvm::divideCeil(tile.columns, lanes);
  int64_t vectorStep = std::min<int64_t>(unit.bytes == 64 ? 4 : 2, vectors);
  SubTile part(b, tile, arithmetic, unit);
  for (int64_t v = 0; v < vectors; v += vectorStep)
    part.emit(v * lanes, std::min(vectorStep, vectors - v));
}

#include "compiler/codegen/cpu/tile/Contraction.h"
#include "compiler/codegen/cpu/tile/TileRegisters.h"

#include "runtime/base/Alignment.h"
#include <numeric>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// The parts of a worker's scratch, aligned as tensors are.
struct ScratchLayout {
  int64_t sums = 0, lhs = 0, rhs = 0, lastUnits = 0, end = 0;

  ScratchLayout(const Blocking &block, Type sum, Type packedLhs,
                Type packedRhs) {
    auto size = [](int64_t count, Type type) {
      return tcc::alignTensor(count * bytesOf(type));
    };
    int64_t columns = block.n * block.joinedTasks;
    int64_t rows = block.getTileRows();
    lhs = block.isWholeDepth ? 0 : size(rows * columns, sum);
    rhs = lhs + (packedLhs ? size(rows * block.k, packedLhs) : 0);
    int64_t width = block.packsByPanel ? kPanelColumns : columns;
    lastUnits = rhs + (packedRhs ? size(width * block.k, packedRhs) : 0);
    end = lastUnits;
    if (block.isOfUnits)
      end += size((kRegisterRows + rows) * kRegisterUnits, sum);
  }
};

/// Emits the tasks of one contraction.
class ContractionEmitter {
public:
  ContractionEmitter(KernelBuilder &b, const Contraction &c, Value scratch);
  /// Emits one of the tasks from `firstTask` on, which come in order.
  void emitTask(Value task, Value firstTask);
  /// Several of neighbouring columns.
  void emitTasks(Value firstTask, Value lastTask);

private:
  KernelBuilder &b;
  const Contraction &c;
  Value registerRows; ///< as in Contraction; null: no register is used
  Memory sums, lhsPanels, rhsPanels; // in the worker's scratch
  /// What whole instructions leave of k, of the block's rows and of a panel of
  /// columns; null where that is nothing.
  Memory lastOfRows, lastOfColumns;
  Memory finished; // one tile, on the stack: aliases nothing

  // The block of a task or of several.
  Value batch, firstRow, rowCount, firstColumn, columnCount;
  // Rows of tiles are positions, where there are any.
  Value firstPosition, tileRows;
  PanelView lhs, rhs;
  Value hasNewColumns; // null: always
  // The block of k.
  Value k, depth, isFirst, isLast;

  PanelView packBlock(const MatrixOperand &operand, Memory into, Value first,
                      Value count, int64_t width);
  void emitDepth();
  void emitDepthBlock();
  void emitPanelPair(Value rowPanel, Value columnPanel);
  void emitTileOfColumns(Value rowPanel, Value columnPanel, int64_t columns);
  void emitTileOf(Value rowPanel, Value columnPanel, int64_t rows,
                  int64_t columns, Value lastRow);
  MatrixTile makeTile(Value rowPanel, Value columnPanel, int64_t rows,
                      int64_t columns);
  int64_t countLastUnits() const { return *constantOf(c.k) % kRegisterUnits; }
  void packLastOfRows();
  void packLastOfColumns(Value columnPanel);
  PanelView packPositions(const RowPositions &positions, Memory into);
  PanelView viewRows(PanelView view, Value first);
  bool hasSpareRows() const { return c.lhs.pack || c.lhs.hasSpareRows; }
  bool mayHaveRows(int64_t from, int64_t to);
  Value countRows(Value rowPanel);
  Value countRowsBefore(Value rowPanel);
  void emitRegisterTiles(Value rowPanel, Value columnPanel, int64_t columns);
  void emitRegisterTileOf(Value rowPanel, Value columnPanel, int64_t columns,
                          bool hasSecond);
  void prefetchNextPanel(MatrixTile &tile, Value rowPanel, Value columnPanel);
  void prefetchNextRows(MatrixTile &tile, Value rowPanel);
  int64_t getDepthMultiple() const;
  void prefetchResults(Value rowPanel, Value columnPanel, int64_t columns);
  void whenLast(function_ref<void()> body);
  void emitEpilogue(Value rowPanel, Value columnPanel);
  void finishRow(Value tileRow, Value i, Value column, Value count);
};

} // namespace

ContractionEmitter::ContractionEmitter(KernelBuilder &b, const Contraction &c,
                                       Value scratch)
    : b(b), c(c) {
  if (c.usesTileRegisters())
    registerRows = c.registerRows;
  ScratchLayout layout(c.blocking, c.arithmetic.sum, c.lhs.packedType,
                       c.rhs.packedType);
  if (!c.blocking.isWholeDepth)
    sums = b.view(scratch, layout.sums, c.arithmetic.sum);
  if (c.lhs.packedType)
    lhsPanels = b.view(scratch, layout.lhs, c.lhs.packedType);
  if (c.rhs.pack)
    rhsPanels = b.view(scratch, layout.rhs, c.rhs.packedType);
  if (registerRows && countLastUnits() > 0) {
    Type unit = b.getI32Type();
    lastOfRows = b.view(scratch, layout.lastUnits, unit);
    lastOfColumns = b.allocate(unit, kRegisterUnits * kPanelColumns);
    Value zero = b.zero(VectorType::get(kRegisterUnits, unit));
    b.loop(b.index(0), b.index(kRegisterUnits * kPanelColumns),
           b.index(kRegisterUnits),
           [&](Value at) { b.store(zero, lastOfColumns, at); });
  }
  finished = b.allocate(c.arithmetic.sum, c.blocking.getTileElements());
}

void ContractionEmitter::emitTask(Value task, Value firstTask) {
  Value rowBlocks = b.ceilDiv(c.m, c.blocking.m);
  Value columnBlocks = b.ceilDiv(c.n, c.blocking.n);
  SmallVector<Value> at =
      b.delinearize(task, {c.batch, columnBlocks, rowBlocks});
  batch = constantOf(c.batch) == 1 ? b.index(0) : at[0];
  firstColumn = b.mul(at[1], b.index(c.blocking.n));
  firstRow = b.mul(at[2], b.index(c.blocking.m));
  rowCount = b.min(b.index(c.blocking.m), b.sub(c.m, firstRow));
  columnCount = b.min(b.index(c.blocking.n), b.sub(c.n, firstColumn));
  if (c.blocking.isWholeDepth) {
    // Tasks of the same columns follow each other.
    hasNewColumns = b.create<arith::OrIOp>(b.equal(task, firstTask),
                                           b.equal(at[2], b.index(0)));
  }
  emitDepth();
}

void ContractionEmitter::emitTasks(Value firstTask, Value lastTask) {
  Value width = b.index(c.blocking.n);
  batch = firstRow = b.index(0);
  rowCount = c.m;
  firstColumn = b.mul(firstTask, width);
  columnCount =
      b.min(b.mul(b.sub(lastTask, firstTask), width), b.sub(c.n, firstColumn));
  emitDepth();
}

void ContractionEmitter::emitDepth() {
  if (c.blocking.isWholeDepth) {
    k = b.index(0);
    depth = c.k;
    return emitDepthBlock();
  }
  // At least one block: a sum over no k is zero.
  Value blocks = b.max(b.ceilDiv(c.k, c.blocking.k), b.index(1));
  b.loop(blocks, [&](Value block) {
    k = b.mul(block, b.index(c.blocking.k));
    depth = b.min(b.index(c.blocking.k), b.sub(c.k, k));
    isFirst = b.equal(block, b.index(0));
    isLast = b.equal(block, b.sub(blocks, b.index(1)));
    emitDepthBlock();
  });
}

PanelView ContractionEmitter::packBlock(const MatrixOperand &operand,
                                        Memory into, Value first, Value count,
                                        int64_t width) {
  if (operand.runs)
    return {};
  if (operand.positions)
    return packPositions(*operand.positions, into);
  if (!operand.pack) {
    PanelView view = operand.view(b, batch);
    if (registerRows && &operand == &c.lhs)
      view = viewRows(view, first), first = b.index(0);
    return view.at(b, b.div(first, b.index(width)), k);
  }
  int64_t depthBlock = c.blocking.k;
  auto pack = [&] {
    operand.pack(b, {batch, first, count, k, depth, into, width,
                     width * depthBlock, depthBlock, operand.packsRows});
  };
  if (&operand == &c.rhs && hasNewColumns)
    b.when(hasNewColumns, pack);
  else
    pack();
  if (operand.packsRows)
    return {into, b.index(0), b.index(width * depthBlock), b.index(depthBlock),
            b.index(1)};
  return packedPanels(b, into, b.index(0), width, b.index(depthBlock));
}

PanelView ContractionEmitter::packPositions(const RowPositions &positions,
                                            Memory into) {
  firstPosition = positions.positionOf(b, firstRow);
  Value lastRow = b.sub(b.add(firstRow, rowCount), b.index(1));
  Value last = positions.positionOf(b, lastRow);
  tileRows = b.add(b.sub(last, firstPosition), b.index(1));
  Value offset = positions.pack(b, firstPosition, last, into);
  Value size = b.index(positions.size);
  return {into, offset, b.mul(size, b.index(c.blocking.rows)), size,
          b.index(1)};
}

/// Behind as many rows as a tile may have before the block.
void ContractionEmitter::packLastOfRows() {
  b.loop(rowCount, [&](Value row) {
    Value at = b.add(lhs.offset, b.mul(row, lhs.laneStride));
    Value to =
        b.mul(b.add(row, b.index(kRegisterRows)), b.index(kRegisterUnits));
    packLastUnits(b, b.from(lhs.base, at), depth, b.from(lastOfRows, to));
  });
}

void ContractionEmitter::packLastOfColumns(Value columnPanel) {
  Value zero = b.index(0);
  PanelView panel =
      rhs.at(b, c.blocking.packsByPanel ? zero : columnPanel, zero);
  int64_t width = constantOf(panel.kStride).value_or(kPanelColumns);
  packLastUnits(b, panel, width, depth, countLastUnits(), lastOfColumns);
}

/// Rows from `first` on, in panels as high as tiles are.
PanelView ContractionEmitter::viewRows(PanelView view, Value first) {
  view.offset = b.add(view.offset, b.mul(first, view.laneStride));
  view.panelStride = b.mul(view.laneStride, b.index(c.blocking.rows));
  return view;
}

void ContractionEmitter::emitDepthBlock() {
  tileRows = rowCount;
  lhs = packBlock(c.lhs, lhsPanels, firstRow, rowCount, c.blocking.rows);
  if (lastOfRows)
    whenLast([&] { packLastOfRows(); });
  Value width = b.index(kPanelColumns);
  if (!c.blocking.packsByPanel)
    rhs = packBlock(c.rhs, rhsPanels, firstColumn, columnCount, kPanelColumns);
  // A panel of the right operand stays in the second-level cache while those of
  // the left one pass by.
  b.loop(b.ceilDiv(columnCount, kPanelColumns), [&](Value columnPanel) {
    if (c.blocking.packsByPanel) {
      Value column = b.mul(columnPanel, width);
      rhs = packBlock(c.rhs, rhsPanels, b.add(firstColumn, column),
                      b.min(width, b.sub(columnCount, column)), kPanelColumns);
    }
    if (lastOfColumns)
      whenLast([&] { packLastOfColumns(columnPanel); });
    b.loop(b.ceilDiv(tileRows, c.blocking.rows),
           [&](Value rowPanel) { emitPanelPair(rowPanel, columnPanel); });
  });
}

/// The last panel of columns may need fewer vectors.
void ContractionEmitter::emitPanelPair(Value rowPanel, Value columnPanel) {
  std::optional<int64_t> n = constantOf(c.n);
  int64_t tail = n ? *n % kPanelColumns : 0;
  if (tail == 0 || tail > kPanelColumns - c.unit.lanes(c.arithmetic.sum)) {
    emitTileOfColumns(rowPanel, columnPanel, kPanelColumns);
  } else if (*n < kPanelColumns) {
    emitTileOfColumns(rowPanel, columnPanel, tail);
  } else {
    Value left = b.sub(columnCount, b.mul(columnPanel, b.index(kPanelColumns)));
    b.when(
        b.less(left, b.index(kPanelColumns)),
        [&] { emitTileOfColumns(rowPanel, columnPanel, tail); },
        [&] { emitTileOfColumns(rowPanel, columnPanel, kPanelColumns); });
  }
  whenLast([&] { emitEpilogue(rowPanel, columnPanel); });
}

/// In the last block of k.
void ContractionEmitter::whenLast(function_ref<void()> body) {
  if (isLast)
    b.when(isLast, body);
  else
    body();
}

/// Rows that do not exist cost as much as others: the last panel has a tile of
/// its own height where that is known, and one of a single row where not.
void ContractionEmitter::emitTileOfColumns(Value rowPanel, Value columnPanel,
                                           int64_t columns) {
  if (registerRows)
    return emitRegisterTiles(rowPanel, columnPanel, columns);
  prefetchResults(rowPanel, columnPanel, columns);
  Value left = b.sub(rowCount, b.mul(rowPanel, b.index(c.blocking.rows)));
  auto emitRows = [&](int64_t rows, Value lastRow = nullptr) {
    emitTileOf(rowPanel, columnPanel, rows, columns, lastRow);
  };
  std::optional<int64_t> m = constantOf(c.m);
  if (!m) {
    b.when(
        b.equal(left, b.index(1)), [&] { emitRows(1); },
        [&] { emitRows(c.blocking.rows, b.sub(left, b.index(1))); });
    return;
  }
  int64_t tail = *m % c.blocking.rows;
  if (tail == 0 || *m < c.blocking.rows)
    return emitRows(tail ? tail : c.blocking.rows);
  b.when(
      b.less(left, b.index(c.blocking.rows)), [&] { emitRows(tail); },
      [&] { emitRows(c.blocking.rows); });
}

void ContractionEmitter::emitTileOf(Value rowPanel, Value columnPanel,
                                    int64_t rows, int64_t columns,
                                    Value lastRow) {
  MatrixTile tile = makeTile(rowPanel, columnPanel, rows, columns);
  tile.lastRow = lastRow;
  if (c.lhs.runs) {
    Value first = b.add(firstRow, b.mul(rowPanel, b.index(c.blocking.rows)));
    SmallVector<Value> lanes;
    for (int64_t row = 0; row < rows; ++row) {
      Value lane = b.index(row);
      lanes.push_back(b.add(first, lastRow ? b.min(lane, lastRow) : lane));
    }
    tile.lhsRuns = c.lhs.runs(b, batch, lanes);
    tile.runLength = c.lhs.runLength;
    if (c.lhs.skipsRuns)
      tile.skipsRun = c.lhs.skipsRuns(
          b, b.add(firstColumn, b.mul(columnPanel, b.index(kPanelColumns))));
  }
  prefetchNextRows(tile, rowPanel);
  emitTile(b, tile, c.arithmetic, c.unit);
}

/// The tile of a pair of panels, at their first k.
MatrixTile ContractionEmitter::makeTile(Value rowPanel, Value columnPanel,
                                        int64_t rows, int64_t columns) {
  Value zero = b.index(0);
  MatrixTile tile{
      .lhs = c.lhs.runs ? lhs : lhs.at(b, rowPanel, zero),
      .rhs = rhs.at(b, c.blocking.packsByPanel ? zero : columnPanel, zero),
      .k = k,
      .depth = depth,
      .depthMultiple = getDepthMultiple(),
      .rows = rows,
      .columns = columns,
      .unroll = c.blocking.unroll,
      .into = finished,
      .intoOffset = zero};
  if (!c.rhs.pack && constantOf(rhs.kStride) == kPanelColumns)
    prefetchNextPanel(tile, rowPanel, columnPanel);
  if (sums) {
    int64_t rowPanels = llvm::divideCeil(c.blocking.m, c.blocking.rows);
    Value number =
        b.linearize({columnPanel, rowPanel}, {b.index(rowPanels), b.index(1)});
    tile.from = sums;
    tile.fromOffset = b.mul(number, b.index(c.blocking.getTileElements()));
    tile.isFirst = isFirst;
    tile.into.pointer =
        b.create<arith::SelectOp>(isLast, finished.pointer, sums.pointer);
    tile.intoOffset = b.create<arith::SelectOp>(isLast, zero, tile.fromOffset);
  }
  return tile;
}

/// What the k of all blocks and runs are multiples of.
int64_t ContractionEmitter::getDepthMultiple() const {
  std::optional<int64_t> all = constantOf(c.k);
  int64_t multiple = all.value_or(1);
  if (!c.blocking.isWholeDepth && c.blocking.k < multiple)
    multiple = std::gcd(multiple, c.blocking.k);
  return c.lhs.runs ? std::gcd(multiple, c.lhs.runLength) : multiple;
}

/// Whether the rows of some block leave a number in [from, to] to a panel of
/// rows.
bool ContractionEmitter::mayHaveRows(int64_t from, int64_t to) {
  std::optional<int64_t> m = constantOf(c.m);
  if (!m || c.lhs.positions)
    return true;
  auto hasPanel = [&](int64_t rows) {
    int64_t height = c.blocking.rows, rest = rows % height;
    return (rest >= from && rest <= to) || (rows >= height && to >= height);
  };
  return hasPanel(std::min(*m, c.blocking.m)) || hasPanel(*m % c.blocking.m);
}

/// Rows of a panel that exist.
Value ContractionEmitter::countRows(Value rowPanel) {
  Value height = b.index(c.blocking.rows);
  return b.min(height, b.sub(tileRows, b.mul(rowPanel, height)));
}

/// Rows of a tile before those of its panel. Registers are configured for a
/// number of rows: where these are read in place, the last ones that exist are.
Value ContractionEmitter::countRowsBefore(Value rowPanel) {
  Value zero = b.index(0);
  if (!registerRows || hasSpareRows() || !mayHaveRows(1, kRegisterRows - 1))
    return zero;
  return b.max(zero, b.sub(registerRows, countRows(rowPanel)));
}

void ContractionEmitter::emitRegisterTiles(Value rowPanel, Value columnPanel,
                                           int64_t columns) {
  auto emitTwo = [&] {
    emitRegisterTileOf(rowPanel, columnPanel, columns, /*hasSecond=*/true);
  };
  auto emitOne = [&] {
    emitRegisterTileOf(rowPanel, columnPanel, columns, /*hasSecond=*/false);
  };
  if (!mayHaveRows(1, kRegisterRows))
    return emitTwo();
  if (!mayHaveRows(kRegisterRows + 1, c.blocking.rows))
    return emitOne();
  b.when(b.less(b.index(kRegisterRows), countRows(rowPanel)), emitTwo, emitOne);
}

void ContractionEmitter::emitRegisterTileOf(Value rowPanel, Value columnPanel,
                                            int64_t columns, bool hasSecond) {
  MatrixTile tile = makeTile(rowPanel, columnPanel, c.blocking.rows, columns);
  Value count = countRows(rowPanel), most = b.index(kRegisterRows);
  Value row = b.mul(rowPanel, b.index(c.blocking.rows)); // of the block
  RegisterRows rows;
  if (c.lhs.positions)
    rows.runs = {c.lhs.positions->runs, c.lhs.positions->size,
                 c.lhs.positions->runOffset};
  if (hasSecond) {
    rows.second = hasSpareRows() ? most : b.min(most, b.sub(count, most));
  } else {
    Value before = countRowsBefore(rowPanel);
    tile.lhs.offset =
        b.sub(tile.lhs.offset, b.mul(before, tile.lhs.laneStride));
    row = b.sub(row, before);
  }
  if (lastOfRows) {
    Value at = b.mul(b.add(row, most), b.index(kRegisterUnits));
    rows.lastOfRows = b.from(lastOfRows, at);
    rows.lastOfColumns = lastOfColumns;
  }
  emitRegisterTile(b, tile, rows);
}

/// The tiles of one panel of columns share out the fetching of the next one
/// into the second-level cache: it would come too late when first used.
void ContractionEmitter::prefetchNextPanel(MatrixTile &tile, Value rowPanel,
                                           Value columnPanel) {
  int64_t rows = std::min(constantOf(c.m).value_or(c.blocking.m), c.blocking.m);
  // So few products a weight wait for no more than the stream of weights, which
  // the CPU fetches ahead by itself.
  constexpr int64_t streamingRows = 2;
  if (rows <= streamingRows)
    return;
  int64_t tiles = llvm::divideCeil(std::max<int64_t>(rows, 1), c.blocking.rows);
  int64_t stride = llvm::divideCeil(kPanelColumns, tiles);
  PanelView next = rhs.at(b, b.add(columnPanel, b.index(1)), b.index(0));
  Value share = b.mul(rowPanel, b.mul(depth, b.index(stride)));
  tile.ahead.push_back({rhs.base, b.add(next.offset, share), stride});
}

/// So do those of a few columns the fetching of the next rows, where these lie
/// one after the other. More columns use a row often enough.
void ContractionEmitter::prefetchNextRows(MatrixTile &tile, Value rowPanel) {
  constexpr int64_t fewColumns = 4 * kPanelColumns;
  std::optional<int64_t> columns = constantOf(c.n), depth = constantOf(c.k);
  if (!c.lhs.view || !c.blocking.isWholeDepth || !depth || !columns ||
      *columns > fewColumns || constantOf(lhs.kStride) != 1 ||
      constantOf(lhs.laneStride) != depth)
    return;
  PanelView next = lhs.at(b, b.add(rowPanel, b.index(1)), b.index(0));
  tile.ahead.push_back({lhs.base, next.offset, c.blocking.rows});
}

/// What finishes a tile is fetched while the last products are summed, unless
/// these are so many that it would have left the first-level cache again.
void ContractionEmitter::prefetchResults(Value rowPanel, Value columnPanel,
                                         int64_t columns) {
  if (!c.prefetchResults || c.blocking.k > Blocking().k)
    return;
  Value first = b.add(firstRow, b.mul(rowPanel, b.index(c.blocking.rows)));
  Value column = b.mul(columnPanel, b.index(kPanelColumns));
  whenLast([&] {
    b.loop(countRows(rowPanel), [&](Value row) {
      c.prefetchResults(b, batch, b.add(first, row), b.add(firstColumn, column),
                        columns);
    });
  });
}

void ContractionEmitter::finishRow(Value tileRow, Value i, Value column,
                                   Value count) {
  Value first = b.add(firstColumn, column);
  Value at = b.mul(tileRow, b.index(kPanelColumns));
  b.loop(count, [&](Value lane) {
    Value sum = b.load(finished, b.add(at, lane));
    c.epilogue(b, sum, batch, i, b.add(first, lane));
  });
}

void ContractionEmitter::emitEpilogue(Value rowPanel, Value columnPanel) {
  Value row = b.mul(rowPanel, b.index(c.blocking.rows));
  Value column = b.mul(columnPanel, b.index(kPanelColumns));
  Value rows = countRows(rowPanel), before = countRowsBefore(rowPanel);
  Value width = b.index(kPanelColumns);
  Value columns = b.min(b.sub(columnCount, column), width), tail = columns;
  auto finishRows = [&](Value count) {
    b.loop(rows, [&](Value r) {
      Value tileRow = b.add(before, r);
      if (!c.lhs.positions)
        return finishRow(tileRow, b.add(firstRow, b.add(row, r)), column,
                         count);
      Value position = b.add(firstPosition, b.add(row, r));
      auto [isRow, i] = c.lhs.positions->rowAt(b, position);
      b.when(isRow, [&] { finishRow(tileRow, i, column, count); });
    });
  };
  // Loops of known length vectorise.
  if (std::optional<int64_t> n = constantOf(c.n)) {
    tail = b.index(*n % kPanelColumns);
    if (*n % kPanelColumns == 0 || *n < kPanelColumns)
      return finishRows(*n < kPanelColumns ? tail : width);
  }
  b.when(
      b.equal(columns, width), [&] { finishRows(width); },
      [&] { finishRows(tail); });
}

bool Contraction::usesTileRegisters() const {
  return tcc::cpu::usesTileRegisters(arithmetic, unit, k);
}

int64_t tcc::cpu::contractionScratchBytes(const Blocking &blocking, Type sum,
                                          Type packedLhs, Type packedRhs) {
  return ScratchLayout(blocking, sum, packedLhs, packedRhs).end;
}

void tcc::cpu::emitContraction(KernelBuilder &b, const Contraction &contraction,
                               Value firstTask, Value lastTask, Value scratch) {
  Contraction c = contraction;
  bool configures = c.usesTileRegisters() && !c.registerRows;
  if (c.usesTileRegisters()) {
    c.blocking.rows = kRegisterTileRows;
    c.lhs.packsRows = bool(c.lhs.pack);
  }
  if (c.lhs.positions) {
    assert(c.usesTileRegisters() && !c.rhs.pack);
    c.blocking.isWholeDepth = true;
    c.blocking.k = *constantOf(c.k);
  }
  if (configures) {
    c.registerRows = b.index(kRegisterRows);
    if (!c.lhs.positions)
      c.registerRows = b.min(c.m, c.registerRows);
    configureTileRegisters(b, c.registerRows);
  }
  ContractionEmitter emitter(b, c, scratch);
  if (c.blocking.joinedTasks > 1) {
    Value step = b.index(c.blocking.joinedTasks);
    b.loop(firstTask, lastTask, step, [&](Value task) {
      emitter.emitTasks(task, b.min(b.add(task, step), lastTask));
    });
  } else {
    b.loop(firstTask, lastTask, b.index(1),
           [&](Value task) { emitter.emitTask(task, firstTask); });
  }
  if (configures)
    releaseTileRegisters(b);
}

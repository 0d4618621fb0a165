#include "compiler/codegen/cpu/tile/TileRegisters.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

/// Registers 0 to 3 hold sums, 4 and 5 the left operand, 6 and 7 the right one.
static constexpr int64_t kFirstLhs = 4, kFirstRhs = 6, kRegisters = 8;
/// A row of a register: what an instruction takes of k, or that many sums.
static constexpr int64_t kRowBytes = 64, kRowSums = 16;

/// Products of fewer units are as fast without registers.
static constexpr int64_t kLeastUnits = kRegisterUnits / 2;

bool tcc::cpu::usesTileRegisters(const Arithmetic &arithmetic, VectorUnit unit,
                                 Value units) {
  return unit.hasTileRegisters && arithmetic.packing.group == 2 &&
         arithmetic.sum.isF32() && constantOf(units).value_or(0) >= kLeastUnits;
}

static void call(KernelBuilder &b, StringRef instruction, ValueRange operands) {
  b.create<LLVM::CallIntrinsicOp>(TypeRange(),
                                  ("llvm.x86." + instruction).str(), operands);
}

static Value registerOf(KernelBuilder &b, int64_t number) {
  return b.create<LLVM::ConstantOp>(b.getI8Type(), number);
}

void tcc::cpu::configureTileRegisters(KernelBuilder &b, Value rows) {
  // Bytes of the configuration: the palette, bytes of a row of each register
  // from here, as 16 bits, and the rows of each.
  constexpr int64_t kRowBytesAt = 16, kRowsAt = 48, kSize = 64;
  Memory bytes = b.allocate(b.getI8Type(), kSize);
  auto set = [&](int64_t at, Value value) {
    b.store(value, bytes, b.index(at));
  };
  auto constant = [&](int64_t value) -> Value {
    return b.create<arith::ConstantIntOp>(value, 8);
  };
  for (int64_t at = 0; at < kSize; ++at)
    set(at, constant(at == 0 ? 1 : 0));
  // Registers of no rows cannot be configured.
  Value own = b.max(rows, b.index(1));
  own = b.createOrFold<arith::IndexCastOp>(b.getI8Type(), own);
  for (int64_t i = 0; i < kRegisters; ++i) {
    set(kRowBytesAt + 2 * i, constant(kRowBytes));
    set(kRowsAt + i, i < kFirstRhs ? own : constant(kRegisterUnits));
  }
  call(b, "ldtilecfg", {bytes.pointer});
}

void tcc::cpu::releaseTileRegisters(KernelBuilder &b) {
  call(b, "tilerelease", {});
}

namespace {

class RegisterTile {
public:
  RegisterTile(KernelBuilder &b, const MatrixTile &tile,
               const RegisterRows &rows)
      : b(b), tile(tile), rows(rows) {
    starts.push_back(b.index(0));
    if (rows.second)
      starts.push_back(rows.second);
    Value units = b.index(kRegisterUnits);
    whole = b.mul(b.div(tile.depth, units), units);
  }

  void emit();

private:
  KernelBuilder &b;
  const MatrixTile &tile;
  const RegisterRows &rows;
  SmallVector<Value> starts; // of the rows of each register
  Value whole;               // units of k in whole instructions

  void emitColumns(int64_t first, int64_t count);
  void startSums(int64_t first, int64_t count);
  void loadRows(Memory from, Value at, Value stride);
  void multiplyColumns(Memory from, Value at, Value stride, int64_t count);
  void multiplyLast(int64_t first, int64_t count);
  /// For each instruction's k: where those are in a row, and their number.
  void forEachStep(function_ref<void(Value at, Value k)> body);
  void prefetchAhead(Value k);
  void move(StringRef instruction, int64_t number, Memory memory, Value at,
            Value stride);
  Value sumPosition(Value offset, Value row, int64_t column);
  using Sums = function_ref<void(int64_t number, Value row, int64_t column)>;
  void forEachSum(int64_t first, int64_t count, Sums body);
};

} // namespace

/// A register from or to memory, whose rows are `stride` elements apart.
void RegisterTile::move(StringRef instruction, int64_t number, Memory memory,
                        Value at, Value stride) {
  Value bytes = b.mul(stride, b.index(bytesOf(memory.element)));
  bytes = b.createOrFold<arith::IndexCastOp>(b.getI64Type(), bytes);
  call(b, instruction,
       {registerOf(b, number), b.from(memory, at).pointer, bytes});
}

Value RegisterTile::sumPosition(Value offset, Value row, int64_t column) {
  Value at = b.add(b.mul(row, b.index(kPanelColumns)), b.index(column));
  return b.add(offset, at);
}

/// The registers of sums of `count` vectors of columns from column `first` on.
void RegisterTile::forEachSum(int64_t first, int64_t count, Sums body) {
  for (auto [r, start] : llvm::enumerate(starts))
    for (int64_t v = 0; v < count; ++v)
      body(r * count + v, start, first + v * kRowSums);
}

void RegisterTile::startSums(int64_t first, int64_t count) {
  auto clear = [&] {
    forEachSum(first, count, [&](int64_t number, Value, int64_t) {
      call(b, "tilezero", {registerOf(b, number)});
    });
  };
  auto load = [&] {
    forEachSum(first, count, [&](int64_t number, Value row, int64_t column) {
      move("tileloadd64", number, tile.from,
           sumPosition(tile.fromOffset, row, column), b.index(kPanelColumns));
    });
  };
  if (!tile.from)
    return clear();
  b.when(tile.isFirst, clear, load);
}

/// So many k of the right operand's next panel as this step has of its own.
void RegisterTile::prefetchAhead(Value k) {
  constexpr int64_t lineBytes = 64;
  for (const Prefetch &next : tile.ahead) {
    Value begin = b.add(next.offset, b.mul(k, b.index(next.stride)));
    int64_t line = lineBytes / bytesOf(next.base.element);
    for (int64_t at = 0; at < kRegisterUnits * next.stride; at += line)
      b.prefetch(next.base, b.add(begin, b.index(at)),
                 KernelBuilder::secondLevel);
  }
}

/// Registers of the left operand, whose rows start at `at`.
void RegisterTile::loadRows(Memory from, Value at, Value stride) {
  for (auto [r, start] : llvm::enumerate(starts))
    move("tileloadd64", kFirstLhs + r, from, b.add(at, b.mul(start, stride)),
         stride);
}

/// One instruction for each register of sums. Registers of the right operand,
/// whose rows are `stride` apart, take turns.
void RegisterTile::multiplyColumns(Memory from, Value at, Value stride,
                                   int64_t count) {
  for (int64_t v = 0; v < count; ++v) {
    int64_t rhs = kFirstRhs + v % (kRegisters - kFirstRhs);
    move("tileloadd64", rhs, from, b.add(at, b.index(v * kRowSums)), stride);
    for (size_t r = 0; r < starts.size(); ++r)
      call(b, "tdpbf16ps",
           {registerOf(b, r * count + v), registerOf(b, kFirstLhs + r),
            registerOf(b, rhs)});
  }
}

/// What k no whole instruction takes, if there are any.
void RegisterTile::multiplyLast(int64_t first, int64_t count) {
  if (!rows.lastOfRows)
    return;
  b.when(b.less(whole, tile.depth), [&] {
    loadRows(rows.lastOfRows, b.index(0), b.index(kRegisterUnits));
    multiplyColumns(rows.lastOfColumns, b.index(first), b.index(kPanelColumns),
                    count);
  });
}

void RegisterTile::forEachStep(function_ref<void(Value, Value)> body) {
  Value zero = b.index(0), step = b.index(kRegisterUnits);
  const RegisterRuns &runs = rows.runs;
  if (runs.count == 0)
    return b.loop(zero, whole, step, [&](Value k) { body(k, k); });
  Value length = b.index(runs.length);
  b.loop(b.index(runs.count), [&](Value run) {
    Value offset = runs.offset(b, run), first = b.mul(run, length);
    b.loop(zero, length, step,
           [&](Value k) { body(b.add(offset, k), b.add(first, k)); });
  });
}

void RegisterTile::emitColumns(int64_t first, int64_t count) {
  startSums(first, count);
  forEachStep([&](Value at, Value k) {
    if (first == 0)
      prefetchAhead(k);
    loadRows(tile.lhs.base, b.add(tile.lhs.offset, at), tile.lhs.laneStride);
    Value column = b.add(tile.rhs.offset, b.index(first));
    multiplyColumns(tile.rhs.base, b.add(column, b.mul(k, tile.rhs.kStride)),
                    tile.rhs.kStride, count);
  });
  multiplyLast(first, count);
  forEachSum(first, count, [&](int64_t number, Value row, int64_t column) {
    move("tilestored64", number, tile.into,
         sumPosition(tile.intoOffset, row, column), b.index(kPanelColumns));
  });
}

void RegisterTile::emit() {
  int64_t vectors = llvm::divideCeil(tile.columns, kRowSums);
  int64_t step = kFirstLhs / int64_t(starts.size());
  for (int64_t v = 0; v < vectors; v += step)
    emitColumns(v * kRowSums, std::min(step, vectors - v));
}

void tcc::cpu::packLastUnits(KernelBuilder &b, Memory row, Value depth,
                             Memory into) {
  Value units = b.index(kRegisterUnits);
  Value taken = b.sub(units, b.rem(depth, units)); // by instructions before
  // Fewer than an instruction takes have nothing before them.
  Value none = b.lanesBelow(kRegisterUnits, taken);
  Value all = b.lanesBelow(kRegisterUnits, units);
  Value left = b.create<arith::XOrIOp>(none, all);
  Value zero = b.zero(VectorType::get(kRegisterUnits, row.element));
  b.store(b.loadMasked(row, b.sub(depth, units), left, zero), into, b.index(0));
}

void tcc::cpu::packLastUnits(KernelBuilder &b, const PanelView &panel,
                             int64_t columns, Value depth, int64_t count,
                             Memory into) {
  for (int64_t i = 0; i < count; ++i) {
    Value k = b.sub(depth, b.index(count - i));
    Value from = b.add(panel.offset, b.mul(k, panel.kStride));
    Value to = b.index((kRegisterUnits - count + i) * kPanelColumns);
    for (int64_t v = 0; v < columns; v += kRowSums) {
      Value x = b.loadVector(panel.base, b.add(from, b.index(v)), kRowSums);
      b.store(x, into, b.add(to, b.index(v)));
    }
  }
}

void tcc::cpu::emitRegisterTile(KernelBuilder &b, const MatrixTile &tile,
                                const RegisterRows &rows) {
  RegisterTile(b, tile, rows).emit();
}

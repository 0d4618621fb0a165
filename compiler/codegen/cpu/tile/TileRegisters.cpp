#include "compiler/codegen/cpu/tile/TileRegisters.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

/// Registers 0 to 3 hold sums, 4 and 5 the left operand, 6 and 7 the right one.
static constexpr int64_t kFirstLhs = 4, kFirstRhs = 6, kRegisters = 8;
/// Of a row of a register: what an instruction takes of k, or that many sums.
static constexpr int64_t kRowBytes = 64, kRowSums = 16;

bool tcc::cpu::usesTileRegisters(const Arithmetic &arithmetic, VectorUnit unit,
                                 Value units) {
  std::optional<int64_t> known = units ? constantOf(units) : std::nullopt;
  return unit.hasTileRegisters && arithmetic.packing.group == 2 &&
         arithmetic.sum.isF32() &&
         known.value_or(kRegisterUnits) >= kRegisterUnits;
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
  Value own = b.createOrFold<arith::IndexCastOp>(b.getI8Type(), rows);
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
      : b(b), tile(tile) {
    starts.push_back(b.index(0));
    if (rows.second)
      starts.push_back(rows.second);
    Value units = b.index(kRegisterUnits);
    whole = b.mul(b.div(tile.depth, units), units);
  }

  void emit();
  Value whole; ///< units of k that instructions take

private:
  KernelBuilder &b;
  const MatrixTile &tile;
  SmallVector<Value> starts; // of the rows of each register

  void emitColumns(int64_t first, int64_t count);
  void startSums(int64_t first, int64_t count);
  void multiply(Value k, int64_t first, int64_t count);
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
  if (!tile.isFirst)
    return load();
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

/// One instruction for each register of sums. A register of the left operand is
/// loaded once, those of the right one take turns.
void RegisterTile::multiply(Value k, int64_t first, int64_t count) {
  for (auto [r, start] : llvm::enumerate(starts)) {
    Value row = b.add(tile.lhs.offset, b.mul(start, tile.lhs.laneStride));
    move("tileloadd64", kFirstLhs + r, tile.lhs.base, b.add(row, k),
         tile.lhs.laneStride);
  }
  Value panelRow = b.add(tile.rhs.offset, b.mul(k, tile.rhs.kStride));
  for (int64_t v = 0; v < count; ++v) {
    int64_t rhs = kFirstRhs + v % (kRegisters - kFirstRhs);
    move("tileloadd64", rhs, tile.rhs.base,
         b.add(panelRow, b.index(first + v * kRowSums)), tile.rhs.kStride);
    for (size_t r = 0; r < starts.size(); ++r)
      call(b, "tdpbf16ps",
           {registerOf(b, r * count + v), registerOf(b, kFirstLhs + r),
            registerOf(b, rhs)});
  }
}

void RegisterTile::emitColumns(int64_t first, int64_t count) {
  startSums(first, count);
  b.loop(b.index(0), whole, b.index(kRegisterUnits), [&](Value k) {
    if (first == 0)
      prefetchAhead(k);
    multiply(k, first, count);
  });
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

void tcc::cpu::emitRegisterTile(KernelBuilder &b, const MatrixTile &tile,
                                const RegisterRows &rows, Arithmetic arithmetic,
                                VectorUnit unit) {
  RegisterTile registers(b, tile, rows);
  registers.emit();
  Value whole = registers.whole;
  if (constantOf(b.sub(tile.depth, whole)) == 0)
    return;
  MatrixTile rest = tile;
  rest.lhs.offset = b.add(rest.lhs.offset, whole);
  rest.rhs.offset = b.add(rest.rhs.offset, b.mul(whole, rest.rhs.kStride));
  rest.depth = b.sub(tile.depth, whole);
  rest.rows = rows.second ? kRegisterTileRows : rows.count;
  rest.lastRow = rows.last;
  rest.unroll = 1;
  rest.from = tile.into;
  rest.fromOffset = tile.intoOffset;
  rest.isFirst = {};
  rest.ahead = {};
  b.when(b.less(whole, tile.depth),
         [&] { emitTile(b, rest, arithmetic, unit); });
}

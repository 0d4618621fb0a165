#include "compiler/codegen/cpu/tile/Attention.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "compiler/codegen/cpu/tile/TileRegisters.h"
#include "runtime/base/Alignment.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Lanes of the passes over a row of scores, whatever the CPU.
constexpr int64_t lanes = 16;

/// The parts of a worker's scratch, aligned as tensors are.
struct ScratchLayout {
  int64_t keys, values, scores, factors, weights, products, end;
  int64_t rowStride; // of scores and weights
  Blocking scoreBlock, resultBlock;

  ScratchLayout(const AttentionSizes &bounds, Type sum, Type query, Type key,
                Type value);
};

} // namespace

/// The blocks of a product within a task: an unknown batch, as there are tasks
/// enough.
static Blocking blockingOf(int64_t rows, int64_t n, int64_t k,
                           Packing packing) {
  return chooseBlocking(
      {.batch = std::nullopt, .m = rows, .n = n, .k = k, .packing = packing});
}

ScratchLayout::ScratchLayout(const AttentionSizes &bounds, Type sum, Type query,
                             Type key, Type value) {
  int64_t end = 0;
  auto take = [&](int64_t count, Type type) {
    int64_t begin = end;
    end += tcc::alignTensor(count * bytesOf(type));
    return begin;
  };
  int64_t rows = chooseAttentionBlocking(bounds).rows;
  // A line more, so that the rows of a tile differ in their cache sets.
  rowStride = llvm::alignTo(bounds.keys, kPanelColumns) + lanes;
  int64_t depth = bounds.getUnits(bounds.depth);
  int64_t keyUnits = bounds.getUnits(bounds.keys);
  keys = take(llvm::alignTo(bounds.keys, kPanelColumns) * depth, key);
  values = take(llvm::alignTo(bounds.columns, kPanelColumns) * keyUnits, value);
  scores = take(rows * rowStride, sum);
  factors = take(rows, sum);
  // Rows that fill up tile registers are read, whatever is there.
  weights = end;
  if (bounds.packing.group > 1)
    take(llvm::alignTo(rows, kRegisterTileRows) * rowStride,
         BFloat16Type::get(sum.getContext()));
  products = end;
  scoreBlock = blockingOf(rows, bounds.keys, depth, bounds.packing);
  resultBlock = blockingOf(rows, bounds.columns, keyUnits, bounds.packing);
  this->end =
      end + std::max(contractionScratchBytes(scoreBlock, sum, query, nullptr),
                     contractionScratchBytes(resultBlock, sum, {}, nullptr));
}

namespace {

/// Emits the tasks of one attention.
class AttentionEmitter {
public:
  AttentionEmitter(KernelBuilder &b, const Attention &a, Value scratch);
  void emitTask(Value task);

private:
  KernelBuilder &b;
  const Attention &a;
  Type sum;
  ScratchLayout layout;
  AttentionBlocking blocking;
  Memory keys, values, scores, factors;
  Memory weights;        // null: they replace the scores
  Value depth, keyUnits; // in units
  Value products;        // scratch of the contractions

  Value batch, first, count; // the rows at hand

  PanelView pack(const MatrixOperand &operand, Memory into, Value lanes,
                 Value depth, int64_t maxDepth);
  void emitRows(const PanelView &keyPanels, const PanelView &valuePanels);
  void emitScores(const PanelView &keyPanels);
  void emitSoftmax(Value row);
  void roundWeights(Value row);
  void emitResults(const PanelView &valuePanels);
  void emitProduct(Contraction &c, const Blocking &blocking);
  Value addLanes(Value vector);
};

} // namespace

AttentionEmitter::AttentionEmitter(KernelBuilder &b, const Attention &a,
                                   Value scratch)
    : b(b), a(a), sum(a.arithmetic.sum),
      layout(a.bounds, sum, a.query.packedType, a.key.packedType,
             a.value.packedType),
      blocking(chooseAttentionBlocking(a.bounds)) {
  keys = b.view(scratch, layout.keys, a.key.packedType);
  values = b.view(scratch, layout.values, a.value.packedType);
  scores = b.view(scratch, layout.scores, sum);
  factors = b.view(scratch, layout.factors, sum);
  Packing packing = a.bounds.packing;
  if (packing.group > 1)
    weights = b.view(scratch, layout.weights, b.getBF16Type());
  depth = b.ceilDiv(a.depth, packing.group);
  keyUnits = b.ceilDiv(a.keys, packing.group);
  products = b.view(scratch, layout.products, sum).pointer;
}

PanelView AttentionEmitter::pack(const MatrixOperand &operand, Memory into,
                                 Value lanes, Value depth, int64_t maxDepth) {
  Value zero = b.index(0);
  operand.pack(b, {batch, zero, lanes, zero, depth, into, kPanelColumns,
                   kPanelColumns * maxDepth, maxDepth});
  return packedPanels(b, into, zero, kPanelColumns, b.index(maxDepth));
}

void AttentionEmitter::emitTask(Value task) {
  Value taskRows = b.index(blocking.taskRows), rows = b.index(blocking.rows);
  Value blocks = b.ceilDiv(a.queries, blocking.taskRows);
  batch = b.div(task, blocks);
  Value begin = b.mul(b.rem(task, blocks), taskRows);
  Value end = b.min(b.add(begin, taskRows), a.queries);
  const AttentionSizes &bounds = a.bounds;
  PanelView keyPanels =
      pack(a.key, keys, a.keys, depth, bounds.getUnits(bounds.depth));
  PanelView valuePanels =
      pack(a.value, values, a.columns, keyUnits, bounds.getUnits(bounds.keys));
  b.loop(begin, end, rows, [&](Value from) {
    first = from;
    count = b.min(rows, b.sub(end, from));
    emitScores(keyPanels);
    b.loop(count, [&](Value row) {
      emitSoftmax(row);
      if (weights)
        roundWeights(row);
    });
    emitResults(valuePanels);
  });
}

void AttentionEmitter::emitProduct(Contraction &c, const Blocking &blocking) {
  c.arithmetic = a.arithmetic;
  c.blocking = blocking;
  c.unit = a.unit;
  c.registerRows = a.registerRows;
  Value tasks = b.mul(b.ceilDiv(c.m, blocking.m), b.ceilDiv(c.n, blocking.n));
  emitContraction(b, c, b.index(0), tasks, products);
}

void AttentionEmitter::emitScores(const PanelView &keyPanels) {
  Contraction c{b.index(1), count, a.keys, depth};
  // Rows of the product are queries from `first` on.
  c.lhs.packedType = a.query.packedType;
  c.lhs.packsRows = a.query.packsRows;
  if (a.query.view)
    c.lhs.view = [this](KernelBuilder &b, Value) {
      PanelView view = a.query.view(b, batch);
      view.offset = b.add(view.offset, b.mul(first, view.laneStride));
      view.panelStride =
          b.mul(view.laneStride, b.index(layout.scoreBlock.rows));
      return view;
    };
  else
    c.lhs.pack = [this](KernelBuilder &b, const PackRequest &request) {
      PackRequest moved = request;
      moved.batch = batch;
      moved.first = b.add(first, request.first);
      a.query.pack(b, moved);
    };
  c.rhs.view = [&](KernelBuilder &, Value) { return keyPanels; };
  Value stride = b.index(layout.rowStride);
  c.epilogue = [&](KernelBuilder &b, Value product, Value, Value i, Value j) {
    Value score = a.score(b, product, batch, b.add(first, i), j);
    b.store(score, scores, b.add(b.mul(i, stride), j));
  };
  emitProduct(c, layout.scoreBlock);
}

/// The tree over the lanes: halves with halves.
Value AttentionEmitter::addLanes(Value vector) {
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    auto part = [&](int64_t from) {
      return b.create<vector::ExtractStridedSliceOp>(
          vector, ArrayRef(from), ArrayRef(half), ArrayRef<int64_t>{1});
    };
    vector = b.create<arith::AddFOp>(part(0), part(half));
  }
  return b.create<vector::ExtractOp>(vector, ArrayRef<int64_t>{0});
}

/// exp(x - max) in place of a row of scores, and what its sums are multiplied
/// by: not finite where the weights are NaN, unless they are replaced.
void AttentionEmitter::emitSoftmax(Value row) {
  auto type = VectorType::get(lanes, sum);
  auto constant = [&](double value) -> Value {
    return b.create<arith::ConstantOp>(b.getFloatAttr(sum, value));
  };
  Value zero = constant(0), lowest = constant(-INFINITY);
  Value begin = b.mul(row, b.index(layout.rowStride));
  Value end = b.mul(b.ceilDiv(a.keys, lanes), b.index(lanes));
  b.loop(a.keys, end, b.index(1),
         [&](Value j) { b.store(lowest, scores, b.add(begin, j)); });
  auto reduce = [&](Value from, auto combine) {
    return b.loop(b.index(0), end, b.index(lanes),
                  ValueRange{b.create<vector::BroadcastOp>(type, from)},
                  [&](Value j, ValueRange carried) {
                    Value x = b.loadVector(scores, b.add(begin, j), lanes);
                    return SmallVector<Value>{combine(carried[0], x)};
                  })[0];
  };
  Value largest = b.create<vector::ReductionOp>(
      vector::CombiningKind::MAXIMUMF, reduce(lowest, [&](Value x, Value y) {
        return b.create<arith::MaximumFOp>(x, y);
      }));
  Value isEmpty =
      b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, largest, lowest);
  Value shift = b.create<arith::SelectOp>(isEmpty, zero, largest);
  b.loop(end, [&](Value j) {
    Value at = b.add(begin, j);
    Value x = b.create<arith::SubFOp>(b.load(scores, at), shift);
    b.store(b.create<math::ExpOp>(x), scores, at);
  });
  Value total = addLanes(reduce(
      zero, [&](Value x, Value y) { return b.create<arith::AddFOp>(x, y); }));
  // Without keys there is nothing to sum.
  Value factor =
      b.create<arith::SelectOp>(b.equal(a.keys, b.index(0)), zero,
                                b.create<arith::DivFOp>(constant(1), total));
  b.store(factor, factors, row);
  if (!a.guard)
    return;
  Value none = b.create<arith::SubFOp>(factor, factor);
  Value isNan = b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, none, none);
  b.when(isNan, [&] {
    b.store(zero, factors, row);
    b.loop(end, [&](Value j) { b.store(zero, scores, b.add(begin, j)); });
  });
}

/// The exponentials as the second product reads them, with zeros up to whole
/// units.
void AttentionEmitter::roundWeights(Value row) {
  Value begin = b.mul(row, b.index(layout.rowStride));
  Value end = b.mul(b.ceilDiv(a.keys, lanes), b.index(lanes));
  auto type = VectorType::get(lanes, weights.element);
  b.loop(b.index(0), end, b.index(lanes), [&](Value j) {
    Value at = b.add(begin, j), x = b.loadVector(scores, at, lanes), narrow;
    if (a.unit.hasPairProducts)
      narrow = b.create<LLVM::FPTruncOp>(type, x);
    else
      narrow = b.create<arith::TruncFOp>(type, x);
    Memory bits = weights.asBits();
    narrow = b.create<arith::BitcastOp>(type.clone(bits.element), narrow);
    b.store(narrow, bits, at);
  });
}

void AttentionEmitter::emitResults(const PanelView &valuePanels) {
  Contraction c{b.index(1), count, a.columns, keyUnits};
  Memory matrix = weights ? asUnits(weights, a.bounds.packing) : scores;
  int64_t rowStride = a.bounds.getUnits(layout.rowStride);
  PanelView rows{matrix, b.index(0),
                 b.index(rowStride * layout.resultBlock.rows),
                 b.index(rowStride), b.index(1)};
  c.lhs.view = [&](KernelBuilder &, Value) { return rows; };
  c.lhs.hasSpareRows = bool(weights);
  c.rhs.view = [&](KernelBuilder &, Value) { return valuePanels; };
  c.epilogue = [&](KernelBuilder &b, Value x, Value, Value i, Value j) {
    x = b.create<arith::MulFOp>(x, b.load(factors, i));
    a.epilogue(b, x, batch, b.add(first, i), j);
  };
  emitProduct(c, layout.resultBlock);
}

/// Packing keys and values costs what a dozen rows cost, and all of them are
/// read for each few rows.
AttentionBlocking
tcc::cpu::chooseAttentionBlocking(const AttentionSizes &sizes) {
  constexpr int64_t rows = 48, taskRows = 240, tasksWanted = 8;
  int64_t queries = std::max<int64_t>(1, sizes.queries);
  int64_t blocks = llvm::divideCeil(queries, taskRows);
  if (sizes.batch)
    blocks = std::max<int64_t>(blocks, tasksWanted /
                                           std::max<int64_t>(1, *sizes.batch));
  auto split = [](int64_t count, int64_t parts) {
    return int64_t(
        llvm::alignTo(llvm::divideCeil(count, parts), 2 * panelRows));
  };
  AttentionBlocking blocking;
  blocking.taskRows = std::max(split(queries, blocks), rows);
  int64_t own = std::min(queries, blocking.taskRows);
  blocking.rows = split(own, llvm::divideCeil(own, rows));
  return blocking;
}

int64_t tcc::cpu::attentionScratchBytes(const AttentionSizes &bounds, Type sum,
                                        Type query, Type key, Type value) {
  return ScratchLayout(bounds, sum, query, key, value).end;
}

void tcc::cpu::emitAttention(KernelBuilder &b, const Attention &attention,
                             Value firstTask, Value lastTask, Value scratch) {
  Attention a = attention;
  bool hasRegisters = false;
  for (Value elements : {a.depth, a.keys})
    hasRegisters |= usesTileRegisters(
        a.arithmetic, a.unit, b.ceilDiv(elements, a.bounds.packing.group));
  if (hasRegisters) {
    a.registerRows = b.min(a.queries, b.index(kRegisterRows));
    configureTileRegisters(b, a.registerRows);
  }
  AttentionEmitter emitter(b, a, scratch);
  b.loop(firstTask, lastTask, b.index(1),
         [&](Value task) { emitter.emitTask(task); });
  if (hasRegisters)
    releaseTileRegisters(b);
}

//===- PointwiseKernel.cpp - One loop nest over the results ---------------===//
//
// All results have one shape, the space. Its last axis is the inner loop; the
// others are one loop over rows. A task takes some rows, or a part of one.
//
// Where a tensor is transposed, its neighbours along another axis than the last
// are adjacent. Rows are then worked on sixteen at once, in tiles, which are
// square unless an axis is short: a tile of what is transposed is computed in
// its own order and transposed in registers first. Pairs of bf16 that stay
// neighbours move as one: the inner loop is over the axis before the last,
// then. Tiles along an axis that a reshape joins (MergedAxis.h) come in an
// order in which those that read the same lines follow each other. Where the
// elements of all periods are adjacent, they are the rows of a tile.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/kernels/PointwisePlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

FailureOr<TaskPlan> planPointwiseKernel(FusedOp region,
                                        ArrayRef<SymbolAttr> symbols) {
  return TaskPlan{PointwisePlan(region, symbols).getTasks(), 0};
}

namespace {

class PointwiseEmitter {
public:
  PointwiseEmitter(KernelBuilder &b, KernelFrame &frame);
  void emitTask(Value task);

private:
  KernelBuilder &b;
  KernelFrame &frame;
  PointwisePlan plan;
  Location loc;
  SmallVector<Buffer> tiles; // of the results of transposes

  Value size(AffineExpr expression) {
    return frame.elements.size(b, loc, expression);
  }
  void emitRow(ArrayRef<Value> row, Value from, Value to);
  void emitElements(ArrayRef<Value> row, Value column);
  void emitElement(ArrayRef<Value> at);
  SmallVector<Value> getIndices(ArrayRef<Value> row, Value column, int64_t u);
  Value orderBlock(Value number);
  void emitBlock(ArrayRef<Value> block, Value to);
  void prefetchNextTile(size_t transpose, ArrayRef<Value> first, Value column);
  SmallVector<Value> getSource(TransposeOp op, ArrayRef<Value> first, Value r,
                               Value column, int64_t u);
  Value readSource(size_t transpose, ArrayRef<Value> first, Value r,
                   Value column, int64_t u);
  SmallVector<Value> getRow(ArrayRef<Value> first, Value r);
  void fillLines(size_t transpose, ArrayRef<Value> first, Value column);
  void fillTile(size_t transpose, ArrayRef<Value> first, Value column);
  void forEachPart(int64_t count, KernelBuilder::Body body);
  void emitTile(ArrayRef<Value> first, Value column);
  /// The place of element `u` of a unit in a tile.
  Value getPlace(Value row, Value column, int64_t u) {
    Value place = b.add(b.mul(row, b.index(kTile)), column);
    if (plan.hasLines)
      return b.add(place, b.index(u * kTile * kTile));
    return b.add(b.mul(place, b.index(plan.unit)), b.index(u));
  }
};

} // namespace

PointwiseEmitter::PointwiseEmitter(KernelBuilder &b, KernelFrame &frame)
    : b(b), frame(frame), plan(frame.region, frame.symbols), loc(frame.loc) {
  for (TransposeOp op : plan.transposes) {
    Type element = getElementTypeOrSelf(op.getType());
    tiles.push_back(
        frame.elements.allocate(loc, plan.hasLines ? b.getF32Type() : element,
                                kTile * kTile * plan.unit));
  }
}

void PointwiseEmitter::emitTask(Value task) {
  Value inner = size(plan.inner);
  auto sizes = llvm::map_to_vector(
      plan.getRowExtents(), [&](AffineExpr extent) { return size(extent); });
  if (plan.chunk) {
    SmallVector<Value> place = b.delinearize(
        task, {size(plan.getRows()), size(plan.inner.ceilDiv(plan.chunk))});
    Value width = b.index(plan.chunk);
    Value from = b.mul(place[1], width);
    return emitRow(b.delinearize(place[0], sizes), from,
                   b.min(b.add(from, width), inner));
  }
  Value from = b.mul(task, b.index(plan.rowsPerTask));
  Value to = b.add(from, b.index(plan.rowsPerTask));
  b.loop(from, b.min(to, size(plan.getRows())), b.index(1), [&](Value row) {
    SmallVector<Value> at = b.delinearize(row, sizes);
    if (plan.tileAxis)
      return emitBlock(at, inner);
    emitRow(at, b.index(0), inner);
  });
}

void PointwiseEmitter::emitRow(ArrayRef<Value> row, Value from, Value to) {
  auto count = getConstant(plan.inner);
  if (!count || *count > kShortRow || plan.chunk)
    return b.loop(from, to, b.index(1),
                  [&](Value column) { emitElements(row, column); });
  for (int64_t column = 0; column < *count; ++column)
    emitElements(row, b.index(column));
}

/// Indices of a place of the inner loop in the space, which may be a scalar's.
SmallVector<Value> PointwiseEmitter::getIndices(ArrayRef<Value> row,
                                                Value column, int64_t u) {
  SmallVector<Value> at(row);
  int64_t rank = getExtents(frame.getYields().front()).size();
  for (Value index : {column, b.index(u)})
    if (int64_t(at.size()) < rank)
      at.push_back(index);
  return at;
}

void PointwiseEmitter::emitElements(ArrayRef<Value> row, Value column) {
  for (int64_t u = 0; u < plan.unit; ++u)
    emitElement(getIndices(row, column, u));
}

void PointwiseEmitter::emitElement(ArrayRef<Value> at) {
  // A result may lie in the buffer of an input that another result reads.
  for (Value yielded : frame.getYields())
    frame.elements.element(b, loc, yielded, at);
  for (auto [yielded, buffer] :
       llvm::zip_equal(frame.getYields(), frame.results))
    frame.elements.storeElement(b, loc, yielded, at, buffer);
}

/// Where the block is that comes as number `number` along the axis of tiles:
/// the same places of all periods one after another.
Value PointwiseEmitter::orderBlock(Value number) {
  if (plan.merged.empty())
    return number;
  const MergedAxis &axis = plan.merged[0];
  Value periods = b.index(axis.periods);
  Value blocks = b.index(axis.period / plan.tileRows);
  return b.add(b.mul(b.rem(number, periods), blocks), b.div(number, periods));
}

/// Row `r` of the tile that begins at `first`.
SmallVector<Value> PointwiseEmitter::getRow(ArrayRef<Value> first, Value r) {
  SmallVector<Value> row(first);
  if (plan.isTurned)
    r = b.sub(b.index(plan.tileRows - 1), r);
  if (plan.hasLines)
    r = b.mul(r, b.index(plan.merged[0].period));
  row[*plan.tileAxis] = b.add(row[*plan.tileAxis], r);
  return row;
}

/// Rows along the axis of tiles: whole tiles, then the columns and rows that
/// fill none.
void PointwiseEmitter::emitBlock(ArrayRef<Value> block, Value to) {
  int64_t axis = *plan.tileAxis;
  SmallVector<Value> first(block);
  Value height = b.index(plan.tileRows), width = b.index(plan.tileColumns);
  Value zero = b.index(0), count = height;
  if (!plan.hasLines) {
    first[axis] = b.mul(orderBlock(block[axis]), height);
    count = b.min(height, b.sub(size(plan.outer[axis]), first[axis]));
  }
  Value whole = b.mul(b.div(to, width), width);
  auto emitRows = [&](Value rows, Value from) {
    b.loop(rows, [&](Value r) { emitRow(getRow(first, r), from, to); });
  };
  b.when(
      b.equal(count, height),
      [&] {
        b.loop(zero, whole, width,
               [&](Value column) { emitTile(first, column); });
        emitRows(height, whole);
      },
      [&] { emitRows(count, zero); });
}

/// What the next block of rows reads lies behind what this one does, in lines
/// that are too far apart for the CPU to foresee. Where all periods read the
/// same lines, each fetches a part of them.
void PointwiseEmitter::prefetchNextTile(size_t transpose, ArrayRef<Value> first,
                                        Value column) {
  if (*plan.tileAxis + 1 != int64_t(plan.outer.size()))
    return;
  bool isMerged = !plan.merged.empty();
  if (isMerged && !plan.merged[transpose].isDense())
    return;
  TransposeOp op = plan.transposes[transpose];
  Value read =
      isMerged ? ReshapeOp(plan.merged[transpose].reshape).getX() : op.getX();
  StridedInput source =
      traceInput(read, [](Value v) { return isa<BlockArgument>(v); }, isMerged);
  if (!source.input)
    return;
  auto strides = llvm::map_to_vector(
      source.strides, [&](AffineExpr stride) { return size(stride); });
  SmallVector<Value> next = getSource(op, first, b.index(0), column, 0);
  Value part = b.index(0);
  int64_t elements = 1;
  if (isMerged) {
    const MergedAxis &axis = plan.merged[transpose];
    Value start = first[*plan.tileAxis], period = b.index(axis.period);
    Value place = b.add(b.rem(start, period), b.index(plan.tileRows));
    next = axis.getSource(b, next, b.index(0), place, b.index(0));
    elements = plan.tileRows * plan.unit;
    part = b.mul(b.div(start, period), b.index(elements));
  } else {
    next.back() = b.add(next.back(), b.index(plan.tileRows));
  }
  Value at =
      b.add(size(source.offset), b.add(b.linearize(next, strides), part));
  Memory memory = getMemory(frame, source.input);
  int64_t line = 64 / bytesOf(memory.element);
  for (int64_t i = 0; i < elements; i += line)
    b.prefetch(memory, b.add(at, b.index(i)), KernelBuilder::firstLevel);
}

/// What the transpose `op` reads for element `u` of row `r` of a tile.
SmallVector<Value> PointwiseEmitter::getSource(TransposeOp op,
                                               ArrayRef<Value> first, Value r,
                                               Value column, int64_t u) {
  SmallVector<Value> at = getIndices(getRow(first, r), column, u);
  SmallVector<Value> from(at.size());
  for (auto [index, axis] : llvm::zip_equal(at, op.getPermutation()))
    from[axis] = index;
  return from;
}

/// That element. A tile lies within one period: no index of its rows need be
/// divided.
Value PointwiseEmitter::readSource(size_t transpose, ArrayRef<Value> first,
                                   Value r, Value column, int64_t u) {
  TransposeOp op = plan.transposes[transpose];
  SmallVector<Value> from = getSource(op, first, r, column, u);
  if (plan.merged.empty())
    return frame.elements.element(b, loc, op.getX(), from);
  MergedAxis &axis = plan.merged[transpose];
  Value start = first[*plan.tileAxis], period = b.index(axis.period);
  Value place = b.add(b.rem(start, period), r);
  from = axis.getSource(b, from, b.div(start, period), place, b.index(u));
  return frame.elements.element(b, loc, axis.reshape.getX(), from);
}

/// Reads each column of a tile as one vector.
void PointwiseEmitter::fillLines(size_t transpose, ArrayRef<Value> first,
                                 Value column) {
  TransposeOp op = plan.transposes[transpose];
  const MergedAxis &axis = plan.merged[transpose];
  StridedInput source = traceFloats(op, axis);
  auto strides = llvm::map_to_vector(
      source.strides, [&](AffineExpr stride) { return size(stride); });
  Memory input = getMemory(frame, source.input);
  Memory tile = {tiles[transpose].getPointer(), input.element};
  auto type = VectorType::get(kTile, input.element);
  SmallVector<bool> isPeriod(kTile, false);
  std::fill_n(isPeriod.begin(), plan.tileRows, true);
  Value mask = b.create<arith::ConstantOp>(DenseElementsAttr::get(
      VectorType::get(kTile, b.getI1Type()), ArrayRef<bool>(isPeriod)));
  Value lowest = b.index(plan.isTurned ? plan.tileRows - 1 : 0);
  // Places that follow each other share lines if they are dense.
  Value ahead =
      b.index((axis.isDense() ? 4 : 1) * axis.unit * axis.strides.back());
  for (int64_t u = 0; u < plan.unit; ++u) {
    SmallVector<Value> vectors;
    for (int64_t c = 0; c < kTile; ++c) {
      Value at = b.add(column, b.index(c));
      SmallVector<Value> from = getSource(op, first, b.index(0), at, u);
      from = axis.getSource(b, from, lowest, first[*plan.tileAxis], b.index(u));
      Value place = b.add(size(source.offset), b.linearize(from, strides));
      b.prefetch(input, b.add(place, ahead), KernelBuilder::firstLevel);
      vectors.push_back(b.loadMasked(input, place, mask, b.zero(type)));
    }
    cpu::transpose(b, vectors);
    for (int64_t r = 0; r < plan.tileRows; ++r)
      b.store(vectors[r], tile, getPlace(b.index(r), b.index(0), u));
  }
}

void PointwiseEmitter::fillTile(size_t transpose, ArrayRef<Value> first,
                                Value column) {
  if (plan.hasLines)
    return fillLines(transpose, first, column);
  TransposeOp op = plan.transposes[transpose];
  const Buffer &tile = tiles[transpose];
  b.loop(b.index(plan.tileColumns), [&](Value c) {
    Value at = b.add(column, c);
    prefetchNextTile(transpose, first, at);
    forEachPart(plan.tileRows, [&](Value r) {
      for (int64_t u = 0; u < plan.unit; ++u)
        tile.store(b, loc, readSource(transpose, first, r, at, u),
                   getPlace(c, r, u));
    });
  });
  int64_t bytes = getStorageBytes(getElementTypeOrSelf(op.getType()));
  Type bits = b.getIntegerType(8 * plan.unit * bytes);
  Memory memory = {tile.getPointer(), bits};
  SmallVector<Value> vectors(kTile, b.zero(VectorType::get(kTile, bits)));
  for (int64_t i = 0; i < plan.tileColumns; ++i)
    vectors[i] = b.loadVector(memory, b.index(i * kTile), kTile);
  cpu::transpose(b, vectors);
  for (int64_t i = 0; i < plan.tileRows; ++i)
    b.store(vectors[i], memory, b.index(i * kTile));
}

/// Whole vectors: with lanes masked out, one would seem to overlap the next
/// row, which may be in the same buffer, and wait for it.
void PointwiseEmitter::forEachPart(int64_t count, KernelBuilder::Body body) {
  int64_t whole = llvm::bit_floor(uint64_t(count));
  b.loop(b.index(whole), body);
  b.loop(b.index(whole), b.index(count), b.index(1), body);
}

void PointwiseEmitter::emitTile(ArrayRef<Value> first, Value column) {
  for (size_t transpose = 0; transpose < tiles.size(); ++transpose)
    fillTile(transpose, first, column);
  Value twoTiles = b.index(2 * plan.tileColumns);
  b.loop(b.index(plan.tileRows), [&](Value r) {
    SmallVector<Value> row = getRow(first, r);
    // All rows of an axis: the next ones are of the same rows, which are far
    // apart.
    if (plan.tileRows < kTile)
      prefetchResults(b, frame, getIndices(row, b.add(column, twoTiles), 0),
                      plan.tileColumns * plan.unit);
    forEachPart(plan.tileColumns, [&](Value c) {
      for (int64_t u = 0; u < plan.unit; ++u) {
        SmallVector<Value> at = getIndices(row, b.add(column, c), u);
        Value place = getPlace(r, c, u);
        for (auto [op, tile] : llvm::zip_equal(plan.transposes, tiles)) {
          Value element = tile.load(b, loc, place);
          if (plan.hasLines)
            element = frame.elements.round(b, loc, element,
                                           getElementTypeOrSelf(op.getType()));
          frame.elements.define(op.getResult(), at, element);
        }
        emitElement(at);
      }
    });
  });
}

LogicalResult emitPointwiseKernel(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  PointwiseEmitter emitter(builder, frame);
  builder.loop(frame.firstTask, frame.lastTask, builder.index(1),
               [&](Value task) { emitter.emitTask(task); });
  return success();
}

} // namespace tcc::cpu

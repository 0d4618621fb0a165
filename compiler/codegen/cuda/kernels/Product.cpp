#include "compiler/codegen/cuda/kernels/Product.h"
#include "compiler/codegen/cuda/kernels/SharedTile.h"
#include "compiler/codegen/region/Sums.h"
#include "dialects/graph/Strides.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

// --- Tiles

DictionaryAttr ProductTile::write(MLIRContext *context) const {
  Builder b(context);
  auto numbers = b.getDenseI64ArrayAttr(
      {rows, columns, depth, threadRows, threadColumns, splits});
  return b.getDictionaryAttr(b.getNamedAttr(kKey, numbers));
}

std::optional<ProductTile> ProductTile::read(FusedOp region) {
  constexpr int64_t kNumbers = 6;
  auto attr = dyn_cast_if_present<DenseI64ArrayAttr>(getChoice(region, kKey));
  if (!attr || attr.size() != kNumbers)
    return std::nullopt;
  ArrayRef<int64_t> x = attr;
  return ProductTile{x[0], x[1], x[2], x[3], x[4], x[5]};
}

static int64_t getDeep(Type sum) { return 256 / codegen::getStorageBytes(sum); }

SmallVector<ProductTile> ProductShape::listTiles() const {
  int64_t deep = getDeep(sum);
  SmallVector<ProductTile> tiles = {{64, 64, 16, 4, 4},
                                    {32, 32, 32, 4, 4, 4},
                                    {8, 32, deep, 4, 4, 16},
                                    {32, 8, deep, 4, 4, 16}};
  if (codegen::getStorageBytes(sum) <= 4)
    tiles.push_back({128, 64, 16, 8, 4});
  return tiles;
}

/// Functions of shapes alone, so that results are too: where sums are split,
/// their last bits follow from the tile.
ProductTile ProductShape::chooseTile(ArrayRef<SymbolAttr> symbols) const {
  constexpr int64_t kFew = 8;
  // Blocks that keep most of a GPU busy.
  constexpr int64_t kManyBlocks = 64;
  int64_t bytes = codegen::getStorageBytes(sum);
  int64_t rows = getRange(m, symbols).max, columns = getRange(n, symbols).max;
  int64_t deep = getDeep(sum);
  if (rows <= kFew)
    return {kFew, 32, deep, 4, 4, 16};
  if (columns <= kFew)
    return {32, kFew, deep, 4, 4, 16};
  auto countBlocks = [&](int64_t tileRows, int64_t tileColumns) {
    return getRange(batch, symbols).max * llvm::divideCeil(rows, tileRows) *
           llvm::divideCeil(columns, tileColumns);
  };
  if (countBlocks(64, 64) < kManyBlocks)
    return {32, 32, 32, 4, 4, 4};
  if (bytes <= 4 && countBlocks(128, 64) >= 4 * kManyBlocks)
    return {128, 64, 16, 8, 4};
  return {64, 64, 16, 4, 4};
}

LaunchPlan ProductShape::getLaunch(const ProductTile &tile) const {
  return {batch * m.ceilDiv(tile.rows) * n.ceilDiv(tile.columns),
          tile.getThreads(), tile.write(batch.getContext())};
}

ProductShape addOnes(ProductShape shape, ProductSums sums) {
  if (sums == ProductSums::rhs)
    shape.m = shape.m + 1;
  if (sums == ProductSums::lhs)
    shape.n = shape.n + 1;
  return shape;
}

bool isAdjacent(Value tensor, int64_t axis) {
  StridedInput from = traceInput(tensor);
  if (from.input)
    return getConstant(from.strides[axis]) == 1;
  return axis + 1 == int64_t(getExtents(tensor).size());
}

/// The results of the region that come from result `result` of its op.
static SmallVector<unsigned> findResults(DeviceFrame &frame, unsigned result) {
  Operation *op = codegen::getAnchor(frame.region);
  SmallVector<unsigned> results;
  for (auto [i, yielded] : llvm::enumerate(frame.getYields())) {
    bool isOther = yielded.getDefiningOp() == op && yielded != op->getResult(0);
    if (isOther ? yielded == op->getResult(result) : result == 0)
      results.push_back(i);
  }
  return results;
}

void storeSums(KernelBuilder &b, DeviceFrame &frame, ValueRange sums,
               Value first, AffineExpr extent, ColumnIndices at,
               unsigned result) {
  SmallVector<unsigned> results = findResults(frame, result);
  auto storeLanes = [&](int64_t from, int64_t count) {
    SmallVector<SmallVector<Value>> indices;
    for (int64_t lane = from; lane < from + count; ++lane) {
      indices.push_back(at(b.add(first, b.index(lane))));
      codegen::defineSum(b, frame, sums[lane], indices.back(), result);
    }
    storeResults(b, frame, results, count,
                 [&](int64_t lane) { return indices[lane]; });
  };
  int64_t count = sums.size();
  Value end = frame.size(b, extent);
  if (extent.isMultipleOf(count))
    return b.when(b.less(first, end), [&] { storeLanes(0, count); });
  for (int64_t lane = 0; lane < count; ++lane)
    b.when(b.less(b.add(first, b.index(lane)), end),
           [&] { storeLanes(lane, 1); });
}

namespace {

/// The elements of one operand that a tile needs for `depth` steps.
struct Stage {
  const ProductOperand &operand;
  AffineExpr extent;    // of all lanes
  bool hasOnes;         // in the last lane
  int64_t lanes, depth; // of the tile
  int64_t offset;       // in shared memory, after others
  Value firstLane;      // of the tile

  int64_t getSize() const { return SharedTile::getSize(lanes, depth); }
};

class ProductEmitter {
public:
  ProductEmitter(KernelBuilder &b, DeviceFrame &frame, const Product &product);
  void emit();

private:
  using Values = SmallVector<Value>;

  KernelBuilder &b;
  DeviceFrame &frame;
  const Product &product;
  ProductShape shape;
  ProductTile tile;
  Stage lhs, rhs;
  Buffer shared;
  Value batch;
  Value row, column, split; // of this thread's sums in the tile

  Value size(AffineExpr expression) { return frame.size(b, expression); }
  int64_t getStagedSize() const { return lhs.getSize() + rhs.getSize(); }
  void findTile();
  Values emitSums();
  Values fetch(Value first);
  Value fetchElement(const Stage &stage, Value number, Value first);
  Value readElement(const Stage &stage, Value lane, Value first, Value step);
  SharedTile getTile(const Stage &stage, Value half);
  void stage(ValueRange elements, Value half);
  void stageOperand(const Stage &stage, ValueRange elements, Value half);
  Values multiply(Value half, Values sums);
  Values addSplits(ValueRange sums);
  void store(ValueRange sums);
  void storeRow(ValueRange sums, Value i, Value j);
  void storeOnesColumn(ValueRange sums, Value i, Value j);
};

} // namespace

ProductEmitter::ProductEmitter(KernelBuilder &b, DeviceFrame &frame,
                               const Product &product)
    : b(b), frame(frame), product(product),
      shape(addOnes(product.shape, product.sums)),
      tile(*ProductTile::read(frame.region)),
      lhs{product.lhs, shape.m,    product.sums == ProductSums::rhs,
          tile.rows,   tile.depth, 0,
          {}},
      rhs{product.rhs,
          shape.n,
          product.sums == ProductSums::lhs,
          tile.columns,
          tile.depth,
          lhs.getSize(),
          {}} {
  // Two halves: one is filled while the other one is read. Then the same
  // memory holds the parts of split sums.
  int64_t count = 2 * getStagedSize();
  if (tile.splits > 1)
    count = std::max(count, tile.splits * tile.rows * tile.columns);
  shared = frame.allocateShared(b, shape.sum, count);
}

void ProductEmitter::findTile() {
  Value rows = size(shape.m.ceilDiv(tile.rows));
  Value columns = size(shape.n.ceilDiv(tile.columns));
  SmallVector<Value> at =
      b.delinearize(frame.block, {size(shape.batch), rows, columns});
  batch = at[0];
  lhs.firstLane = b.mul(at[1], b.index(tile.rows));
  rhs.firstLane = b.mul(at[2], b.index(tile.columns));
  at = b.delinearize(
      frame.thread, {b.index(tile.splits), b.index(tile.rows / tile.threadRows),
                     b.index(tile.columns / tile.threadColumns)});
  split = at[0];
  row = b.mul(at[1], b.index(tile.threadRows));
  column = b.mul(at[2], b.index(tile.threadColumns));
}

// --- Staging

/// The elements of an operand in one half of the shared memory.
SharedTile ProductEmitter::getTile(const Stage &stage, Value half) {
  Value start =
      b.add(b.mul(half, b.index(getStagedSize())), b.index(stage.offset));
  return {shared, start, stage.lanes, stage.depth};
}

/// The element of a lane, which may be that of ones.
Value ProductEmitter::readElement(const Stage &stage, Value lane, Value first,
                                  Value step) {
  if (!stage.hasOnes)
    return stage.operand.element(b, batch, lane, first, step);
  Value ones = size(stage.extent - 1);
  Value inside = b.min(lane, b.sub(ones, b.index(1)));
  Value x = stage.operand.element(b, batch, inside, first, step);
  return b.create<arith::SelectOp>(
      b.less(lane, ones), x,
      b.create<arith::ConstantOp>(b.getOneAttr(shape.sum)));
}

/// Reads nothing outside of the operands: zeros follow k, and the last lane is
/// repeated.
Value ProductEmitter::fetchElement(const Stage &stage, Value number,
                                   Value first) {
  auto [lane, step] = SharedTile{{}, {}, stage.lanes, stage.depth}.split(
      b, number, stage.operand.kIsAdjacent);
  lane = b.add(stage.firstLane, lane);
  if (!stage.extent.isMultipleOf(stage.lanes))
    lane = b.min(lane, b.sub(size(stage.extent), b.index(1)));
  if (shape.k.isMultipleOf(tile.depth))
    return readElement(stage, lane, first, step);
  Value k = b.add(first, step), depth = size(shape.k);
  Value inside = b.min(k, b.sub(depth, b.index(1)));
  Value x = readElement(stage, lane, inside, b.index(0));
  return b.create<arith::SelectOp>(b.less(k, depth), x, b.zero(shape.sum));
}

/// This thread's share of the elements of both operands from step `first` on.
SmallVector<Value> ProductEmitter::fetch(Value first) {
  Values elements;
  for (const Stage *stage : {&lhs, &rhs})
    for (int64_t i = 0; i < stage->lanes * stage->depth;
         i += tile.getThreads()) {
      Value place = b.add(frame.thread, b.index(i));
      elements.push_back(fetchElement(*stage, place, first));
    }
  return elements;
}

void ProductEmitter::stageOperand(const Stage &stage, ValueRange elements,
                                  Value half) {
  SharedTile to = getTile(stage, half);
  for (auto [i, element] : llvm::enumerate(elements)) {
    Value number = b.add(frame.thread, b.index(i * tile.getThreads()));
    to.store(b, element, to.split(b, number, stage.operand.kIsAdjacent));
  }
}

void ProductEmitter::stage(ValueRange elements, Value half) {
  size_t count = lhs.lanes * lhs.depth / tile.getThreads();
  stageOperand(lhs, elements.take_front(count), half);
  stageOperand(rhs, elements.drop_front(count), half);
}

// --- Sums

/// Adds this thread's steps of the tile, one after the other.
SmallVector<Value> ProductEmitter::multiply(Value half, Values sums) {
  int64_t steps = tile.depth / tile.splits;
  Value first = b.mul(split, b.index(steps));
  SharedTile left = getTile(lhs, half), right = getTile(rhs, half);
  for (int64_t i = 0; i < steps; ++i) {
    Value step = b.add(first, b.index(i));
    Values x = left.read(b, {row, step}, tile.threadRows);
    Values y = right.read(b, {column, step}, tile.threadColumns);
    addProducts(b, x, y, sums);
  }
  return sums;
}

/// A barrier for each tile: the half that a thread fills next was read by all
/// threads before they came to the last one.
SmallVector<Value> ProductEmitter::emitSums() {
  Values sums(tile.threadRows * tile.threadColumns, b.zero(shape.sum));
  Value zero = b.index(0), one = b.index(1), depth = b.index(tile.depth);
  Value end = size(shape.k);
  Value last = b.mul(b.sub(b.ceilDiv(end, tile.depth), one), depth);
  auto emitTiles = [&] {
    Values carried = sums, elements = fetch(zero);
    carried.push_back(zero);
    carried.append(elements);
    carried = b.loop(zero, end, depth, carried, [&](Value k, ValueRange held) {
      Value half = held[sums.size()];
      stage(held.drop_front(sums.size() + 1), half);
      emitBarrier(b);
      Values next = fetch(b.min(b.add(k, depth), last));
      Values result =
          multiply(half, llvm::to_vector(held.take_front(sums.size())));
      result.push_back(b.sub(one, half));
      result.append(next);
      return result;
    });
    carried.truncate(sums.size());
    return carried;
  };
  if (std::optional<int64_t> constant = getConstant(shape.k))
    return *constant > 0 ? emitTiles() : sums;
  return b.choose(b.less(zero, end), SmallVector<Type>(sums.size(), shape.sum),
                  emitTiles, [&] { return sums; });
}

// --- Results

/// A thread gets the parts of as many neighbours as it has a share of.
SmallVector<Value> ProductEmitter::addSplits(ValueRange sums) {
  int64_t count = tile.rows * tile.columns;
  emitBarrier(b);
  Value start = b.mul(split, b.index(count));
  for (auto [place, sum] : llvm::enumerate(sums)) {
    Value r = b.add(row, b.index(place / tile.threadColumns));
    Value c = b.add(column, b.index(place % tile.threadColumns));
    Value at = b.add(b.mul(r, b.index(tile.columns)), c);
    shared.store(b, frame.loc, sum, b.add(start, at));
  }
  emitBarrier(b);
  int64_t share = count / tile.getThreads();
  Value first = b.mul(frame.thread, b.index(share));
  row = b.div(first, b.index(tile.columns));
  column = b.rem(first, b.index(tile.columns));
  Values totals;
  for (int64_t i = 0; i < share; ++i) {
    Value total;
    for (int64_t part = 0; part < tile.splits; ++part) {
      Value at = b.add(first, b.index(part * count + i));
      Value x = shared.load(b, frame.loc, at);
      if (!total)
        total = x;
      else if (isa<FloatType>(shape.sum))
        total = b.create<arith::AddFOp>(total, x);
      else
        total = b.create<arith::AddIOp>(total, x);
    }
    totals.push_back(total);
  }
  return totals;
}

/// Neighbouring sums of a row, which may be that of ones.
void ProductEmitter::storeRow(ValueRange sums, Value i, Value j) {
  const ProductShape &own = product.shape;
  b.when(b.less(i, size(own.m)), [&] {
    storeSums(b, frame, sums, j, own.n,
              [&](Value j) { return product.indices(b, batch, i, j); });
    if (product.sums == ProductSums::lhs)
      storeOnesColumn(sums, i, j);
  });
  if (product.sums == ProductSums::rhs)
    b.when(b.equal(i, size(own.m)), [&] {
      storeSums(
          b, frame, sums, j, own.n,
          [&](Value j) { return SmallVector<Value>{j}; }, 1);
    });
}

void ProductEmitter::storeOnesColumn(ValueRange sums, Value i, Value j) {
  for (auto [lane, sum] : llvm::enumerate(sums)) {
    Value column = b.add(j, b.index(lane));
    b.when(b.equal(column, size(product.shape.n)), [&] {
      storeSums(
          b, frame, sum, i, product.shape.m,
          [&](Value i) { return SmallVector<Value>{i}; }, 1);
    });
  }
}

void ProductEmitter::store(ValueRange sums) {
  Value j = b.add(rhs.firstLane, column);
  int64_t columns = std::min<int64_t>(tile.threadColumns, sums.size());
  for (int64_t r = 0; r * columns < int64_t(sums.size()); ++r) {
    Value i = b.add(b.add(lhs.firstLane, row), b.index(r));
    storeRow(sums.slice(r * columns, columns), i, j);
  }
}

void ProductEmitter::emit() {
  findTile();
  Values sums = emitSums();
  if (tile.splits > 1)
    sums = addSplits(sums);
  store(sums);
}

void emitProduct(KernelBuilder &b, DeviceFrame &frame, const Product &product) {
  ProductEmitter(b, frame, product).emit();
}

} // namespace tcc::cuda

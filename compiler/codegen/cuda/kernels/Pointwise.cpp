//===- Pointwise.cpp - Every thread computes some neighbours --------------===//
//
// All results have one shape, the space. A thread computes a vector: adjacent
// elements of the last axis. Where a tensor is transposed, its neighbours along
// another axis than the last are adjacent: a block then works on a square tile
// of the two axes, and what is transposed is computed in its own order first,
// into shared memory.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

namespace {

/// Rows and columns of a tile; a row of it more, so that a column of a tile in
/// shared memory lies in as many banks as a row.
constexpr int64_t kTile = 32;
constexpr int64_t kTilePitch = kTile + 1;

struct PointwisePlan {
  Extents outer;
  AffineExpr inner;
  int64_t lanes = 1; // of a vector
  int64_t threads = 256;
  /// The last vector of the space may be incomplete.
  bool hasTail = false;
  /// The axis that is the last one before the ops `transposes`, whose results
  /// have the shape of the space.
  std::optional<int64_t> tileAxis;
  SmallVector<TransposeOp> transposes;

  explicit PointwisePlan(FusedOp region);
  AffineExpr getVectors() const {
    return getNumElements(outer, inner.getContext()) * inner.ceilDiv(lanes);
  }
  /// Tiles along the axes of the space.
  Extents getTileExtents() const {
    Extents extents = outer;
    extents[*tileAxis] = extents[*tileAxis].ceilDiv(kTile);
    extents.push_back(inner.ceilDiv(kTile));
    return extents;
  }
  AffineExpr getBlocks() const {
    if (tileAxis)
      return getNumElements(getTileExtents(), inner.getContext());
    return getVectors().ceilDiv(threads);
  }

private:
  void findTransposes(FusedOp region);
};

} // namespace

PointwisePlan::PointwisePlan(FusedOp region) {
  Operation *yield = region.getBody().front().getTerminator();
  outer = getExtents(yield->getOperand(0));
  inner = getAffineConstantExpr(1, region.getContext());
  if (!outer.empty())
    inner = outer.pop_back_val();
  SmallVector<Type> types = getElementTypes(region);
  lanes = chooseVector(types, inner);
  if (outer.empty() && lanes == 1) {
    // One row: whole vectors, and a tail.
    lanes = chooseVector(types, getAffineConstantExpr(0, inner.getContext()));
    hasTail = lanes > 1;
  }
  findTransposes(region);
}

/// Where the last axis of x goes, if that is not the last place and both axes
/// fill tiles.
static std::optional<int64_t> getTileAxis(TransposeOp op) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  int64_t last = permutation.size() - 1;
  int64_t axis = llvm::find(permutation, last) - permutation.begin();
  Extents extents = getExtents(op.getResult());
  constexpr int64_t kLeastExtent = 8;
  auto fillsTiles = [&](int64_t axis) {
    return getConstant(extents[axis]).value_or(kTile) >= kLeastExtent;
  };
  if (axis == last || !fillsTiles(axis) || !fillsTiles(last))
    return std::nullopt;
  return axis;
}

void PointwisePlan::findTransposes(FusedOp region) {
  Extents space = outer;
  space.push_back(inner);
  int64_t bytes = 0;
  for (auto op : region.getBody().front().getOps<TransposeOp>()) {
    if (getExtents(op.getResult()) != space)
      continue;
    auto axis = getTileAxis(op);
    int64_t tileBytes =
        kTile * kTilePitch *
        codegen::getStorageBytes(getElementTypeOrSelf(op.getType()));
    if (!axis || (tileAxis && axis != tileAxis) ||
        bytes + tileBytes > kMaxSharedBytes)
      continue;
    bytes += tileBytes;
    tileAxis = axis;
    transposes.push_back(op);
  }
}

FailureOr<LaunchPlan> planPointwise(FusedOp region, ArrayRef<SymbolAttr>) {
  PointwisePlan plan(region);
  return LaunchPlan{plan.getBlocks(), plan.threads};
}

namespace {

class PointwiseEmitter {
public:
  PointwiseEmitter(KernelBuilder &b, DeviceFrame &frame)
      : b(b), frame(frame), plan(frame.region),
        results(llvm::to_vector(llvm::seq<unsigned>(frame.results.size()))) {}
  void emit();

private:
  KernelBuilder &b;
  DeviceFrame &frame;
  PointwisePlan plan;
  SmallVector<unsigned> results;

  Value size(AffineExpr expression) { return frame.size(b, expression); }
  SmallVector<Value> sizes(ArrayRef<AffineExpr> extents) {
    return llvm::map_to_vector(extents, [&](AffineExpr e) { return size(e); });
  }
  void emitVectors();
  void store(ValueRange row, Value column, int64_t lanes);
  void emitTile();
  using TileBody = function_ref<void(ValueRange at, Value place)>;
  void forTile(ArrayRef<Value> first, int64_t rowAxis, int64_t columnAxis,
               TileBody body);
  Buffer fillTile(TransposeOp op, ArrayRef<Value> first);
};

} // namespace

void PointwiseEmitter::store(ValueRange row, Value column, int64_t lanes) {
  bool isScalar = getExtents(frame.getYields()[0]).empty();
  storeResults(b, frame, results, lanes, [&](int64_t lane) {
    SmallVector<Value> at(row);
    if (!isScalar)
      at.push_back(b.add(column, b.index(lane)));
    return at;
  });
}

void PointwiseEmitter::emitVectors() {
  Value place = b.add(b.mul(frame.block, b.index(plan.threads)), frame.thread);
  Value lanes = b.index(plan.lanes);
  b.when(b.less(place, size(plan.getVectors())), [&] {
    SmallVector<Value> extents = sizes(plan.outer);
    extents.push_back(size(plan.inner.ceilDiv(plan.lanes)));
    SmallVector<Value> at = b.delinearize(place, extents);
    Value column = b.mul(at.pop_back_val(), lanes);
    if (!plan.hasTail)
      return store(at, column, plan.lanes);
    Value end = size(plan.inner);
    b.when(
        b.less(end, b.add(column, lanes)),
        [&] {
          b.loop(column, end, b.index(1),
                 [&](Value column) { store(at, column, 1); });
        },
        [&] { store(at, column, plan.lanes); });
  });
}

/// The elements of the tile at `first` that are inside of the space, those
/// along `columnAxis` by neighbouring threads; `place` is theirs in a tile in
/// shared memory.
void PointwiseEmitter::forTile(ArrayRef<Value> first, int64_t rowAxis,
                               int64_t columnAxis, TileBody body) {
  Extents extents = plan.outer;
  extents.push_back(plan.inner);
  Value tile = b.index(kTile);
  Value column = b.rem(frame.thread, tile), row = b.div(frame.thread, tile);
  for (int64_t i = 0; i < kTile; i += plan.threads / kTile) {
    Value r = b.add(row, b.index(i));
    SmallVector<Value> at(first);
    at[rowAxis] = b.add(first[rowAxis], r);
    at[columnAxis] = b.add(first[columnAxis], column);
    Value isInside = b.create<arith::AndIOp>(
        b.less(at[rowAxis], size(extents[rowAxis])),
        b.less(at[columnAxis], size(extents[columnAxis])));
    b.when(isInside,
           [&] { body(at, b.add(b.mul(r, b.index(kTilePitch)), column)); });
  }
}

Buffer PointwiseEmitter::fillTile(TransposeOp op, ArrayRef<Value> first) {
  Buffer tile = frame.allocateShared(b, getElementTypeOrSelf(op.getType()),
                                     kTile * kTilePitch);
  int64_t last = first.size() - 1;
  forTile(first, last, *plan.tileAxis, [&](ValueRange at, Value place) {
    SmallVector<Value> from(at.size());
    for (auto [index, axis] : llvm::zip_equal(at, op.getPermutation()))
      from[axis] = index;
    Value element = frame.elements.element(b, frame.loc, op.getX(), from);
    tile.store(b, frame.loc, element, place);
  });
  return tile;
}

void PointwiseEmitter::emitTile() {
  SmallVector<Value> first =
      b.delinearize(frame.block, sizes(plan.getTileExtents()));
  int64_t last = first.size() - 1;
  for (int64_t axis : {*plan.tileAxis, last})
    first[axis] = b.mul(first[axis], b.index(kTile));
  SmallVector<Buffer> tiles;
  for (TransposeOp op : plan.transposes)
    tiles.push_back(fillTile(op, first));
  emitBarrier(b);
  Value pitch = b.index(kTilePitch);
  forTile(first, *plan.tileAxis, last, [&](ValueRange at, Value) {
    Value row = b.sub(at[*plan.tileAxis], first[*plan.tileAxis]);
    Value place = b.add(b.mul(b.sub(at[last], first[last]), pitch), row);
    for (auto [op, tile] : llvm::zip_equal(plan.transposes, tiles))
      frame.elements.define(op.getResult(), at, tile.load(b, frame.loc, place));
    store(at.drop_back(), at.back(), 1);
  });
}

void PointwiseEmitter::emit() {
  if (plan.tileAxis)
    return emitTile();
  emitVectors();
}

LogicalResult emitPointwise(KernelBuilder &b, DeviceFrame &frame) {
  PointwiseEmitter(b, frame).emit();
  return success();
}

} // namespace tcc::cuda

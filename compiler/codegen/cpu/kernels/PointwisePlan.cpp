#include "compiler/codegen/cpu/kernels/PointwisePlan.h"

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// What a tile moves as one: some neighbours along the last axis.
constexpr int64_t kMaxUnitBytes = 4;

namespace {

/// How tiles of a transpose lie in its result.
struct Tiling {
  int64_t axis; // the last one of the operand, or the one before the unit
  int64_t unit; // extent of the last axis if that stays where it is, or 1

  bool operator==(const Tiling &) const = default;
};

} // namespace

static int64_t getTileSize(AffineExpr extent) {
  return std::min(getConstant(extent).value_or(kTile), kTile);
}

PointwisePlan::PointwisePlan(FusedOp region, ArrayRef<SymbolAttr> symbols) {
  Operation *yield = region.getBody().front().getTerminator();
  outer = getExtents(yield->getOperand(0));
  inner = getAffineConstantExpr(1, region.getContext());
  if (!outer.empty())
    inner = outer.pop_back_val();
  findTransposes(region);
  if (unit > 1)
    inner = outer.pop_back_val();
  int64_t size = getMaxCount(inner, symbols);
  if (tileAxis) {
    tileRows = getTileSize(outer[*tileAxis]);
    tileColumns = getTileSize(inner);
    findMergedAxes();
    rowsPerTask = getRowsPerTask(tileRows * size * unit);
  } else if (size > 2 * kTaskGrain)
    chunk = kTaskGrain;
  else
    rowsPerTask = getRowsPerTask(size);
}

/// Where the last axis of x goes, or the one before a unit, if that is not its
/// place and tiles are worth it: one axis fills them, the other is no short
/// row.
static std::optional<Tiling> getTiling(TransposeOp op) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  int64_t last = permutation.size() - 1, unit = 1;
  Extents extents = getExtents(op.getResult());
  if (last > 1 && permutation[last] == last) {
    int64_t bytes = getStorageBytes(getElementTypeOrSelf(op.getType()));
    unit = getConstant(extents[last]).value_or(0);
    if (!llvm::isPowerOf2_64(unit) || unit * bytes > kMaxUnitBytes)
      return std::nullopt;
    --last;
  }
  int64_t axis = llvm::find(permutation, last) - permutation.begin();
  if (axis == last)
    return std::nullopt;
  auto [least, most] =
      std::minmax(getTileSize(extents[axis]), getTileSize(extents[last]));
  if (least <= kShortRow || most < kTile)
    return std::nullopt;
  return Tiling{axis, unit};
}

void PointwisePlan::findTransposes(FusedOp region) {
  Extents space = outer;
  space.push_back(inner);
  for (auto op : region.getBody().front().getOps<TransposeOp>()) {
    if (getExtents(op.getResult()) != space)
      continue;
    std::optional<Tiling> tiling = getTiling(op);
    if (!tiling || (tileAxis && tiling != Tiling{*tileAxis, unit}))
      continue;
    tileAxis = tiling->axis;
    unit = tiling->unit;
    transposes.push_back(op);
  }
}

void PointwisePlan::findMergedAxes() {
  for (TransposeOp op : transposes) {
    auto axis = findMergedAxis(op.getX(), op.getPermutation()[*tileAxis], unit);
    if (!axis || axis->period % tileRows != 0 ||
        (!merged.empty() && axis->period != merged[0].period))
      return merged.clear();
    merged.push_back(*axis);
  }
  hasLines =
      !merged.empty() && llvm::all_of(llvm::seq(merged.size()),
                                      [&](size_t i) { return areLines(i); });
  if (!hasLines)
    return;
  isTurned = merged[0].periodStride < 0;
  tileRows = merged[0].periods;
}

StridedInput traceFloats(TransposeOp op, const MergedAxis &axis) {
  auto isF32 = [](Value v) {
    return isa<BlockArgument>(v) && getElementTypeOrSelf(v).isF32();
  };
  Value read = ReshapeOp(axis.reshape).getX();
  int64_t casts = 0;
  for (Value v = read; Operation *made = v.getDefiningOp();
       v = made->getOperand(0)) {
    casts += isFloatCast(made);
    if (made->getNumOperands() != 1)
      return {};
  }
  Type element = getElementTypeOrSelf(op.getType());
  bool isRounded = element.isBF16() || element.isF16();
  if (!isRounded && !element.isF32())
    return {};
  return casts == isRounded ? traceInput(read, isF32, /*throughCasts=*/true)
                            : StridedInput();
}

bool PointwisePlan::areLines(size_t transpose) const {
  const MergedAxis &axis = merged[transpose];
  return tileColumns == kTile && axis.periods > kShortRow &&
         axis.periods <= kTile && std::abs(axis.periodStride) == 1 &&
         axis.periodStride == merged[0].periodStride &&
         traceFloats(transposes[transpose], axis).input;
}

} // namespace tcc::cpu

#include "compiler/passes/graph/Rows.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

bool ScaledReduction::isMean() {
  int64_t count = 1;
  for (int64_t axis : reduce.getAxes()) {
    auto extent = getConstant(getExtent(reduce.getX(), axis));
    if (!extent)
      return false;
    count *= *extent;
  }
  return reduce.getKind() == ReduceKind::sum &&
         isClose(coefficient * double(count), 1.0, reduce.getX());
}

std::optional<ScaledReduction> matchReduction(Value value) {
  ScaledReduction result;
  while (Operation *op = value.getDefiningOp()) {
    if ((result.reduce = dyn_cast<ReduceOp>(op)))
      return result;
    if (isa<ReshapeOp>(op)) {
      Value under = lookThroughUnitReshapes(value);
      if (under == value)
        return std::nullopt;
      value = under;
      continue;
    }
    auto isConstant = [](Value v) { return getSplat(v).has_value(); };
    auto sides = isa<MulOp>(op) ? matchEither(op, isConstant) : std::nullopt;
    if (sides) {
      result.coefficient *= *getSplat(sides->first);
      value = sides->second;
      continue;
    }
    if (!isa<DivOp>(op) || !isConstant(op->getOperand(1)))
      return std::nullopt;
    result.coefficient /= *getSplat(op->getOperand(1));
    value = op->getOperand(0);
  }
  return std::nullopt;
}

Value getRepeated(Value value, ArrayRef<int64_t> axes) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  Extents to = getExtents(value), from = getExtents(broadcast.getX());
  int64_t missing = int64_t(to.size()) - int64_t(from.size());
  for (int64_t i = 0, e = to.size(); i < e; ++i) {
    bool isMissing = i < missing;
    bool isUnit = isMissing || getConstant(from[i - missing]) == 1;
    bool isKept =
        isMissing ? getConstant(to[i]) == 1 : isEqual(from[i - missing], to[i]);
    if (llvm::is_contained(axes, i) ? !isUnit : !isKept)
      return {};
  }
  return broadcast.getX();
}

std::optional<ScaledReduction> matchRow(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  auto row = broadcast ? matchReduction(broadcast.getX()) : std::nullopt;
  if (!row || row->reduce.getX().getType() != value.getType() ||
      !getRepeated(value, row->reduce.getAxes()))
    return std::nullopt;
  return row;
}

} // namespace tcc

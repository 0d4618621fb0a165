#include "compiler/passes/graph/fusion/Rows.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

Rows getRows(ArrayRef<AffineExpr> extents,
             function_ref<bool(int64_t)> reduced) {
  Rows rows;
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    if (getConstant(extent) == 1)
      continue;
    bool isReduced = reduced(axis);
    if (!rows.empty() && rows.back().isReduced == isReduced)
      rows.back().extent = rows.back().extent * extent;
    else
      rows.push_back({isReduced, extent});
  }
  return rows;
}

Rows getRows(Operation *op) {
  std::optional<SmallVector<int64_t>> axes = getReducedAxes(op);
  if (!axes)
    return {};
  return getRows(getExtents(op->getOperand(0)),
                 [&](int64_t axis) { return llvm::is_contained(*axes, axis); });
}

bool isEqual(ArrayRef<Segment> lhs, ArrayRef<Segment> rhs) {
  if (lhs.size() != rhs.size())
    return false;
  for (auto [a, b] : llvm::zip(lhs, rhs))
    if (a.isReduced != b.isReduced || !graph::isEqual(a.extent, b.extent))
      return false;
  return true;
}

bool isPanel(ArrayRef<Segment> columns, const CostModel &model) {
  if (columns.size() != 3 || !columns[1].isReduced)
    return false;
  auto isAtMost = [](AffineExpr extent, int64_t most) {
    auto known = getConstant(extent);
    return known && *known > 0 && *known <= most;
  };
  return isAtMost(columns[1].extent, kMaxPanelRows) &&
         isAtMost(columns[2].extent, kMaxPanelColumns) &&
         model.getMinimum(columns[0].extent) >= model.getMachine().leastTasks;
}

} // namespace tcc::fusion

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

bool isEqual(ArrayRef<Segment> lhs, ArrayRef<Segment> rhs) {
  if (lhs.size() != rhs.size())
    return false;
  for (auto [a, b] : llvm::zip(lhs, rhs))
    if (a.isReduced != b.isReduced || !graph::isEqual(a.extent, b.extent))
      return false;
  return true;
}

bool isPanel(ArrayRef<Segment> columns, ArrayRef<SymbolAttr> symbols) {
  if (columns.size() != 3 || !columns[1].isReduced)
    return false;
  auto rows = getConstant(columns[1].extent);
  auto width = getConstant(columns[2].extent);
  return rows && *rows <= kMaxPanelRows && width &&
         *width <= kMaxPanelColumns &&
         getRange(columns[0].extent, symbols).max >= kMinPanels;
}

} // namespace tcc::fusion

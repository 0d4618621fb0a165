#include "compiler/passes/graph/fusion/Members.h"

#include "compiler/passes/graph/fusion/Cost.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

bool isView(Operation *op) { return isa_and_nonnull<ReshapeOp>(op); }

Value getSource(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

Attribute getSplat(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)))
    return {};
  return splat.getSplatValue<Attribute>();
}

bool isFusible(Operation *op) {
  return !isView(op) &&
         isa<PointwiseOpInterface, ElementOpInterface, KernelOpInterface>(op);
}

AffineMap getStoreMap(Operation *op, KernelKind kind) {
  bool isMatrix =
      kind == KernelKind::contraction || kind == KernelKind::attention;
  if (!isMatrix || !isa_and_present<ElementOpInterface>(op) ||
      op->getNumOperands() != 1)
    return {};
  AffineMap map = getReadMap(op, 0);
  unsigned rank = map ? map.getNumDims() : 0;
  bool keepsLast = rank > 0 && map.isPermutation() && !map.isIdentity() &&
                   map.getDimPosition(rank - 1) == rank - 1;
  return keepsLast ? map : AffineMap();
}

bool isStrided(Operation *op) {
  AffineMap map = isa<ElementOpInterface>(op) && op->getNumOperands() == 1
                      ? getReadMap(op, 0)
                      : AffineMap();
  return map && llvm::all_of(map.getResults(), [](AffineExpr index) {
           return index.isPureAffine();
         });
}

bool combinesTensors(Operation *op) {
  return llvm::count_if(op->getOperands(), [](Value operand) {
           return !getSplat(operand) && !operand.getDefiningOp<BroadcastOp>();
         }) > 1;
}

Body getBody(FusedOp fused) {
  Body body;
  Block &block = fused.getBody().front();
  for (Operation &op : block.without_terminator())
    if (!isView(&op) && !getSplat(op.getResult(0)))
      body.members.push_back(&op);
  for (Value yielded : block.getTerminator()->getOperands())
    body.results.push_back(getSource(yielded));
  return body;
}

} // namespace tcc::fusion

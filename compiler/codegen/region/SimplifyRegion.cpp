#include "compiler/codegen/region/SimplifyRegion.h"
#include "compiler/codegen/region/RowPlan.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

Value reshapeTo(OpBuilder &b, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return b.create<ReshapeOp>(value.getLoc(), type, value);
}

static bool isDecomposed(Operation *op, KernelKind kind) {
  if (!isa<DecomposableOpInterface>(op))
    return false;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return !kernel || kernel.getKernelKind() == KernelKind::row ||
         kernel.getKernelKind() != kind;
}

LogicalResult decomposeComposites(Block &body, KernelKind kind) {
  // Decompositions may hold composites: look again until there are none.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (!isDecomposed(&op, kind))
        continue;
      OpBuilder b(&op);
      auto values = cast<DecomposableOpInterface>(op).decompose(b);
      if (failed(values))
        return op.emitOpError("cannot be decomposed for its kernel");
      op.replaceAllUsesWith(*values);
      op.erase();
      changed = true;
    }
  }
  return success();
}

static void eraseDeadOps(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
}

/// The results are the bytes of what they are views of.
static void dropResultViews(Block &body) {
  for (OpOperand &yielded : body.getTerminator()->getOpOperands())
    while (auto reshape = yielded.get().getDefiningOp<ReshapeOp>())
      yielded.set(reshape.getX());
}

/// The value whose extents all results get, so that one loop nest stores them.
static Value chooseSpace(Block &body) {
  for (Operation &op : body)
    if (isa<KernelOpInterface>(op))
      return op.getResult(0);
  return *llvm::max_element(
      body.getTerminator()->getOperands(), [](Value a, Value b) {
        return getExtents(a).size() < getExtents(b).size();
      });
}

static void alignResults(Block &body) {
  Extents space = getExtents(chooseSpace(body));
  OpBuilder b(body.getTerminator());
  for (OpOperand &yielded : body.getTerminator()->getOpOperands())
    yielded.set(
        reshapeTo(b, yielded.get(),
                  makeTensorType(space, getElementTypeOrSelf(yielded.get()))));
}

FailureOr<OwningOpRef<FusedOp>> simplifyRegion(FusedOp fused) {
  OwningOpRef<FusedOp> copy(fused.clone());
  Block &body = copy->getBody().front();
  if (failed(decomposeComposites(body, fused.getKind())))
    return failure();
  dropResultViews(body);
  eraseDeadOps(body);
  KernelKind kind = fused.getKind();
  if (kind == KernelKind::pointwise) {
    moveTransposes(body);
    eraseDeadOps(body);
  }
  if (kind == KernelKind::pointwise || kind == KernelKind::row) {
    collapseAxes(body);
    if (failed(alignReductions(body)))
      return failure();
    eraseDeadOps(body);
  }
  bool hasReductions =
      llvm::any_of(body, [](Operation &op) { return isOnePerRow(&op); });
  bool hasOneSpace = kind == KernelKind::pointwise || kind == KernelKind::row ||
                     kind == KernelKind::scan || kind == KernelKind::irregular;
  // Code that is given stores its results itself.
  bool isExternal =
      llvm::any_of(body, llvm::IsaPred<ExternalKernelOpInterface>);
  if (hasOneSpace && !hasReductions && !isExternal)
    alignResults(body);
  return copy;
}

} // namespace tcc::codegen

#include "frontends/IndexRanges.h"

#include "dialects/graph/GraphOps.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tcc {

/// The extent that `use` indexes, if it is an index.
static std::optional<int64_t> getIndexedExtent(OpOperand &use) {
  if (use.getOperandNumber() != 1)
    return std::nullopt;
  auto getAxis = [](auto op) -> AffineExpr {
    return graph::getExtent(op.getX(), op.getAxis());
  };
  AffineExpr extent;
  Operation *op = use.getOwner();
  if (auto gather = dyn_cast<graph::GatherOp>(op))
    extent = getAxis(gather);
  else if (auto elements = dyn_cast<graph::GatherElementsOp>(op))
    extent = getAxis(elements);
  else if (auto scatter = dyn_cast<graph::ScatterElementsOp>(op))
    extent = getAxis(scatter);
  if (!extent)
    return std::nullopt;
  return graph::getConstant(extent);
}

/// True if the result holds elements of the operand as they are.
static bool isForwarding(Operation *op) {
  auto cast = dyn_cast<graph::CastOp>(op);
  bool isIntegerCast =
      cast &&
      isa<IntegerType>(
          mlir::cast<RankedTensorType>(cast.getType()).getElementType());
  return isIntegerCast || isa<graph::ElementOpInterface>(op);
}

static std::optional<int64_t> getSmallestExtent(Value argument) {
  std::optional<int64_t> smallest;
  SmallVector<Value> stack = {argument};
  llvm::SmallPtrSet<Operation *, 16> visited;
  while (!stack.empty()) {
    for (OpOperand &use : stack.pop_back_val().getUses()) {
      if (auto extent = getIndexedExtent(use))
        smallest = std::min(smallest.value_or(*extent), *extent);
      else if (isForwarding(use.getOwner()) &&
               visited.insert(use.getOwner()).second)
        llvm::append_range(stack, use.getOwner()->getResults());
    }
  }
  return smallest;
}

void setIndexRanges(func::FuncOp function) {
  Builder builder(function.getContext());
  for (BlockArgument argument : function.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    auto smallest = isa<IntegerType>(type.getElementType())
                        ? getSmallestExtent(argument)
                        : std::nullopt;
    if (smallest && *smallest > 0)
      function.setArgAttr(argument.getArgNumber(), "graph.index_range",
                          builder.getI64ArrayAttr({0, *smallest - 1}));
  }
}

} // namespace tcc

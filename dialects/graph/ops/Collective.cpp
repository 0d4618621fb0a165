#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tcc::graph;

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

/// What one message moves has one type.
LogicalResult AllReduceOp::verify() {
  if (getTensors().empty())
    return emitOpError("has no tensor");
  if (!getInto())
    return success();
  if (getInto()->size() != getTensors().size())
    return emitOpError("of ") << getTensors().size() << " tensors goes into "
                              << getInto()->size() << " variables";
  Type first = getElementTypeOrSelf(getTensors().front());
  for (Type type : getTensors().getTypes())
    if (getElementTypeOrSelf(type) != first)
      return emitOpError("has elements of ")
             << first << " and " << getElementTypeOrSelf(type);
  return success();
}

/// A name for each tensor, and one type of elements, which a part has, too.
static LogicalResult verifyParts(Operation *op, TypeRange tensors,
                                 ArrayAttr names, Value part) {
  if (tensors.empty())
    return op->emitOpError("has no tensor");
  if (names.size() != tensors.size())
    return op->emitOpError("of ") << tensors.size() << " tensors names "
                                  << names.size() << " variables";
  for (Type type : tensors)
    if (getElementTypeOrSelf(type) != getElementTypeOrSelf(part))
      return op->emitOpError("has elements of ")
             << getElementTypeOrSelf(part) << " and "
             << getElementTypeOrSelf(type);
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  return verifyParts(*this, getTensors().getTypes(), getInto(), getPart());
}

LogicalResult PartOp::verify() {
  return verifyParts(*this, getTensors().getTypes(), getOf(), getPart());
}

LogicalResult AllGatherOp::verify() {
  return verifyParts(*this, getTensors().getTypes(), getInto(), getPart());
}

/// What each rank has of the loss depends on every x_r: their gradient is the
/// sum of what the ranks have of it.
LogicalResult AllReduceOp::emitGradients(Gradients &gradients) {
  for (auto [x, sum] : llvm::zip_equal(getTensors(), getSums())) {
    Value gradient = gradients.find(sum);
    if (!gradient || !gradients.wants(x))
      continue;
    auto reduced = gradients.getBuilder().create<AllReduceOp>(
        getLoc(), gradient, ArrayAttr(), getGroup(), getTree());
    gradients.add(x, reduced.getSums().front());
  }
  return success();
}

#define GET_OP_CLASSES
#include "dialects/graph/Collective.cpp.inc"

void GraphDialect::addCollectiveOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Collective.cpp.inc"
      >();
}

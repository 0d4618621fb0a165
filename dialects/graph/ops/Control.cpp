#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

static bool hasOneElement(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.hasStaticShape() && type.getNumElements() == 1;
}

static LogicalResult verifyYield(Operation *op, Region &region,
                                 TypeRange types) {
  auto yield = dyn_cast<YieldOp>(region.front().getTerminator());
  if (!yield)
    return op->emitOpError("expected a region that ends in a yield");
  if (yield.getValues().getTypes() != types)
    return yield.emitOpError("does not yield the types (") << types << ")";
  return success();
}

LogicalResult IfOp::verify() {
  if (!hasOneElement(getCondition()) ||
      !getElementTypeOrSelf(getCondition()).isInteger(1))
    return emitOpError("expected a boolean condition with one element, found ")
           << getCondition().getType();
  for (Region *region : {&getThenRegion(), &getElseRegion()})
    if (failed(verifyYield(*this, *region, getResultTypes())))
      return failure();
  return success();
}

/// What the body yields: whether to go on, the carried values, one slice each.
static SmallVector<Type> getYieldTypes(LoopOp op) {
  SmallVector<Type> types = {
      RankedTensorType::get({}, IntegerType::get(op.getContext(), 1))};
  llvm::append_range(types, op.getInits().getTypes());
  TypeRange results = op.getResultTypes();
  for (Type type : results.drop_front(op.getInits().size())) {
    auto stacked = cast<RankedTensorType>(type);
    Extents extents = getExtents(stacked);
    types.push_back(makeTensorType(ArrayRef(extents).drop_front(),
                                   stacked.getElementType()));
  }
  return types;
}

LogicalResult LoopOp::verify() {
  if (getTrips() && !hasOneElement(getTrips()))
    return emitOpError("expected one number of trips");
  if (getCondition() && !hasOneElement(getCondition()))
    return emitOpError("expected one condition");
  size_t carried = getInits().size();
  TypeRange results = getResultTypes();
  if (results.take_front(carried) != getInits().getTypes())
    return emitOpError("carried values and results differ in type");
  for (Type type : results.drop_front(carried))
    if (cast<RankedTensorType>(type).getRank() < 1)
      return emitOpError("expected a leading axis in a scanned result");
  SmallVector<Type> arguments = {
      RankedTensorType::get({}, IntegerType::get(getContext(), 64))};
  llvm::append_range(arguments, getInits().getTypes());
  if (getBody().front().getArgumentTypes() != TypeRange(arguments))
    return emitOpError("expected body arguments (") << arguments << ")";
  return verifyYield(*this, getBody(), getYieldTypes(*this));
}

#define GET_OP_CLASSES
#include "dialects/graph/Control.cpp.inc"

void GraphDialect::addControlOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Control.cpp.inc"
      >();
}

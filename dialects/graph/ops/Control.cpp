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

/// An op that sets sizes is needed for them, too.
static void
addEffects(SizeDefinitionOpInterface op,
           SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
               &effects) {
  if (!op.getDefinedSymbols().empty())
    effects.emplace_back(MemoryEffects::Write::get());
}

// --- If ----------------------------------------------------------------------

static ValueRange getYielded(Region &region) {
  return region.front().getTerminator()->getOperands();
}

/// The extents of results that a branch does not yield as they are.
static SmallVector<AffineExpr> getSetExtents(IfOp op) {
  SmallVector<AffineExpr> set;
  for (Region *region : {&op.getThenRegion(), &op.getElseRegion()})
    for (auto [result, value] : llvm::zip(op.getResults(), getYielded(*region)))
      for (auto [extent, own] :
           llvm::zip(getExtents(result), getExtents(value)))
        if (extent != own && !llvm::is_contained(set, extent))
          set.push_back(extent);
  return set;
}

SmallVector<unsigned> IfOp::getDefinedSymbols() {
  SmallVector<unsigned> symbols;
  for (AffineExpr extent : getSetExtents(*this))
    if (auto symbol = dyn_cast<AffineSymbolExpr>(extent))
      symbols.push_back(symbol.getPosition());
  return symbols;
}

void IfOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, effects);
}

/// Both branches yield the results' types, but for extents that the op sets.
static LogicalResult verifyBranch(IfOp op, Region &region) {
  auto yield = dyn_cast<YieldOp>(region.front().getTerminator());
  if (!yield)
    return op.emitOpError("expected a region that ends in a yield");
  auto isFit = [](std::tuple<Value, Value> pair) {
    auto type = cast<RankedTensorType>(std::get<0>(pair).getType());
    auto own = cast<RankedTensorType>(std::get<1>(pair).getType());
    return type.getElementType() == own.getElementType() &&
           type.getRank() == own.getRank();
  };
  if (yield.getValues().size() != op.getNumResults() ||
      !llvm::all_of(llvm::zip(op.getResults(), yield.getValues()), isFit))
    return yield.emitOpError("does not yield the types (")
           << op.getResultTypes() << ")";
  return success();
}

LogicalResult IfOp::verify() {
  if (!hasOneElement(getCondition()) ||
      !getElementTypeOrSelf(getCondition()).isInteger(1))
    return emitOpError("expected a boolean condition with one element, found ")
           << getCondition().getType();
  for (Region *region : {&getThenRegion(), &getElseRegion()})
    if (failed(verifyBranch(*this, *region)))
      return failure();
  SmallVector<SymbolAttr> symbols =
      getSymbols(getOperation()->getParentOfType<ModuleOp>());
  for (AffineExpr extent : getSetExtents(*this))
    if (!isa<AffineSymbolExpr>(extent) || !isComputed(extent, symbols))
      return emitOpError("has extents that its branches do not yield: ")
             << getResultTypes();
  return success();
}

// --- Loop --------------------------------------------------------------------

SmallVector<unsigned> LoopOp::getDefinedSymbols() {
  if (!getCount())
    return {};
  auto symbol = cast<AffineSymbolExpr>(getCount()->getResult(0));
  return {symbol.getPosition()};
}

void LoopOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, effects);
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
  if (getCount() && failed(verifyComputedSymbol(*this, *getCount())))
    return failure();
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

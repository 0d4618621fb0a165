#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

static bool hasOneElement(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.hasStaticShape() && type.getNumElements() == 1;
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

/// What a region yields; none where it is malformed.
static ValueRange getYielded(Region &region) {
  Block &block = region.front();
  return block.mightHaveTerminator() ? block.getTerminator()->getOperands()
                                     : ValueRange();
}

static SmallVector<unsigned> findSymbols(ArrayRef<SetSize> first,
                                         ArrayRef<SetSize> second) {
  llvm::SmallSetVector<unsigned, 4> symbols;
  for (ArrayRef<SetSize> list : {first, second})
    for (const SetSize &set : list)
      symbols.insert(set.symbol);
  return symbols.takeVector();
}

SmallVector<unsigned> IfOp::getDefinedSymbols() {
  auto find = [&](Region &region) {
    return findSetSizes(getResultTypes(), getYielded(region).getTypes());
  };
  return findSymbols(find(getThenRegion()), find(getElseRegion()));
}

SmallVector<unsigned> IfOp::getBodySymbols() { return {}; }

void IfOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, effects);
}

LogicalResult IfOp::verify() {
  if (!hasOneElement(getCondition()) ||
      !getElementTypeOrSelf(getCondition()).isInteger(1))
    return emitOpError("expected a boolean condition with one element, found ")
           << getCondition().getType();
  for (Region *region : {&getThenRegion(), &getElseRegion()}) {
    if (!isa<YieldOp>(region->front().getTerminator()))
      return emitOpError("expected a region that ends in a yield");
    if (failed(verifySetSizes(*this, getResultTypes(),
                              getYielded(*region).getTypes())))
      return failure();
  }
  return success();
}

// --- Loop --------------------------------------------------------------------

TypeRange LoopOp::getCarriedTypes() {
  return TypeRange(getResultTypes())
      .take_front(std::min<size_t>(getInits().size(), getNumResults()));
}

SmallVector<SetSize> LoopOp::getSizesBefore() {
  return findSetSizes(getCarriedTypes(), getInits().getTypes());
}

SmallVector<SetSize> LoopOp::getSizesOfIteration() {
  TypeRange yielded(getYielded(getBody()));
  return findSetSizes(getCarriedTypes(),
                      yielded.empty() ? yielded : yielded.drop_front());
}

SmallVector<unsigned> LoopOp::getBodySymbols() {
  return findSymbols(getSizesBefore(), {});
}

SmallVector<unsigned> LoopOp::getDefinedSymbols() {
  SmallVector<unsigned> symbols = getBodySymbols();
  if (getCount())
    symbols.push_back(
        cast<AffineSymbolExpr>(getCount()->getResult(0)).getPosition());
  return symbols;
}

void LoopOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addEffects(*this, effects);
}

/// The body yields whether to go on, the carried values, one slice each.
static LogicalResult verifyYields(LoopOp op) {
  auto yield = dyn_cast<YieldOp>(op.getBody().front().getTerminator());
  if (!yield)
    return op.emitOpError("expected a region that ends in a yield");
  SmallVector<Type> types = {
      RankedTensorType::get({}, IntegerType::get(op.getContext(), 1))};
  llvm::append_range(types, op.getCarriedTypes());
  TypeRange results = op.getResultTypes();
  for (Type type : results.drop_front(op.getInits().size())) {
    auto stacked = cast<RankedTensorType>(type);
    Extents extents = getExtents(stacked);
    types.push_back(makeTensorType(ArrayRef(extents).drop_front(),
                                   stacked.getElementType()));
  }
  TypeRange yielded(yield.getValues());
  size_t firstSlice = 1 + op.getInits().size();
  if (yielded.size() != types.size() || yielded.front() != types.front() ||
      yielded.drop_front(firstSlice) != TypeRange(types).drop_front(firstSlice))
    return yield.emitOpError("does not yield the types (") << types << ")";
  if (failed(verifySetSizes(op, op.getCarriedTypes(),
                            yielded.slice(1, op.getInits().size()))))
    return failure();
  SmallVector<unsigned> known = op.getBodySymbols();
  for (const SetSize &set : op.getSizesOfIteration())
    if (!llvm::is_contained(known, set.symbol))
      return op.emitOpError("sets symbol ")
             << set.symbol << " in its body alone";
  return success();
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
  Type number = RankedTensorType::get({}, IntegerType::get(getContext(), 64));
  TypeRange arguments(getBody().front().getArguments());
  if (results.size() < carried || arguments.empty() ||
      arguments.front() != number ||
      arguments.drop_front() != results.take_front(carried))
    return emitOpError("expected body arguments: an iteration, then values as "
                       "the results");
  for (Type type : results.drop_front(carried))
    if (cast<RankedTensorType>(type).getRank() < 1)
      return emitOpError("expected a leading axis in a scanned result");
  if (failed(verifySetSizes(*this, getCarriedTypes(), getInits().getTypes())))
    return failure();
  return verifyYields(*this);
}

#define GET_OP_CLASSES
#include "dialects/graph/Control.cpp.inc"

void GraphDialect::addControlOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Control.cpp.inc"
      >();
}

#include "compiler/passes/graph/fusion/Outline.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

static RankedTensorType withExtents(Type type, ArrayRef<AffineExpr> extents) {
  return makeTensorType(extents, getElementTypeOrSelf(type));
}

static bool hasExtents(Value value, ArrayRef<AffineExpr> extents) {
  return llvm::equal(getExtents(value), extents, graph::isEqual);
}

namespace {

/// Values of the rebuilt block.
class Placement {
public:
  explicit Placement(Block &block) : builder(block.getTerminator()) {}

  /// What stands for `value` now; views are built where first needed.
  Value get(Value value);
  /// `value` in other extents.
  Value get(Value value, ArrayRef<AffineExpr> extents);
  void set(Value value, Value placed) { placement[value] = placed; }
  void replaceUses() {
    for (auto [value, placed] : placement)
      value.replaceAllUsesWith(placed);
  }

  OpBuilder builder;

private:
  llvm::MapVector<Value, Value> placement;
  llvm::DenseMap<std::pair<Value, Type>, Value> views;
};

/// Builds the body of one kernel.
class BodyBuilder {
public:
  BodyBuilder(Placement &placement, const Step &step)
      : placement(placement), step(step), region(*step.region),
        builder(region.space.getContext()), loc(getLoc()) {
    builder.setInsertionPointToEnd(&body);
    for (Operation *op : step.members)
      members.insert(op);
    for (auto [axis, extent] : llvm::enumerate(getExtents(region.space))) {
      space.push_back(extent);
      if (!llvm::is_contained(region.reducedAxes, int64_t(axis)))
        rowExtents.push_back(extent);
    }
  }

  FusedOp build();

private:
  Location getLoc() const;
  Value get(Value value, ArrayRef<AffineExpr> extents);
  Value addInput(Value value);
  Value getInput(Value value);
  Value getConstant(Value splat, ArrayRef<AffineExpr> extents);
  Extents getTarget(Value value, unsigned access) const;
  void clone(Operation *op, unsigned access);
  void cloneExternal(Operation *op);
  bool repeatInSpace(Operation *op);
  bool reduceInSpace(Operation *op, unsigned access);

  Placement &placement;
  const Step &step;
  const Region &region;
  Block body;
  OpBuilder builder;
  Location loc;
  Extents space, rowExtents;
  llvm::DenseSet<Operation *> members;
  llvm::DenseMap<Value, Value> values;
  SmallVector<Value> outer; // of each argument of the body
  llvm::DenseMap<Value, Value> inputs;
  llvm::DenseMap<std::pair<Attribute, Type>, Value> constants;
};

} // namespace

Value Placement::get(Value value) {
  auto it = placement.find(value);
  if (it != placement.end())
    return it->second;
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return value;
  Value view = get(getSource(value), getExtents(value));
  if (view != value)
    placement[value] = view;
  return view;
}

Value Placement::get(Value value, ArrayRef<AffineExpr> extents) {
  Value source = getSource(get(getSource(value)));
  if (hasExtents(source, extents))
    return source;
  Type type = withExtents(source.getType(), extents);
  Value &view = views[{source, type}];
  if (!view)
    view = builder.create<ReshapeOp>(source.getLoc(), type, source);
  return view;
}

/// The anchor's location first: the kernel is named after it.
Location BodyBuilder::getLoc() const {
  llvm::SetVector<Location> locations;
  Operation *named = region.anchor ? region.anchor : step.members.back();
  locations.insert(named->getLoc());
  for (Operation *op : step.members)
    locations.insert(op->getLoc());
  return FusedLoc::get(named->getContext(), locations.getArrayRef());
}

Value BodyBuilder::addInput(Value value) {
  outer.push_back(value);
  return body.addArgument(value.getType(), value.getLoc());
}

Value BodyBuilder::getInput(Value value) {
  Value &input = inputs[value];
  if (!input)
    input = addInput(value);
  return input;
}

Value BodyBuilder::getConstant(Value splat, ArrayRef<AffineExpr> extents) {
  Attribute element = getSplat(splat);
  RankedTensorType type = withExtents(splat.getType(), extents);
  Value &constant = constants[{element, type}];
  if (constant)
    return constant;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&body);
  constant = builder.create<ConstantOp>(splat.getLoc(),
                                        DenseElementsAttr::get(type, element));
  return constant;
}

/// The value in the body, with these extents.
Value BodyBuilder::get(Value value, ArrayRef<AffineExpr> extents) {
  Value source = getSource(value);
  if (getSplat(source))
    return getConstant(source, extents);
  if (!members.contains(source.getDefiningOp()))
    return getInput(placement.get(source, extents));
  Value inner = values.lookup(source);
  if (hasExtents(inner, extents))
    return inner;
  return builder.create<ReshapeOp>(loc, withExtents(inner.getType(), extents),
                                   inner);
}

/// The extents that a value read by `access` has in the body.
Extents BodyBuilder::getTarget(Value value, unsigned access) const {
  if (access & kElementwise)
    return space;
  if (access == kPerRow)
    return rowExtents;
  return getExtents(value);
}

/// The extents which an operand that is repeated to `from` has if it is
/// repeated to `to` instead; nothing if a run of merged axes repeats in part.
static std::optional<Extents> reshapeRepeated(ArrayRef<AffineExpr> operand,
                                              ArrayRef<AffineExpr> from,
                                              ArrayRef<AffineExpr> to) {
  Extents result; // without leading ones
  int64_t missing = from.size() - operand.size();
  for (const AxisGroup &group : groupAxes(from, to)) {
    bool isRead = false, isRepeated = false;
    for (size_t i = group.fromBegin; i < group.fromEnd; ++i) {
      if (graph::getConstant(from[i]) == 1)
        continue;
      bool isOne =
          int64_t(i) < missing || graph::getConstant(operand[i - missing]) == 1;
      (isOne ? isRepeated : isRead) = true;
    }
    if (isRead && isRepeated)
      return std::nullopt;
    for (size_t j = group.toBegin; j < group.toEnd; ++j)
      if (isRead)
        result.push_back(to[j]);
      else if (!result.empty())
        result.push_back(getAffineConstantExpr(1, to[j].getContext()));
  }
  return result;
}

/// True if `op` repeats its operand as numpy does: axes aligned at the end.
static bool isRepetition(Operation *op) {
  if (op->getNumOperands() != 1 || !isa<ElementOpInterface>(op))
    return false;
  AffineMap map = getReadMap(op, 0);
  if (!map)
    return false;
  unsigned missing = map.getNumDims() - map.getNumResults();
  Extents from = getExtents(op->getOperand(0)),
          to = getExtents(op->getResult(0));
  for (auto [axis, index] : llvm::enumerate(map.getResults())) {
    if (graph::getConstant(index))
      continue;
    // The start of a longer axis is read at the same index, but is no
    // repetition.
    auto loop = dyn_cast<AffineDimExpr>(index);
    if (!loop || loop.getPosition() != axis + missing ||
        !graph::isEqual(from[axis], to[axis + missing]))
      return false;
  }
  return true;
}

/// Repeats to the kernel's space straight away, so that no reshape is needed.
bool BodyBuilder::repeatInSpace(Operation *op) {
  Extents own = getExtents(op->getResult(0));
  if (!isRepetition(op) || llvm::equal(own, space, graph::isEqual))
    return false;
  Value operand = op->getOperand(0);
  std::optional<Extents> extents =
      reshapeRepeated(getExtents(operand), own, space);
  if (!extents)
    return false;
  Type type = withExtents(op->getResult(0).getType(), space);
  values[op->getResult(0)] =
      builder.create<BroadcastOp>(op->getLoc(), type, get(operand, *extents));
  return true;
}

/// Rows and the columns of panels read one view of what both reduce.
bool BodyBuilder::reduceInSpace(Operation *op, unsigned access) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || region.panelAxes.empty())
    return false;
  ArrayRef<int64_t> axes =
      access == kPerColumn ? region.panelAxes : region.reducedAxes;
  values[reduce.getResult()] = builder.create<ReduceOp>(
      op->getLoc(), reduce.getKind(), get(reduce.getX(), space), axes);
  return true;
}

/// Code that is given reads each operand in memory, by a pointer of its own.
void BodyBuilder::cloneExternal(Operation *op) {
  Operation *copy = builder.clone(*op);
  for (OpOperand &operand : copy->getOpOperands()) {
    Value value = operand.get();
    operand.set(addInput(placement.get(getSource(value), getExtents(value))));
  }
  for (auto [value, inner] : llvm::zip(op->getResults(), copy->getResults()))
    values[value] = inner;
}

void BodyBuilder::clone(Operation *op, unsigned access) {
  if (isa<graph::ExternalKernelOpInterface>(op))
    return cloneExternal(op);
  bool isPointwise = isa<PointwiseOpInterface>(op);
  if (!isPointwise && (access & kElementwise) && repeatInSpace(op))
    return;
  if (reduceInSpace(op, access))
    return;
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Extents extents =
        isPointwise ? getTarget(operand, access) : getExtents(operand);
    if (!mapping.contains(operand))
      mapping.map(operand, get(operand, extents));
  }
  Operation *copy = builder.clone(*op, mapping);
  for (auto [value, inner] : llvm::zip(op->getResults(), copy->getResults())) {
    if (isPointwise)
      inner.setType(withExtents(value.getType(), getTarget(value, access)));
    values[value] = inner;
  }
}

FusedOp BodyBuilder::build() {
  for (auto [op, access] : llvm::zip(step.members, region.access))
    clone(op, access);
  SmallVector<Value> yielded;
  SmallVector<Type> types;
  for (Value result : step.results) {
    auto *it = llvm::find(step.members, result.getDefiningOp());
    unsigned access = region.access[it - step.members.begin()];
    // A kernel has the shape of its op's first result.
    bool isOwn = region.kind == KernelKind::irregular ||
                 cast<OpResult>(result).getResultNumber() > 0;
    yielded.push_back(
        get(result, isOwn ? getExtents(result) : getTarget(result, access)));
    types.push_back(yielded.back().getType());
  }
  builder.create<YieldOp>(loc, yielded);
  auto fused =
      placement.builder.create<FusedOp>(loc, types, region.kind, outer);
  fused.getBody().push_back(new Block());
  Block &block = fused.getBody().front();
  for (BlockArgument argument : body.getArguments())
    argument.replaceAllUsesWith(
        block.addArgument(argument.getType(), argument.getLoc()));
  block.getOperations().splice(block.end(), body.getOperations());
  for (auto [result, value] : llvm::zip(fused.getResults(), step.results)) {
    placement.set(value, result);
    placement.set(value, placement.get(value, getExtents(value)));
  }
  return fused;
}

/// Ops that stay keep their operands, but views of kernels' results must be
/// built before them.
static void placeOp(Operation *op, Placement &placement) {
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (Operation *view = operand.getDefiningOp();
          isView(view) && view->getBlock() == op->getBlock())
        placement.get(operand);
  });
  if (!op->hasTrait<OpTrait::IsTerminator>())
    op->moveBefore(op->getBlock()->getTerminator());
}

void outlineSteps(Block &block, MutableArrayRef<Step> steps) {
  SmallVector<Operation *> old;
  for (Operation &op : block)
    if (isFusible(&op) || isView(&op))
      old.push_back(&op);
  Placement placement(block);
  for (Step &step : steps) {
    if (step.region)
      step.fused = BodyBuilder(placement, step).build();
    else
      placeOp(step.members.front(), placement);
  }
  placement.replaceUses();
  for (Operation *op : llvm::reverse(old))
    if (op->use_empty())
      op->erase();
}

} // namespace tcc::fusion

#include "frontends/aten/Variable.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tcc::aten {

static bool isMovement(Operation *op) {
  return isa_and_present<graph::ReshapeOp, graph::TransposeOp, graph::SliceOp,
                         graph::BroadcastOp>(op);
}

Value getOrigin(Value value) {
  while (isMovement(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

void setBase(Variable &view, Variable &base) {
  SmallVector<Operation *, 4> chain;
  Value value = view.value;
  while (value != base.value) {
    Operation *op = value.getDefiningOp();
    if (!isMovement(op))
      return; // a tensor of its own
    chain.push_back(op);
    value = op->getOperand(0);
  }
  view.base = &base;
  view.root = base.getRoot();
  view.chain.assign(chain.rbegin(), chain.rend());
  view.seen = view.root->version;
}

/// True if it lies in row-major order, whatever the strides of inputs are:
/// reshapes keep that.
static bool isDense(Variable &variable) {
  Variable *place = &variable;
  for (; place->base; place = place->base)
    if (!llvm::all_of(place->chain, llvm::IsaPred<graph::ReshapeOp>))
      return false;
  if (place->isDense || place->number)
    return true;
  // What an op computed has no gaps: along one axis that is all.
  return place->value && place->value.getDefiningOp() && !place->stored &&
         !place->mates &&
         cast<RankedTensorType>(place->value.getType()).getRank() <= 1;
}

void setBaseOrCopy(Variable &view, Variable &base) {
  if (isDense(base))
    return setBase(view, base);
  Variable *root = base.getRoot();
  if (!root->mates) {
    root->mates = std::make_shared<llvm::SetVector<Variable *>>();
    root->mates->insert(root);
  }
  root->mates->insert(&view);
  view.mates = root->mates;
}

/// Makes a view again after its base was written to.
static void replay(Emitter &emitter, Variable &view) {
  Value value = view.base->value;
  for (Operation *&op : view.chain) {
    IRMapping mapping;
    mapping.map(op->getOperand(0), value);
    op = emitter.getBuilder().clone(*op, mapping);
    value = op->getResult(0);
  }
  view.value = value;
}

Value read(Emitter &emitter, Variable &variable) {
  Variable *root = variable.getRoot();
  if (root->isUnknown)
    return emitter.unsupported(
        "reading a tensor after a write to what may be a copy of it, or may "
        "be a view, as its strides decide (.clone() makes a copy, .view() a "
        "view)");
  SmallVector<Variable *> stale;
  for (Variable *view = &variable; view->base && view->seen != root->version;
       view = view->base)
    stale.push_back(view);
  for (Variable *view : llvm::reverse(stale)) {
    replay(emitter, *view);
    view->seen = root->version;
  }
  return variable.value;
}

// --- Writing -----------------------------------------------------------------

/// `whole` with `part` at each `step`th place of an axis from `start` on.
static Value writeSteps(Emitter &emitter, Value whole, Value part, int64_t axis,
                        AffineExpr start, int64_t step) {
  Type index = IntegerType::get(emitter.getContext(), 64);
  AffineExpr extent = graph::getExtent(whole, axis);
  AffineExpr count = graph::getExtent(part, axis);
  graph::Extents along(emitter.rank(whole), emitter.getSizes().constant(1));
  along[axis] = extent;
  Value zero = emitter.constant(0, index);
  Value stride = emitter.constant(double(step), index);
  Value offset =
      emitter.sub(emitter.iota(along, axis, index), emitter.size(start));
  Value rest = emitter.pointwise<graph::ModOp>({offset, stride});
  Value isInside = emitter.pointwise<graph::AndOp>(
      {emitter.compare(graph::CompareKind::ge, offset, zero),
       emitter.compare(graph::CompareKind::lt, offset,
                       emitter.size(count * step))});
  isInside = emitter.pointwise<graph::AndOp>(
      {isInside, emitter.compare(graph::CompareKind::eq, rest, zero)});
  // The ends repeat beyond the part: they are not selected.
  Value place = emitter.div(offset, stride);
  place = emitter.min(emitter.max(place, zero), emitter.size(count - 1));
  Value spread = emitter.gather(part, emitter.reshape(place, {extent}), axis);
  return emitter.select(isInside, spread, whole);
}

/// `whole` with the elements that a slice reads, along the axes from `axis` on,
/// replaced by `part`.
static Value writeSlice(Emitter &emitter, graph::SliceOp slice, Value whole,
                        Value part, int64_t axis) {
  if (!whole || !part || axis == emitter.rank(whole))
    return part;
  AffineExpr start = slice.getStarts().getResult(axis);
  AffineExpr extent = graph::getExtent(whole, axis);
  AffineExpr count = graph::getExtent(part, axis);
  int64_t step = slice.getSteps()[axis];
  if (graph::isEqual(count, extent) && step == 1)
    return writeSlice(emitter, slice, whole, part, axis + 1);
  if (step < 1)
    return emitter.unsupported("a write to a view in reverse");
  Value inner = emitter.slice(whole, axis, start, count, step);
  part = writeSlice(emitter, slice, inner, part, axis + 1);
  if (step != 1)
    return writeSteps(emitter, whole, part, axis, start, step);
  AffineExpr end = start + count;
  SmallVector<Value> parts;
  if (!graph::isEqual(start, emitter.getSizes().constant(0)))
    parts.push_back(
        emitter.slice(whole, axis, emitter.getSizes().constant(0), start));
  parts.push_back(part);
  if (!graph::isEqual(end, extent))
    parts.push_back(emitter.slice(whole, axis, end, extent - end));
  return emitter.concat(parts, axis);
}

/// What the operand of `op` becomes where its result becomes `part`.
static Value writeThrough(Emitter &emitter, Operation *op, Value whole,
                          Value part) {
  if (!whole || !part)
    return nullptr;
  if (isa<graph::ReshapeOp>(op))
    return emitter.reshape(part, emitter.extents(whole));
  if (auto transpose = dyn_cast<graph::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(transpose.getPermutation().size());
    for (auto [i, axis] : llvm::enumerate(transpose.getPermutation()))
      inverse[axis] = i;
    return emitter.transpose(part, inverse);
  }
  if (auto slice = dyn_cast<graph::SliceOp>(op))
    return writeSlice(emitter, slice, whole, part, 0);
  return emitter.unsupported("a write to a tensor that was expanded");
}

void write(Emitter &emitter, Variable &variable, Value value) {
  read(emitter, variable);
  if (!value || emitter.hasFailed())
    return;
  // The chains start at the current values of the bases.
  Variable *place = &variable;
  for (; place->base; place = place->base)
    for (Operation *op : llvm::reverse(place->chain))
      value = writeThrough(emitter, op, op->getOperand(0), value);
  if (!value)
    return;
  place->number.reset();
  place->value = value;
  ++place->version;
  if (place->mates)
    for (Variable *mate : *place->mates)
      mate->isUnknown = mate != place;
}

} // namespace tcc::aten

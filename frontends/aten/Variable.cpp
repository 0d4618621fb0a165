#include "frontends/aten/Variable.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tcc::aten {

static bool isMovement(Operation *op) {
  return isa_and_present<graph::ReshapeOp, graph::TransposeOp, graph::SliceOp,
                         graph::BroadcastOp>(op);
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
  view.chain.assign(chain.rbegin(), chain.rend());
  view.seen = base.getRoot()->version;
}

Value read(Emitter &emitter, Variable &variable) {
  int version = variable.getRoot()->version;
  if (!variable.base || variable.seen == version)
    return variable.value;
  Value value = read(emitter, *variable.base);
  for (Operation *&op : variable.chain) {
    IRMapping mapping;
    mapping.map(op->getOperand(0), value);
    op = emitter.getBuilder().clone(*op, mapping);
    value = op->getResult(0);
  }
  variable.seen = version;
  return variable.value = value;
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
  if (!value)
    return;
  variable.number.reset();
  if (!variable.base) {
    variable.value = value;
    ++variable.version;
    return;
  }
  read(emitter, variable); // the chain starts at the base's current value
  Value part = value;
  for (Operation *op : llvm::reverse(variable.chain))
    part = writeThrough(emitter, op, op->getOperand(0), part);
  write(emitter, *variable.base, part);
}

} // namespace tcc::aten

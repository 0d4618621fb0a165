#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

static RankedTensorType getType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

/// The extents of `like` of x, from `starts`, `steps` apart.
static Value slice(const TensorEmitter &emitter, Value x, RankedTensorType type,
                   ArrayRef<AffineExpr> starts, ArrayRef<int64_t> steps) {
  return emitter.emit<SliceOp>(type, x, makeSizeMap(starts, x.getContext()),
                               steps);
}

static Value padWithZeros(const TensorEmitter &emitter, Value x,
                          ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                          ArrayRef<int64_t> interior) {
  auto scalar = RankedTensorType::get({}, getElementTypeOrSelf(x));
  return emitter.emit<PadOp>(x, emitter.splat(scalar, 0.0), low, high, interior,
                             PadMode::constant);
}

LogicalResult ReshapeOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  gradients.add(getX(), emitter.emit<ReshapeOp>(getX().getType(),
                                                gradients.get(getResult())));
  return success();
}

LogicalResult BroadcastOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  gradients.add(getX(),
                emitter.sumTo(gradients.get(getResult()), ::getType(getX())));
  return success();
}

LogicalResult TransposeOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  gradients.add(getX(), emitter.emit<TransposeOp>(
                            gradients.get(getResult()),
                            invertPermutationVector(getPermutation())));
  return success();
}

LogicalResult ConcatOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  int64_t rank = ::getType(gradient).getRank();
  SmallVector<AffineExpr> starts(rank,
                                 emitter.builder.getAffineConstantExpr(0));
  SmallVector<int64_t> steps(rank, 1);
  for (Value operand : getOperands()) {
    if (gradients.wants(operand))
      gradients.add(
          operand, slice(emitter, gradient, ::getType(operand), starts, steps));
    starts[getAxis()] = starts[getAxis()] + getExtent(operand, getAxis());
  }
  return success();
}

// --- slices ------------------------------------------------------------------

/// The gradient of a slice of consecutive elements, at places that sizes tell:
/// zeros before and after it, axis by axis.
static Value surroundWithZeros(const TensorEmitter &emitter, SliceOp op,
                               Value gradient) {
  Extents whole = getExtents(op.getX());
  for (auto [axis, start] : llvm::enumerate(op.getStarts().getResults())) {
    Extents before = getExtents(gradient), after = before;
    before[axis] = start;
    after[axis] = whole[axis] - start - after[axis];
    SmallVector<Value> parts;
    auto addZeros = [&](ArrayRef<AffineExpr> extents) {
      if (getConstant(extents[axis]) != 0)
        parts.push_back(emitter.splat(
            makeTensorType(extents, getElementTypeOrSelf(gradient)), 0.0));
    };
    addZeros(before);
    parts.push_back(gradient);
    addZeros(after);
    if (parts.size() > 1)
      gradient = emitter.emit<ConcatOp>(parts, int64_t(axis));
  }
  return gradient;
}

/// x with the axes of negative `steps` in reverse; these steps become positive
/// and their starts the last ones.
static Value reverseAxes(const TensorEmitter &emitter, Value x,
                         MutableArrayRef<int64_t> starts,
                         MutableArrayRef<int64_t> steps) {
  SmallVector<AffineExpr> first;
  SmallVector<int64_t> directions;
  for (auto [axis, step] : llvm::enumerate(steps)) {
    int64_t last = step < 0 ? getType(x).getDimSize(axis) - 1 : 0;
    first.push_back(emitter.builder.getAffineConstantExpr(last));
    directions.push_back(step < 0 ? -1 : 1);
    if (step < 0)
      starts[axis] += last * step;
    step = std::abs(step);
  }
  if (!llvm::is_contained(directions, -1))
    return x;
  return slice(emitter, x, getType(x), first, directions);
}

LogicalResult SliceOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  if (llvm::all_of(getSteps(), [](int64_t step) { return step == 1; })) {
    gradients.add(getX(), surroundWithZeros(emitter, *this, gradient));
    return success();
  }
  if (!getX().getType().hasStaticShape() || !getType().hasStaticShape())
    return emitOpError("with steps has no derivative where extents are "
                       "symbolic");
  SmallVector<int64_t> low, steps(getSteps()), high, interior;
  for (AffineExpr start : getStarts().getResults())
    low.push_back(*getConstant(start));
  gradient = reverseAxes(emitter, gradient, low, steps);
  for (auto [axis, step] : llvm::enumerate(steps)) {
    int64_t count = getType().getDimSize(axis);
    int64_t end = count == 0 ? low[axis] : low[axis] + (count - 1) * step + 1;
    high.push_back(getX().getType().getDimSize(axis) - end);
    interior.push_back(step - 1);
  }
  gradients.add(getX(), padWithZeros(emitter, gradient, low, high, interior));
  return success();
}

/// The slice of the gradient, surrounded by zeros, that lies where x did.
LogicalResult DynamicSliceOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  SmallVector<int64_t> room, none(::getType(getX()).getRank(), 0);
  for (auto [from, to] :
       llvm::zip_equal(getExtents(getX()), getExtents(getResult()))) {
    std::optional<int64_t> difference = getConstant(from - to);
    if (!difference)
      return emitOpError("has no derivative where extents are symbolic");
    room.push_back(*difference);
  }
  auto type = ::getType(getStarts());
  Value rooms = emitter.emit<ConstantOp>(
      type, DenseElementsAttr::get(type, ArrayRef(room)));
  Value starts = emitter.emit<MinOp>(getStarts(), rooms);
  starts = emitter.emit<MaxOp>(starts, emitter.splat(starts, 0.0));
  Value padded =
      padWithZeros(emitter, gradients.get(getResult()), room, room, none);
  gradients.add(
      getX(), emitter.emit<DynamicSliceOp>(getX().getType(), padded,
                                           emitter.emit<SubOp>(rooms, starts)));
  return success();
}

// --- pad ---------------------------------------------------------------------

/// What of `gradient`, of the padded tensor, belongs to x. Where pads crop
/// there are zeros.
static Value cropPads(const TensorEmitter &emitter, PadOp op, Value gradient) {
  SmallVector<int64_t> low, high, steps;
  SmallVector<AffineExpr> starts;
  for (auto [before, after, interior] :
       llvm::zip_equal(op.getLow(), op.getHigh(), op.getInterior())) {
    low.push_back(std::max<int64_t>(-before, 0));
    high.push_back(std::max<int64_t>(-after, 0));
    starts.push_back(
        emitter.builder.getAffineConstantExpr(std::max<int64_t>(before, 0)));
    steps.push_back(interior + 1);
  }
  SmallVector<int64_t> none(low.size(), 0);
  if (low != none || high != none)
    gradient = padWithZeros(emitter, gradient, low, high, none);
  return slice(emitter, gradient, getType(op.getX()), starts, steps);
}

LogicalResult PadOp::emitGradients(Gradients &gradients) {
  if (getMode() != PadMode::constant)
    return emitOpError("of mode ")
           << stringifyPadMode(getMode()) << " has no derivative";
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  Value inside = cropPads(emitter, *this, gradient);
  gradients.add(getX(), inside);
  if (gradients.wants(getValue())) {
    auto scalar = ::getType(getValue());
    gradients.add(getValue(),
                  emitter.emit<SubOp>(emitter.sumTo(gradient, scalar),
                                      emitter.sumTo(inside, scalar)));
  }
  return success();
}

LogicalResult IotaOp::emitGradients(Gradients &) { return success(); }

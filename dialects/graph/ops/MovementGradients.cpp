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

/// `part` from `starts` of zeros with the extents of `whole` on.
static Value surroundWithZeros(const TensorEmitter &emitter, Value part,
                               ArrayRef<AffineExpr> whole,
                               ArrayRef<AffineExpr> starts) {
  SmallVector<int64_t> low(whole.size(), 0), high = low, none = low;
  for (auto [axis, start] : llvm::enumerate(starts)) {
    Extents before = getExtents(part), after = before;
    before[axis] = start;
    after[axis] = whole[axis] - start - after[axis];
    auto first = getConstant(start), last = getConstant(after[axis]);
    if (first && last) {
      low[axis] = *first;
      high[axis] = *last;
      continue;
    }
    auto makeZeros = [&](ArrayRef<AffineExpr> extents) {
      return emitter.splat(makeTensorType(extents, getElementTypeOrSelf(part)),
                           0.0);
    };
    part = emitter.emit<ConcatOp>(
        ValueRange{makeZeros(before), part, makeZeros(after)}, int64_t(axis));
  }
  return low == none && high == none
             ? part
             : padWithZeros(emitter, part, low, high, none);
}

/// `gradient` with the axes of negative `steps` in reverse, and zeros between
/// the elements; `starts` become where the first element of each axis was.
static Value spreadSteps(const TensorEmitter &emitter, Value gradient,
                         ArrayRef<int64_t> steps,
                         MutableArrayRef<AffineExpr> starts) {
  Extents extents = getExtents(gradient);
  size_t rank = extents.size();
  SmallVector<AffineExpr> first(rank, emitter.builder.getAffineConstantExpr(0));
  SmallVector<int64_t> directions(rank, 1), interior, none(rank, 0);
  for (auto [axis, step] : llvm::enumerate(steps)) {
    interior.push_back(std::abs(step) - 1);
    if (step > 0)
      continue;
    directions[axis] = -1;
    first[axis] = extents[axis] - 1;
    starts[axis] = starts[axis] + first[axis] * step;
  }
  if (llvm::is_contained(directions, -1))
    gradient = slice(emitter, gradient, getType(gradient), first, directions);
  return interior == none
             ? gradient
             : padWithZeros(emitter, gradient, none, none, interior);
}

LogicalResult SliceOp::emitGradients(Gradients &gradients) {
  if (getType().getNumDynamicDims() == 0 && getType().getNumElements() == 0)
    return success();
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  SmallVector<AffineExpr> starts(getStarts().getResults());
  Value spread =
      spreadSteps(emitter, gradients.get(getResult()), getSteps(), starts);
  gradients.add(getX(),
                surroundWithZeros(emitter, spread, getExtents(getX()), starts));
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

namespace {

/// Places of a padded axis that lie in x's axis from `source` on, forwards,
/// backwards or all at one (`step` 1, -1, 0).
struct Run {
  int64_t first, count, source, step;
};

} // namespace

/// The index of an axis that `place` of the padded one repeats.
static int64_t getSource(PadMode mode, int64_t place, int64_t extent) {
  if (mode == PadMode::edge)
    return std::clamp<int64_t>(place, 0, extent - 1);
  if (mode == PadMode::wrap)
    return llvm::mod(place, extent);
  int64_t period = std::max<int64_t>(2 * (extent - 1), 1);
  int64_t back = llvm::mod(place, period);
  return back < extent ? back : period - back;
}

/// The fewest runs that make up the padded axis.
static SmallVector<Run> findRuns(PadMode mode, int64_t low, int64_t high,
                                 int64_t extent) {
  SmallVector<Run> runs;
  for (int64_t place = -low; place < extent + high; ++place) {
    int64_t source = getSource(mode, place, extent);
    Run *run = runs.empty() ? nullptr : &runs.back();
    int64_t step =
        run ? source - (run->source + (run->count - 1) * run->step) : 0;
    if (run && (run->count == 1 || step == run->step) && std::abs(step) <= 1) {
      run->step = step;
      ++run->count;
    } else {
      runs.push_back({place + low, 1, source, 1});
    }
  }
  return runs;
}

/// The part of `gradient` that `run` holds along `axis`, where x has it.
static Value placeRun(const TensorEmitter &emitter, Value gradient, Run run,
                      int64_t axis, int64_t extent) {
  auto constant = [&](int64_t value) {
    return emitter.builder.getAffineConstantExpr(value);
  };
  Extents extents = getExtents(gradient);
  SmallVector<AffineExpr> starts(extents.size(), constant(0));
  SmallVector<int64_t> steps(extents.size(), 1), low(extents.size(), 0);
  SmallVector<int64_t> high = low, none = low;
  bool isBackward = run.step < 0;
  starts[axis] = constant(run.first + (isBackward ? run.count - 1 : 0));
  steps[axis] = isBackward ? -1 : 1;
  extents[axis] = constant(run.count);
  Type elementType = getElementTypeOrSelf(gradient);
  Value part = slice(emitter, gradient, makeTensorType(extents, elementType),
                     starts, steps);
  int64_t count = run.step == 0 ? 1 : run.count;
  if (count < run.count) {
    extents[axis] = constant(1);
    part = emitter.sumTo(part, makeTensorType(extents, elementType));
  }
  low[axis] = isBackward ? run.source - run.count + 1 : run.source;
  high[axis] = extent - low[axis] - count;
  return padWithZeros(emitter, part, low, high, none);
}

/// Each element of x gets what its repetitions have, axis after axis.
static LogicalResult addRepetitions(PadOp op, Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), op.getLoc());
  Value gradient = gradients.get(op.getResult());
  for (int64_t axis = 0; axis < getType(op.getX()).getRank(); ++axis) {
    int64_t low = op.getLow()[axis], high = op.getHigh()[axis];
    if (low == 0 && high == 0)
      continue;
    int64_t extent = getType(op.getX()).getDimSize(axis);
    if (ShapedType::isDynamic(extent))
      return op.emitOpError("of a symbolic extent has no derivative");
    Value sum;
    for (Run run : findRuns(op.getMode(), low, high, extent)) {
      Value part = placeRun(emitter, gradient, run, axis, extent);
      sum = sum ? emitter.emit<AddOp>(sum, part) : part;
    }
    // Nothing is left of an axis that is cropped away.
    gradient = sum ? sum : emitter.splat(op.getX(), 0.0);
    if (!sum)
      break;
  }
  gradients.add(op.getX(), gradient);
  return success();
}

LogicalResult PadOp::emitGradients(Gradients &gradients) {
  if (getMode() != PadMode::constant)
    return addRepetitions(*this, gradients);
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

//===- ControlGradients.cpp - Gradients of ifs and loops ------------------===//
//
// The gradient of a region computes the region's values again.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::graph;

/// Clones the ops of `block` but its terminator to the end of the block of
/// `builder`; gives what it yields.
static SmallVector<Value> cloneBody(OpBuilder &builder, Block &block,
                                    IRMapping &mapping) {
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// The captured values whose gradients are wanted.
static SmallVector<Value> getWantedCaptures(Operation *op,
                                            const Gradients &gradients) {
  SmallVector<Value> captures = getCaptures(op);
  llvm::erase_if(captures,
                 [&](Value value) { return !gradients.wants(value); });
  return captures;
}

/// `gradient`, or zeros like `value`.
static Value orZeros(const TensorEmitter &emitter, Value gradient,
                     Value value) {
  return gradient ? gradient : emitter.splat(value, 0.0);
}

// --- if ----------------------------------------------------------------------

/// Fills `region` with the gradients of what `block` yields with respect to
/// `inputs`.
static LogicalResult differentiateBranch(OpBuilder builder, Region &region,
                                         Block &block, ValueRange seeds,
                                         ArrayRef<unsigned> seeded,
                                         ValueRange inputs) {
  builder.setInsertionPointToStart(&region.emplaceBlock());
  IRMapping mapping;
  SmallVector<Value> yields = cloneBody(builder, block, mapping);
  auto results = llvm::map_to_vector(
      seeded, [&](unsigned position) { return yields[position]; });
  SmallVector<Value> gradients;
  if (failed(differentiate(builder, results, seeds, inputs, gradients)))
    return failure();
  TensorEmitter emitter(builder, block.getTerminator()->getLoc());
  for (auto [gradient, input] : llvm::zip_equal(gradients, inputs))
    gradient = orZeros(emitter, gradient, input);
  builder.create<YieldOp>(emitter.loc, gradients);
  return success();
}

static bool hasCollectives(IfOp op) {
  return op
      ->walk([](Operation *nested) {
        return nested->hasTrait<OpTrait::IsCollective>()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult IfOp::emitGradients(Gradients &gradients) {
  // Both branches must run the same collectives, while what is computed again
  // of a branch is what its own gradient needs.
  if (hasCollectives(*this))
    return emitOpError("with a collective in a branch has no derivative");
  SmallVector<Value> inputs = getWantedCaptures(*this, gradients), seeds;
  SmallVector<unsigned> seeded;
  for (OpResult result : getResults()) {
    if (!gradients.find(result))
      continue;
    seeds.push_back(gradients.get(result));
    seeded.push_back(result.getResultNumber());
  }
  OpBuilder &builder = gradients.getBuilder();
  auto branch = builder.create<IfOp>(getLoc(), ValueRange(inputs).getTypes(),
                                     getCondition());
  if (failed(differentiateBranch(builder, branch.getThenRegion(),
                                 getThenRegion().front(), seeds, seeded,
                                 inputs)) ||
      failed(differentiateBranch(builder, branch.getElseRegion(),
                                 getElseRegion().front(), seeds, seeded,
                                 inputs)))
    return failure();
  for (auto [input, part] : llvm::zip_equal(inputs, branch.getResults()))
    gradients.add(input, part);
  return success();
}

// --- loop --------------------------------------------------------------------

static bool isTrue(Value value) {
  DenseElementsAttr elements;
  return !value || (matchPattern(value, m_Constant(&elements)) &&
                    elements.isSplat() && elements.getSplatValue<bool>());
}

/// The constant that bounds the number of iterations.
static std::optional<int64_t> getBound(LoopOp op) {
  DenseElementsAttr elements;
  if (!op.getTrips() || !matchPattern(op.getTrips(), m_Constant(&elements)))
    return std::nullopt;
  return std::max<int64_t>(0, (*elements.value_begin<APInt>()).getSExtValue());
}

/// True if nothing but the number of iterations ends the loop.
static bool runsToBound(LoopOp op) {
  return isTrue(op.getCondition()) &&
         isTrue(op.getBody().front().getTerminator()->getOperand(0));
}

/// A scalar i64 or i1.
static Value createScalar(const TensorEmitter &emitter, Type type,
                          double value) {
  return emitter.splat(RankedTensorType::get({}, type), value);
}

/// Slice `index`, an i64 scalar, of the leading axis of `stacked`.
static Value takeSlice(const TensorEmitter &emitter, Value stacked,
                       Value index) {
  auto type = cast<RankedTensorType>(stacked.getType());
  Type i64 = emitter.builder.getI64Type();
  Extents extents = getExtents(type);
  Value starts =
      emitter.emit<ReshapeOp>(RankedTensorType::get({1}, i64), index);
  if (type.getRank() > 1) {
    Value zeros =
        emitter.splat(RankedTensorType::get({type.getRank() - 1}, i64), 0.0);
    starts = emitter.emit<ConcatOp>(ValueRange{starts, zeros}, /*axis=*/0);
  }
  extents[0] = emitter.builder.getAffineConstantExpr(1);
  Value slice = emitter.emit<DynamicSliceOp>(
      makeTensorType(extents, type.getElementType()), stacked, starts);
  return emitter.reshape(slice, ArrayRef(extents).drop_front());
}

namespace {

/// The loop that goes through the iterations of another one backwards. It
/// carries the gradients with respect to the carried values, and sums of those
/// with respect to captured ones.
class LoopGradients {
public:
  LoopGradients(LoopOp op, int64_t trips, Gradients &gradients)
      : op(op), trips(trips), gradients(gradients),
        emitter(gradients.getBuilder(), op.getLoc()),
        captures(getWantedCaptures(op, gradients)) {
    for (unsigned i = 0; i < op.getInits().size(); ++i)
      if (isa<FloatType>(getElementTypeOrSelf(op.getInits()[i])))
        floats.push_back(i);
  }

  LogicalResult run();

private:
  unsigned getCarriedCount() { return op.getInits().size(); }
  SmallVector<Value> saveCarried();
  LoopOp createReverse();
  LogicalResult fillReverse(LoopOp reverse, ValueRange saved);
  void seedScanned(Value index, ArrayRef<Value> yields,
                   SmallVectorImpl<Value> &results,
                   SmallVectorImpl<Value> &seeds);

  LoopOp op;
  int64_t trips;
  Gradients &gradients;
  TensorEmitter emitter;
  SmallVector<Value> captures;
  SmallVector<unsigned> floats; ///< positions of carried values of floats
};

} // namespace

/// The loop again, with the carried values of each iteration, stacked.
SmallVector<Value> LoopGradients::saveCarried() {
  SmallVector<Type> types(op.getResultTypes());
  Extents leading = {emitter.builder.getAffineConstantExpr(trips)};
  for (Value init : op.getInits()) {
    Extents extents = leading;
    llvm::append_range(extents, getExtents(init));
    types.push_back(makeTensorType(extents, getElementTypeOrSelf(init)));
  }
  OpBuilder before(op);
  auto loop = before.create<LoopOp>(op.getLoc(), types, op.getTrips(),
                                    op.getCondition(), op.getInits());
  IRMapping mapping;
  op.getBody().cloneInto(&loop.getBody(), mapping);
  Block &body = loop.getBody().front();
  Operation *yield = body.getTerminator();
  yield->insertOperands(yield->getNumOperands(),
                        body.getArguments().drop_front());
  unsigned count = op.getNumResults();
  op->replaceAllUsesWith(loop->getResults().take_front(count));
  return SmallVector<Value>(loop->getResults().drop_front(count));
}

LoopOp LoopGradients::createReverse() {
  SmallVector<Value> inits;
  for (unsigned i : floats)
    inits.push_back(gradients.get(op.getResult(i)));
  for (Value capture : captures)
    inits.push_back(emitter.splat(capture, 0.0));
  Type i64 = emitter.builder.getI64Type();
  Value count = createScalar(emitter, i64, double(trips));
  auto loop =
      emitter.builder.create<LoopOp>(emitter.loc, ValueRange(inits).getTypes(),
                                     count, /*condition=*/Value(), inits);
  Block &body = loop.getBody().emplaceBlock();
  body.addArgument(count.getType(), emitter.loc);
  for (Value init : inits)
    body.addArgument(init.getType(), emitter.loc);
  return loop;
}

/// What is scanned adds to the results of an iteration, its gradient's slice
/// to the seeds.
void LoopGradients::seedScanned(Value index, ArrayRef<Value> yields,
                                SmallVectorImpl<Value> &results,
                                SmallVectorImpl<Value> &seeds) {
  TensorEmitter inner(emitter.builder, emitter.loc);
  for (unsigned i = getCarriedCount(); i < op.getNumResults(); ++i) {
    Value gradient = gradients.find(op.getResult(i));
    if (!gradient)
      continue;
    results.push_back(yields[i + 1]);
    seeds.push_back(takeSlice(inner, gradient, index));
  }
}

LogicalResult LoopGradients::fillReverse(LoopOp reverse, ValueRange saved) {
  OpBuilder &builder = emitter.builder;
  OpBuilder::InsertionGuard guard(builder);
  Block &body = reverse.getBody().front();
  builder.setInsertionPointToStart(&body);
  Value last = createScalar(emitter, builder.getI64Type(), double(trips - 1));
  Value index = emitter.emit<SubOp>(last, body.getArgument(0));
  IRMapping mapping;
  Block &forward = op.getBody().front();
  mapping.map(forward.getArgument(0), index);
  for (auto [i, stacked] : llvm::enumerate(saved))
    mapping.map(forward.getArgument(i + 1), takeSlice(emitter, stacked, index));
  SmallVector<Value> yields = cloneBody(builder, forward, mapping);
  SmallVector<Value> results, seeds, inputs, found;
  for (auto [i, position] : llvm::enumerate(floats)) {
    results.push_back(yields[position + 1]);
    seeds.push_back(body.getArgument(i + 1));
    inputs.push_back(mapping.lookup(forward.getArgument(position + 1)));
  }
  seedScanned(index, yields, results, seeds);
  llvm::append_range(inputs, captures);
  if (failed(differentiate(builder, results, seeds, inputs, found)))
    return failure();
  SmallVector<Value> next = {createScalar(emitter, builder.getI1Type(), 1.0)};
  for (auto [i, gradient] : llvm::enumerate(found)) {
    Value value = orZeros(emitter, gradient, inputs[i]);
    bool isCapture = i >= floats.size();
    next.push_back(isCapture
                       ? emitter.emit<AddOp>(body.getArgument(i + 1), value)
                       : value);
  }
  builder.create<YieldOp>(emitter.loc, next);
  return success();
}

LogicalResult LoopGradients::run() {
  LoopOp reverse = createReverse();
  SmallVector<Value> saved = saveCarried();
  if (failed(fillReverse(reverse, saved)))
    return failure();
  for (auto [i, position] : llvm::enumerate(floats))
    gradients.add(op.getInits()[position], reverse.getResult(i));
  for (auto [i, capture] : llvm::enumerate(captures))
    gradients.add(capture, reverse.getResult(floats.size() + i));
  return success();
}

/// The loop with all iterations of its bound, of which those after it would
/// have ended pass their carried values on. Whether it goes on is carried, too.
static LoopOp runToBound(LoopOp op, OpBuilder builder) {
  builder.setInsertionPoint(op);
  TensorEmitter emitter(builder, op.getLoc());
  auto flag = RankedTensorType::get({}, builder.getI1Type());
  Value always = emitter.splat(flag, 1.0);
  SmallVector<Value> inits = {
      op.getCondition() ? emitter.reshape(op.getCondition(), {}) : always};
  llvm::append_range(inits, op.getInits());
  SmallVector<Type> types(ValueRange(inits).getTypes());
  auto loop = builder.create<LoopOp>(op.getLoc(), types, op.getTrips(),
                                     /*condition=*/Value(), inits);
  Block &body = loop.getBody().emplaceBlock(), &once = op.getBody().front();
  body.addArgument(once.getArgument(0).getType(), op.getLoc());
  for (Type type : types)
    body.addArgument(type, op.getLoc());
  builder.setInsertionPointToStart(&body);
  auto branch = builder.create<IfOp>(op.getLoc(), types, body.getArgument(1));
  SmallVector<Value> next = {emitter.splat(flag, 1.0)};
  llvm::append_range(next, branch.getResults());
  builder.create<YieldOp>(op.getLoc(), next);
  IRMapping mapping;
  mapping.map(once.getArgument(0), body.getArgument(0));
  mapping.map(once.getArguments().drop_front(),
              body.getArguments().drop_front(2));
  builder.setInsertionPointToStart(&branch.getThenRegion().emplaceBlock());
  SmallVector<Value> yields = cloneBody(builder, once, mapping);
  builder.create<YieldOp>(op.getLoc(), yields);
  builder.setInsertionPointToStart(&branch.getElseRegion().emplaceBlock());
  builder.create<YieldOp>(op.getLoc(), body.getArguments().drop_front());
  return loop;
}

LogicalResult LoopOp::emitGradients(Gradients &gradients) {
  // Many more are meant as no bound; the carried values of all are kept.
  constexpr int64_t kMostIterations = 1 << 16;
  std::optional<int64_t> bound = getBound(*this);
  if (bound && runsToBound(*this))
    return LoopGradients(*this, *bound, gradients).run();
  bool hasScans = getNumResults() > getInits().size();
  if (!bound || *bound > kMostIterations || hasScans)
    return emitOpError("whose number of iterations is neither known at compile "
                       "time nor has a small bound has no derivative");
  LoopOp loop = runToBound(*this, gradients.getBuilder());
  for (OpResult result : getResults())
    gradients.replace(result, loop.getResult(result.getResultNumber() + 1));
  return LoopGradients(loop, *bound, gradients).run();
}

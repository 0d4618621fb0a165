//===- LoopGradients.cpp - Gradients of loops -----------------------------===//
//
// A loop goes through the iterations of another one backwards. It computes the
// values of an iteration again from the carried ones, which are saved, but for
// those of products, which are saved too. It carries the gradients with respect
// to the carried values. Of captured values the gradients are sums over the
// iterations, which the loop carries as far as it has to: a product of what
// iterations give is one product, behind the loop, of all that they give; and
// where an iteration reads its own slice of a value it gives its own slice of
// the gradient.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ops/ControlGradients.h"
#include "dialects/graph/ops/IterationSums.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tcc::graph;

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

/// `type` with a leading axis of `extent`.
static RankedTensorType stackType(Type type, int64_t extent) {
  auto tensor = cast<RankedTensorType>(type);
  Extents extents = getExtents(tensor);
  extents.insert(extents.begin(),
                 getAffineConstantExpr(extent, type.getContext()));
  return makeTensorType(extents, tensor.getElementType());
}

/// Erases ops of `block` that nothing needs.
static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

// --- What is saved -----------------------------------------------------------

/// The ops of `body` whose results take a product, or more, to compute again
/// and are others in each iteration.
static SmallVector<Operation *> findProducts(Block &body) {
  SmallVector<Operation *> products;
  llvm::DenseSet<Value> varying = findVarying(body);
  for (Operation &op : body.without_terminator()) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (kernel && varying.contains(op.getResult(0)) &&
        kernel.getKernelKind() != KernelKind::row &&
        kernel.getKernelKind() != KernelKind::pointwise)
      products.push_back(&op);
  }
  return products;
}

// --- Slices ------------------------------------------------------------------

/// A slice of a captured value that an iteration reads, one along the leading
/// axis and whole along the others.
struct OwnSlice {
  DynamicSliceOp op; // in the loop's body
  bool isReversed;   // the last one in the first iteration
};

/// The integer that `value`, of one element, is.
static std::optional<int64_t> getInteger(Value value) {
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return elements.getNumElements() == 1
               ? std::optional((*elements.value_begin<APInt>()).getSExtValue())
               : std::nullopt;
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    return getInteger(reshape.getX());
  if (auto sub = value.getDefiningOp<SubOp>()) {
    std::optional<int64_t> x = getInteger(sub->getOperand(0));
    std::optional<int64_t> y = getInteger(sub->getOperand(1));
    return x && y ? std::optional(*x - *y) : std::nullopt;
  }
  return std::nullopt;
}

static Value skipReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

/// Whether `starts` begins with the number of the iteration (false) or with
/// that of those of `trips` that follow it (true); nothing if with neither.
static std::optional<bool> matchIteration(Value starts, Value iteration,
                                          int64_t trips) {
  if (auto concat = starts.getDefiningOp<ConcatOp>())
    starts = concat->getOperand(0);
  starts = skipReshapes(starts);
  if (starts == iteration)
    return false;
  auto sub = starts.getDefiningOp<SubOp>();
  if (sub && skipReshapes(sub->getOperand(1)) == iteration &&
      getInteger(sub->getOperand(0)) == trips - 1)
    return true;
  return std::nullopt;
}

/// The slices that the body of `op` reads of `capture`, if it reads nothing
/// else of it.
static SmallVector<OwnSlice> findOwnSlices(LoopOp op, Value capture,
                                           int64_t trips) {
  auto type = cast<RankedTensorType>(capture.getType());
  Block &body = op.getBody().front();
  SmallVector<OwnSlice> slices;
  if (!type.hasStaticShape() || type.getRank() == 0 ||
      type.getDimSize(0) < trips)
    return {};
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = 1;
  bool readsOthers = false;
  op.getBody().walk([&](Operation *user) {
    if (!llvm::is_contained(user->getOperands(), capture))
      return;
    auto slice = dyn_cast<DynamicSliceOp>(user);
    bool isOwn =
        slice && slice->getBlock() == &body &&
        cast<RankedTensorType>(slice.getResult().getType()).getShape() ==
            ArrayRef(shape);
    auto isReversed =
        isOwn ? matchIteration(slice.getStarts(), body.getArgument(0), trips)
              : std::nullopt;
    readsOthers |= !isReversed;
    slices.push_back({slice, isReversed.value_or(false)});
  });
  if (readsOthers)
    return {};
  return slices;
}

// --- The loop ----------------------------------------------------------------

namespace {

class LoopGradients {
public:
  LoopGradients(LoopOp op, int64_t trips, Gradients &gradients);
  LogicalResult run();

private:
  /// The result of a product in an iteration, and what was saved of it.
  using ValuePair = std::pair<Value, Value>;
  /// A value of an iteration and what stands for all of them, stacked.
  struct Saved {
    Value value, stacked;
  };

  LoopOp op;
  int64_t trips;
  Gradients &gradients;
  TensorEmitter emitter;
  SmallVector<unsigned> floats; ///< positions of carried values of floats
  SmallVector<Value> summed;    ///< captures whose gradients are summed
  SmallVector<OwnSlice> slices; ///< of other captures
  SmallVector<Saved> saved;

  /// Gradients of an iteration; null where they are zero.
  struct Found {
    SmallVector<Value> carried, summed, slices;
  };

  unsigned getCarriedCount() { return op.getInits().size(); }
  LoopOp createDraft();
  SmallVector<Value> cloneIteration(IRMapping &mapping, Value index,
                                    SmallVectorImpl<ValuePair> &products);
  Value standFor(Value value);
  void seedScanned(Value index, ArrayRef<Value> yields,
                   SmallVectorImpl<Value> &results,
                   SmallVectorImpl<Value> &seeds);
  FailureOr<Found> fill(Block &body);
  LoopOp finish(LoopOp draft, const Found &found, IterationSums &sums);
  void saveValues();
  void addSlices(ArrayRef<std::optional<unsigned>> places, ValueRange stacks);
};

} // namespace

LoopGradients::LoopGradients(LoopOp op, int64_t trips, Gradients &gradients)
    : op(op), trips(trips), gradients(gradients),
      emitter(gradients.getBuilder(), op.getLoc()) {
  for (unsigned i = 0; i < op.getInits().size(); ++i)
    if (isa<FloatType>(getElementTypeOrSelf(op.getInits()[i])))
      floats.push_back(i);
  for (Value capture : getWantedCaptures(op, gradients)) {
    SmallVector<OwnSlice> own = findOwnSlices(op, capture, trips);
    if (own.empty())
      summed.push_back(capture);
    llvm::append_range(slices, own);
  }
}

/// The loop as far as it is known before its body is: it carries the gradients
/// with respect to the carried values.
LoopOp LoopGradients::createDraft() {
  SmallVector<Value> inits;
  for (unsigned i : floats)
    inits.push_back(gradients.get(op.getResult(i)));
  Value count =
      createScalar(emitter, emitter.builder.getI64Type(), double(trips));
  auto loop =
      emitter.builder.create<LoopOp>(emitter.loc, ValueRange(inits).getTypes(),
                                     count, /*condition=*/Value(), inits,
                                     /*count=*/AffineMapAttr());
  Block &body = loop.getBody().emplaceBlock();
  body.addArgument(count.getType(), emitter.loc);
  for (Value init : inits)
    body.addArgument(init.getType(), emitter.loc);
  return loop;
}

/// A tensor before the loop that is replaced by `value` of all iterations, if
/// something needs it.
Value LoopGradients::standFor(Value value) {
  OpBuilder::InsertionGuard guard(emitter.builder);
  emitter.builder.setInsertionPoint(op);
  Value stacked = emitter.splat(stackType(value.getType(), trips), 0.0);
  saved.push_back({value, stacked});
  return stacked;
}

/// Iteration `index` of the forward loop. Behind products, which `products`
/// lists, stands what was saved of them.
SmallVector<Value>
LoopGradients::cloneIteration(IRMapping &mapping, Value index,
                              SmallVectorImpl<ValuePair> &products) {
  Block &forward = op.getBody().front();
  mapping.map(forward.getArgument(0), index);
  for (Value argument : forward.getArguments().drop_front())
    mapping.map(argument, takeSlice(emitter, standFor(argument), index));
  SmallVector<Operation *> costly = findProducts(forward);
  for (Operation &once : forward.without_terminator()) {
    Operation *copy = emitter.builder.clone(once, mapping);
    if (!llvm::is_contained(costly, &once))
      continue;
    for (auto [result, value] :
         llvm::zip_equal(copy->getResults(), once.getResults()))
      products.emplace_back(result, takeSlice(emitter, standFor(value), index));
  }
  return llvm::map_to_vector(
      forward.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// What is scanned adds to the results of an iteration, its gradient's slice
/// to the seeds.
void LoopGradients::seedScanned(Value index, ArrayRef<Value> yields,
                                SmallVectorImpl<Value> &results,
                                SmallVectorImpl<Value> &seeds) {
  for (unsigned i = getCarriedCount(); i < op.getNumResults(); ++i) {
    Value gradient = gradients.find(op.getResult(i));
    if (!gradient)
      continue;
    results.push_back(yields[i + 1]);
    seeds.push_back(takeSlice(emitter, gradient, index));
  }
}

FailureOr<LoopGradients::Found> LoopGradients::fill(Block &body) {
  OpBuilder &builder = emitter.builder;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&body);
  Value last = createScalar(emitter, builder.getI64Type(), double(trips - 1));
  Value index = emitter.emit<SubOp>(last, body.getArgument(0));
  IRMapping mapping;
  SmallVector<ValuePair> products;
  SmallVector<Value> yields = cloneIteration(mapping, index, products);
  Block &forward = op.getBody().front();
  SmallVector<Value> results, seeds, inputs, all;
  for (auto [i, position] : llvm::enumerate(floats)) {
    results.push_back(yields[position + 1]);
    seeds.push_back(body.getArgument(i + 1));
    inputs.push_back(mapping.lookup(forward.getArgument(position + 1)));
  }
  seedScanned(index, yields, results, seeds);
  llvm::append_range(inputs, summed);
  for (OwnSlice slice : slices)
    inputs.push_back(mapping.lookup(slice.op.getResult()));
  if (failed(differentiate(builder, results, seeds, inputs, all)))
    return failure();
  for (auto [result, slice] : products) {
    result.replaceAllUsesWith(slice);
    std::replace(all.begin(), all.end(), result, slice);
  }
  ArrayRef<Value> found = all;
  size_t carried = floats.size(), sums = summed.size();
  return Found{llvm::to_vector(found.take_front(carried)),
               llvm::to_vector(found.slice(carried, sums)),
               llvm::to_vector(found.drop_front(carried + sums))};
}

/// Ends the body, and makes a loop of it with all that `sums` has of it.
LoopOp LoopGradients::finish(LoopOp draft, const Found &found,
                             IterationSums &sums) {
  OpBuilder &builder = emitter.builder;
  Block &body = draft.getBody().front();
  SmallVector<Value> inits(draft.getInits()), next;
  for (Value value : sums.getCarried())
    inits.push_back(emitter.splat(value, 0.0));
  SmallVector<Type> types(ValueRange(inits).getTypes());
  for (Value value : sums.getScanned())
    types.push_back(stackType(value.getType(), trips));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    next.push_back(createScalar(emitter, builder.getI1Type(), 1.0));
    for (auto [i, gradient] : llvm::enumerate(found.carried))
      next.push_back(orZeros(emitter, gradient, body.getArgument(i + 1)));
    for (Value value : sums.getCarried()) {
      Value sum = body.addArgument(value.getType(), emitter.loc);
      next.push_back(emitter.emit<AddOp>(sum, value));
    }
    llvm::append_range(next, sums.getScanned());
    builder.create<YieldOp>(emitter.loc, next);
  }
  auto loop = builder.create<LoopOp>(emitter.loc, types, draft.getTrips(),
                                     /*condition=*/Value(), inits,
                                     /*count=*/AffineMapAttr());
  loop.getBody().takeBody(draft.getBody());
  draft.erase();
  return loop;
}

/// The forward loop again, with what is needed of its iterations, stacked.
void LoopGradients::saveValues() {
  SmallVector<Saved> needed;
  for (Saved value : saved) {
    if (!value.stacked.use_empty())
      needed.push_back(value);
    else
      value.stacked.getDefiningOp()->erase();
  }
  if (needed.empty())
    return;
  SmallVector<Type> types(op.getResultTypes());
  for (const Saved &value : needed)
    types.push_back(value.stacked.getType());
  OpBuilder before(op);
  auto loop = before.create<LoopOp>(op.getLoc(), types, op.getTrips(),
                                    op.getCondition(), op.getInits(),
                                    op.getCountAttr());
  IRMapping mapping;
  op.getBody().cloneInto(&loop.getBody(), mapping);
  Operation *yield = loop.getBody().front().getTerminator();
  unsigned count = op.getNumResults();
  for (auto [i, value] : llvm::enumerate(needed)) {
    yield->insertOperands(yield->getNumOperands(), mapping.lookup(value.value));
    value.stacked.replaceAllUsesWith(loop.getResult(count + i));
    value.stacked.getDefiningOp()->erase();
  }
  op->replaceAllUsesWith(loop->getResults().take_front(count));
}

/// Adds the gradients of slices, stacked in the order of the backward loop, to
/// those of the values that they are slices of.
void LoopGradients::addSlices(ArrayRef<std::optional<unsigned>> places,
                              ValueRange stacks) {
  for (auto [slice, place] : llvm::zip_equal(slices, places)) {
    if (!place)
      continue;
    Value capture = slice.op.getX(), stacked = stacks[*place];
    auto type = cast<RankedTensorType>(capture.getType());
    SmallVector<int64_t> shape(type.getShape()), none(shape.size(), 0);
    SmallVector<int64_t> steps(shape.size(), 1), high = none;
    high.front() = shape.front() - trips;
    shape.front() = trips;
    auto own = RankedTensorType::get(shape, type.getElementType());
    stacked = emitter.emit<ReshapeOp>(own, stacked);
    if (!slice.isReversed) {
      MLIRContext *context = op.getContext();
      SmallVector<AffineExpr> starts(shape.size(),
                                     getAffineConstantExpr(0, context));
      starts.front() = getAffineConstantExpr(trips - 1, context);
      steps.front() = -1;
      stacked = emitter.emit<SliceOp>(own, stacked,
                                      makeSizeMap(starts, context), steps);
    }
    if (high.front() > 0) {
      auto scalar = RankedTensorType::get({}, type.getElementType());
      stacked = emitter.emit<PadOp>(stacked, emitter.splat(scalar, 0.0), none,
                                    high, none, PadMode::constant);
    }
    gradients.add(capture, stacked);
  }
}

LogicalResult LoopGradients::run() {
  LoopOp draft = createDraft();
  FailureOr<Found> found = fill(draft.getBody().front());
  if (failed(found))
    return failure();
  // Reductions of what products take wait for these.
  IterationSums sums(draft.getBody().front());
  SmallVector<Value> others;
  for (Value value : found->summed) {
    if (value && sums.hasProduct(value))
      sums.collect(value);
    else if (value)
      others.push_back(value);
  }
  SmallVector<std::optional<unsigned>> places;
  for (Value value : found->slices)
    places.push_back(value ? std::optional(sums.scan(skipReshapes(value)))
                           : std::nullopt);
  for (Value value : others)
    sums.collect(value);
  LoopOp loop = finish(draft, *found, sums);
  ValueRange results = loop.getResults();
  for (auto [i, position] : llvm::enumerate(floats))
    gradients.add(op.getInits()[position], results[i]);
  results = results.drop_front(floats.size());
  for (auto [capture, value] : llvm::zip_equal(summed, found->summed))
    if (value)
      gradients.add(capture, sums.emit(emitter, value, results));
  addSlices(places, results.drop_front(sums.getCarried().size()));
  eraseUnused(loop.getBody().front());
  saveValues();
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
                                     /*condition=*/Value(), inits,
                                     /*count=*/AffineMapAttr());
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
  if (!getBodySymbols().empty())
    return emitOpError("that changes extents has no derivative");
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

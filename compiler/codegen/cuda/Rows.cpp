#include "compiler/codegen/cuda/Rows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

/// Elements of a row that a thread may hold in registers.
static constexpr int64_t kMaxResident = 32;
/// Elements of all inputs that a thread may load for them.
static constexpr int64_t kMaxLoaded = 4 * kMaxResident;
static constexpr int64_t kMaxTeam = 512;
static constexpr int64_t kBlockThreads = 256;
/// Reductions of columns beside which a thread holds elements, and takes whole
/// vectors.
static constexpr size_t kFewReductions = 8;

// --- The launch

RowLaunch::RowLaunch(FusedOp region, ArrayRef<SymbolAttr> symbols)
    : rows(region, symbols) {
  chooseLanes(region);
  chooseTeam(symbols);
  chooseResident(region);
}

bool RowLaunch::hasManyColumns() const {
  return !hasLanes() && rows.reductions.size() > kFewReductions;
}

void RowLaunch::chooseLanes(FusedOp region) {
  SmallVector<Type> types;
  for (Type type : getElementTypes(region))
    types.push_back(type);
  lanes = chooseVector(types, rows.space.back());
  if (hasManyColumns())
    lanes = (lanes + 1) / 2;
}

AffineExpr RowLaunch::getSteps() const {
  AffineExpr count =
      getNumElements(rows.getReducedExtents(), rows.space.back().getContext());
  return hasLanes() ? count.floorDiv(lanes) : count;
}

AffineExpr RowLaunch::getBlocks() const {
  AffineExpr count =
      getNumElements(rows.getRowExtents(), rows.space.back().getContext());
  if (hasLanes())
    return count.ceilDiv(across);
  return count * rows.space.back().floorDiv(lanes).ceilDiv(across);
}

static int64_t roundUp(int64_t count, int64_t least, int64_t most) {
  int64_t power = llvm::PowerOf2Ceil(std::max<int64_t>(count, 1));
  return std::clamp(power, least, most);
}

void RowLaunch::chooseTeam(ArrayRef<SymbolAttr> symbols) {
  int64_t steps =
      std::max<int64_t>(1, codegen::getMaxCount(getSteps(), symbols));
  if (hasLanes()) {
    // A few vectors for each thread, and a warp before a block.
    constexpr int64_t kVectors = 4;
    team = roundUp(steps, 1, kWarp);
    if (steps > kVectors * kWarp)
      team = roundUp(steps / kVectors, kWarp, kMaxTeam);
    across = std::max<int64_t>(1, kBlockThreads / 2 / team);
    if (team > kWarp)
      across = 1;
  } else {
    AffineExpr columns = rows.space.back().floorDiv(lanes);
    across = roundUp(codegen::getMaxCount(columns, symbols), 1, kWarp);
    team = roundUp(steps, std::max<int64_t>(1, kWarp / across),
                   kBlockThreads / across);
  }
}

void RowLaunch::chooseResident(FusedOp region) {
  auto known = getConstant(getSteps());
  int64_t vectors = known ? (*known + team - 1) / team : 0;
  int64_t inputs = llvm::count_if(region.getInputs(), [&](Value input) {
    return getExtents(input).size() == rows.space.size();
  });
  if (vectors * lanes <= kMaxResident &&
      vectors * lanes * inputs <= kMaxLoaded && !hasManyColumns())
    resident = vectors;
}

FailureOr<LaunchPlan> planRows(FusedOp region, ArrayRef<SymbolAttr> symbols) {
  // Reductions of axes of extent 1 are gone after simplification.
  if (llvm::none_of(region.getBody().front(),
                    [](Operation &op) { return isOnePerRow(&op); }))
    return planPointwise(region, symbols);
  RowLaunch launch(region, symbols);
  return LaunchPlan{launch.getBlocks(), launch.getThreads()};
}

// --- The body

namespace {

class RowEmitter {
public:
  RowEmitter(KernelBuilder &b, DeviceFrame &frame)
      : b(b), frame(frame), launch(frame.region, frame.symbols) {}
  void emit();

private:
  using Indices = SmallVector<Value>;
  using Ops = ArrayRef<Operation *>;
  /// A vector of a thread: the indices of its first element in the space, the
  /// position of that in the row; whether there is one (null: there is).
  struct Step {
    Indices at;
    Value position, isInside;
  };
  /// For each of some reductions its partials, one a lane.
  using LanePartials = SmallVector<Partial>;
  using Partials = SmallVector<LanePartials>;

  void emitRow();
  void emitStage(Ops ops);
  void emitStores();
  Step getStep(Value number);
  Indices getElement(const Step &step, int64_t lane);
  Step getResidentStep(int64_t i);
  void forSteps(function_ref<void(const Step &)> body);
  Partials walk(Ops ops);
  void accumulate(const Step &step, Ops ops, Partials &partials);
  void combineLanes(Ops ops, Partials &partials);
  void combineWarp(Ops ops, Partials &partials);
  void combineWarps(Ops ops, Partials &partials);
  void combineThroughShared(Ops ops, MutableArrayRef<LanePartials> partials);
  int64_t getSharedCount() const {
    return getWarps() * getStride() * getRowLanes();
  }
  int64_t getSharedBytes(Operation *op);
  Indices getRowIndices(int64_t lane);

  Value size(AffineExpr expression) { return frame.size(b, expression); }
  Indices sizes(ArrayRef<AffineExpr> extents) {
    return llvm::map_to_vector(extents, [&](AffineExpr e) { return size(e); });
  }
  /// How far apart the threads of a team are.
  int64_t getStride() const { return launch.hasLanes() ? 1 : launch.across; }
  /// Over which a team is spread.
  int64_t getWarps() const {
    return std::max<int64_t>(1, launch.team * getStride() / kWarp);
  }
  /// Elements of a row's result that a thread holds.
  int64_t getRowLanes() const { return launch.hasLanes() ? 1 : launch.lanes; }
  void when(Value condition, function_ref<void()> then) {
    condition ? b.when(condition, then) : then();
  }
  Value both(Value x, Value y) {
    if (!x || !y)
      return x ? x : y;
    return b.create<arith::AndIOp>(x, y);
  }

  void placeTeams();
  void placeColumns();

  KernelBuilder &b;
  DeviceFrame &frame;
  RowLaunch launch;
  Indices row;  // of the kept axes, without columns
  Value member; // of the team
  Value column; // of columns: the first of the thread's
  Value isOurs; // what the thread would store is inside; null: it is
};

} // namespace

// --- Places

/// A warp whose rows are all outside has nothing to do. One that is partly
/// outside computes its last row again, for the shuffles.
void RowEmitter::placeTeams() {
  int64_t perWarp = std::max<int64_t>(1, kWarp / launch.team);
  Value rows =
      size(getNumElements(launch.rows.getRowExtents(), b.getContext()));
  Value team = b.index(launch.team);
  member = b.rem(frame.thread, team);
  Value first = b.mul(frame.block, b.index(launch.across));
  Value number = b.add(first, b.div(frame.thread, team));
  auto emitAt = [&](Value number) {
    row = b.delinearize(number, sizes(launch.rows.getRowExtents()));
    emitRow();
  };
  if (launch.across == 1)
    return emitAt(number);
  Value warp = b.div(frame.thread, b.index(kWarp));
  Value firstOfWarp = b.add(first, b.mul(warp, b.index(perWarp)));
  b.when(b.less(firstOfWarp, rows), [&] {
    if (perWarp == 1)
      return emitAt(number);
    isOurs = b.less(number, rows);
    emitAt(b.min(number, b.sub(rows, b.index(1))));
  });
}

void RowEmitter::placeColumns() {
  AffineExpr extent = launch.rows.space.back().floorDiv(launch.lanes);
  Value across = b.index(launch.across), vectors = size(extent);
  member = b.div(frame.thread, across);
  Indices extents = sizes(launch.rows.getRowExtents());
  extents.push_back(size(extent.ceilDiv(launch.across)));
  row = b.delinearize(frame.block, extents);
  Value vector =
      b.add(b.mul(row.pop_back_val(), across), b.rem(frame.thread, across));
  if (!extent.isMultipleOf(launch.across)) {
    isOurs = b.less(vector, vectors);
    vector = b.min(vector, b.sub(vectors, b.index(1)));
  }
  column = b.mul(vector, b.index(launch.lanes));
  emitRow();
}

/// The indices of an element of a result with one a row.
RowEmitter::Indices RowEmitter::getRowIndices(int64_t lane) {
  Indices at(row);
  if (!launch.hasLanes())
    at.push_back(b.add(column, b.index(lane)));
  return at;
}

RowEmitter::Step RowEmitter::getStep(Value number) {
  Indices extents = sizes(launch.rows.getReducedExtents());
  Value lanes = b.index(launch.hasLanes() ? launch.lanes : 1);
  extents.back() = b.div(extents.back(), lanes);
  Indices reduced = b.delinearize(number, extents);
  reduced.back() = b.mul(reduced.back(), lanes);
  Indices kept = getRowIndices(0), at;
  size_t k = 0, r = 0;
  for (bool isReduced : launch.rows.isReduced)
    at.push_back(isReduced ? reduced[r++] : kept[k++]);
  return {at, b.mul(number, lanes), Value()};
}

RowEmitter::Indices RowEmitter::getElement(const Step &step, int64_t lane) {
  Indices at(step.at);
  at.back() = b.add(at.back(), b.index(lane));
  return at;
}

/// Threads beyond the last vector compute it again.
RowEmitter::Step RowEmitter::getResidentStep(int64_t i) {
  int64_t count = *getConstant(launch.getSteps());
  Value number = b.add(member, b.index(i * launch.team));
  if ((i + 1) * launch.team <= count)
    return getStep(number);
  Value isInside = b.less(number, b.index(count));
  Step step = getStep(b.min(number, b.index(count - 1)));
  step.isInside = isInside;
  return step;
}

void RowEmitter::forSteps(function_ref<void(const Step &)> body) {
  for (int64_t i = 0; i < launch.resident; ++i)
    body(getResidentStep(i));
  if (!launch.resident)
    b.loop(member, size(launch.getSteps()), b.index(launch.team),
           [&](Value number) { body(getStep(number)); });
}

// --- Reductions

void RowEmitter::accumulate(const Step &step, Ops ops, Partials &partials) {
  for (auto [op, lanes] : llvm::zip_equal(ops, partials))
    for (auto [lane, partial] : llvm::enumerate(lanes)) {
      Combiner combiner(b, op);
      Value element = frame.elements.element(b, frame.loc, op->getOperand(0),
                                             getElement(step, lane));
      Value index = launch.hasLanes() ? b.add(step.position, b.index(lane))
                                      : step.position;
      Partial sum =
          combiner.combine(partial, combiner.getElement(element, index));
      partial =
          step.isInside ? combiner.select(step.isInside, sum, partial) : sum;
    }
}

static SmallVector<Value> flatten(ArrayRef<SmallVector<Partial>> partials) {
  SmallVector<Value> values;
  for (const auto &lanes : partials)
    for (const Partial &partial : lanes) {
      values.push_back(partial.value);
      if (partial.index)
        values.push_back(partial.index);
    }
  return values;
}

/// Puts `values` where flatten took them.
static void restore(MutableArrayRef<SmallVector<Partial>> partials,
                    ValueRange values) {
  for (auto &lanes : partials)
    for (Partial &partial : lanes) {
      partial.value = values.front();
      values = values.drop_front();
      if (!partial.index)
        continue;
      partial.index = values.front();
      values = values.drop_front();
    }
}

RowEmitter::Partials RowEmitter::walk(Ops ops) {
  Partials partials;
  for (Operation *op : ops)
    partials.emplace_back(launch.lanes, Combiner(b, op).getNeutral());
  for (int64_t i = 0; i < launch.resident; ++i)
    accumulate(getResidentStep(i), ops, partials);
  if (launch.resident)
    return partials;
  SmallVector<Value> values =
      b.loop(member, size(launch.getSteps()), b.index(launch.team),
             flatten(partials), [&](Value number, ValueRange carried) {
               restore(partials, carried);
               accumulate(getStep(number), ops, partials);
               return flatten(partials);
             });
  restore(partials, values);
  return partials;
}

/// The elements of a vector: halves with halves.
void RowEmitter::combineLanes(Ops ops, Partials &partials) {
  for (auto [op, lanes] : llvm::zip_equal(ops, partials))
    for (; lanes.size() > 1; lanes.resize(lanes.size() / 2))
      for (size_t i = 0; i < lanes.size() / 2; ++i)
        lanes[i] =
            Combiner(b, op).combine(lanes[i], lanes[i + lanes.size() / 2]);
}

void RowEmitter::combineWarp(Ops ops, Partials &partials) {
  int64_t threads = std::min(kWarp, launch.team * getStride());
  for (int64_t mask = threads / 2; mask >= getStride(); mask /= 2)
    for (auto [op, lanes] : llvm::zip_equal(ops, partials))
      for (Partial &partial : lanes) {
        Combiner combiner(b, op);
        partial = combiner.combine(partial, combiner.shuffle(partial, mask));
      }
}

int64_t RowEmitter::getSharedBytes(Operation *op) {
  Combiner combiner(b, op);
  auto getBytes = [&](Type type) -> int64_t {
    return llvm::alignTo(getSharedCount() * codegen::getStorageBytes(type),
                         kAccessBytes);
  };
  return getBytes(combiner.getValueType()) +
         (combiner.hasIndex() ? getBytes(b.getI64Type()) : 0);
}

/// As many reductions at a time as shared memory holds.
void RowEmitter::combineWarps(Ops ops, Partials &partials) {
  if (getWarps() == 1)
    return;
  for (size_t first = 0, end = 0; first < ops.size(); first = end) {
    if (!frame.hasShared(getSharedBytes(ops[first])))
      frame.reuseShared(b);
    int64_t bytes = 0;
    for (end = first; end < ops.size(); ++end) {
      bytes += getSharedBytes(ops[end]);
      if (end > first && !frame.hasShared(bytes))
        break;
    }
    combineThroughShared(ops.slice(first, end - first),
                         MutableArrayRef(partials).slice(first, end - first));
  }
}

void RowEmitter::combineThroughShared(Ops ops,
                                      MutableArrayRef<LanePartials> partials) {
  int64_t stride = getStride(), warps = getWarps(), lanes = getRowLanes();
  int64_t count = getSharedCount();
  SmallVector<Buffer> values, indices;
  for (Operation *op : ops) {
    Combiner combiner(b, op);
    values.push_back(frame.allocateShared(b, combiner.getValueType(), count));
    indices.push_back(combiner.hasIndex()
                          ? frame.allocateShared(b, b.getI64Type(), count)
                          : Buffer());
  }
  Location loc = frame.loc;
  Value inWarp = b.rem(frame.thread, b.index(kWarp));
  Value warp = b.div(frame.thread, b.index(kWarp));
  auto getPlace = [&](Value warp, Value thread, int64_t lane) {
    Value place = b.add(b.mul(warp, b.index(stride)), thread);
    return b.add(b.mul(place, b.index(lanes)), b.index(lane));
  };
  b.when(b.less(inWarp, b.index(stride)), [&] {
    for (size_t i = 0; i < ops.size(); ++i)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const Partial &partial = partials[i][lane];
        Value place = getPlace(warp, inWarp, lane);
        values[i].store(b, loc, partial.value, place);
        if (indices[i])
          indices[i].store(
              b, loc,
              b.create<arith::IndexCastOp>(b.getI64Type(), partial.index),
              place);
      }
  });
  emitBarrier(b);
  Value first = b.rem(frame.thread, b.index(stride));
  for (size_t i = 0; i < ops.size(); ++i)
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (int64_t w = 0; w < warps; ++w) {
        Value place = getPlace(b.index(w), first, lane);
        Partial next{values[i].load(b, loc, place), Value()};
        if (indices[i])
          next.index = b.create<arith::IndexCastOp>(
              b.getIndexType(), indices[i].load(b, loc, place));
        Partial &sum = partials[i][lane];
        sum = w ? Combiner(b, ops[i]).combine(sum, next) : next;
      }
}

void RowEmitter::emitStage(Ops ops) {
  Partials partials = walk(ops);
  if (launch.hasLanes())
    combineLanes(ops, partials);
  combineWarp(ops, partials);
  combineWarps(ops, partials);
  for (auto [op, lanes] : llvm::zip_equal(ops, partials))
    for (auto [lane, partial] : llvm::enumerate(lanes))
      frame.elements.define(op->getResult(0), getRowIndices(lane),
                            Combiner(b, op).getResult(partial, frame.elements));
}

// --- Results

void RowEmitter::emitStores() {
  const codegen::RowPlan &rows = launch.rows;
  if (!rows.wholeResults.empty())
    forSteps([&](const Step &step) {
      when(both(step.isInside, isOurs), [&] {
        storeResults(b, frame, rows.wholeResults, launch.lanes,
                     [&](int64_t lane) { return getElement(step, lane); });
      });
    });
  if (rows.rowResults.empty())
    return;
  when(both(isOurs, b.equal(member, b.index(0))), [&] {
    storeResults(b, frame, rows.rowResults, getRowLanes(),
                 [&](int64_t lane) { return getRowIndices(lane); });
  });
}

void RowEmitter::emitRow() {
  for (unsigned stage = 0; stage < launch.rows.stageCount; ++stage) {
    SmallVector<Operation *> ops;
    for (const codegen::Reduction &reduction : launch.rows.reductions)
      if (reduction.stage == stage)
        ops.push_back(reduction.op);
    emitStage(ops);
  }
  // Threads without a vector of their own have read one of another's, which
  // may be overwritten in its place. More warps have met at a barrier.
  if (getWarps() == 1 && frame.region->hasAttr(codegen::kInPlaceAttr))
    emitWarpBarrier(b);
  emitStores();
}

void RowEmitter::emit() { launch.hasLanes() ? placeTeams() : placeColumns(); }

LogicalResult emitRows(KernelBuilder &b, DeviceFrame &frame) {
  if (llvm::none_of(frame.getBody(),
                    [](Operation &op) { return isOnePerRow(&op); }))
    return emitPointwise(b, frame);
  RowEmitter(b, frame).emit();
  return success();
}

} // namespace tcc::cuda

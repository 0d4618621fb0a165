#include "compiler/codegen/cuda/kernels/Rows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

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
  void addToPanel();
  void storePanel(const Indices &panel, Value team);
  /// Vectors of columns of all of a panel's reductions have one number.
  Operation *getPanelReduction(size_t vector) const {
    return launch.rows.panelReductions[vector / launch.resident];
  }
  MutableArrayRef<Partial> getSums(size_t vector) {
    return MutableArrayRef(panelSums[vector / launch.resident])
        .slice(vector % launch.resident * launch.lanes, launch.lanes);
  }
  Value getSumPlace(Value team, int64_t lane);
  Buffer shareSums(size_t vector, Value team);
  void combineTeams(size_t vector, const Buffer &shared);
  void storeSums(const Indices &panel, size_t vector);
  void emitStage(Ops ops);
  void emitStores();
  Step getStep(Value number);
  Indices getElement(const Step &step, int64_t lane);
  Indices getReduced(Value number);
  /// The number of a resident vector, and whether there is one.
  std::pair<Value, Value> getResident(int64_t i);
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
  void placePanel();

  KernelBuilder &b;
  DeviceFrame &frame;
  RowLaunch launch;
  Indices row;  // of the kept axes, without columns
  Value member; // of the team
  Value column; // of columns: the first of the thread's
  Value isOurs; // what the thread would store is inside; null: it is
  /// Sums of a thread's columns: its resident vectors, one after the other.
  Partials panelSums;
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

/// The indices of the first element of a vector in the reduced axes.
RowEmitter::Indices RowEmitter::getReduced(Value number) {
  Indices extents = sizes(launch.rows.getReducedExtents());
  Value lanes = b.index(launch.hasLanes() ? launch.lanes : 1);
  extents.back() = b.div(extents.back(), lanes);
  Indices reduced = b.delinearize(number, extents);
  reduced.back() = b.mul(reduced.back(), lanes);
  return reduced;
}

RowEmitter::Step RowEmitter::getStep(Value number) {
  Indices reduced = getReduced(number), kept = getRowIndices(0), at;
  size_t k = 0, r = 0;
  for (bool isReduced : launch.rows.isReduced)
    at.push_back(isReduced ? reduced[r++] : kept[k++]);
  Value lanes = b.index(launch.hasLanes() ? launch.lanes : 1);
  return {at, b.mul(number, lanes), Value()};
}

RowEmitter::Indices RowEmitter::getElement(const Step &step, int64_t lane) {
  Indices at(step.at);
  at.back() = b.add(at.back(), b.index(lane));
  return at;
}

/// Threads beyond the last vector compute it again.
std::pair<Value, Value> RowEmitter::getResident(int64_t i) {
  int64_t count = *getConstant(launch.getSteps());
  Value number = b.add(member, b.index(i * launch.team));
  if ((i + 1) * launch.team <= count)
    return {number, Value()};
  return {b.min(number, b.index(count - 1)), b.less(number, b.index(count))};
}

RowEmitter::Step RowEmitter::getResidentStep(int64_t i) {
  auto [number, isInside] = getResident(i);
  Step step = getStep(number);
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
  addToPanel();
  // Threads without a vector of their own have read one of another's, which
  // may be overwritten in its place. More warps have met at a barrier, but may
  // have read more for a panel's sums since.
  bool isInPlace = frame.region->hasAttr(kInPlaceAttr);
  if (isInPlace && getWarps() == 1)
    emitWarpBarrier(b);
  else if (isInPlace && launch.rows.hasPanels())
    emitBarrier(b);
  emitStores();
}

// --- Panels

/// A block takes a panel, its teams the rows in turns.
void RowEmitter::placePanel() {
  const codegen::RowPlan &rows = launch.rows;
  Value size = b.index(launch.team), team = b.div(frame.thread, size);
  member = b.rem(frame.thread, size);
  Indices panel = b.delinearize(frame.block, sizes(rows.getPanelExtents()));
  for (Operation *op : rows.panelReductions)
    panelSums.emplace_back(launch.resident * launch.lanes,
                           Combiner(b, op).getNeutral());
  SmallVector<Value> sums = b.loop(
      team, b.index(rows.rowsPerTask), b.index(launch.across),
      flatten(panelSums), [&](Value number, ValueRange carried) {
        restore(panelSums, carried);
        row = panel;
        row.append(b.delinearize(number, sizes(rows.getPanelRowExtents())));
        emitRow();
        // The next row's sums take the places of this one's.
        if (getWarps() > 1)
          emitBarrier(b);
        return flatten(panelSums);
      });
  restore(panelSums, sums);
  storePanel(panel, team);
}

/// Before anything is stored: it may take the place of what is read here.
void RowEmitter::addToPanel() {
  for (auto [op, sums] :
       llvm::zip_equal(launch.rows.panelReductions, panelSums))
    for (int64_t i = 0; i < launch.resident; ++i) {
      Step step = getResidentStep(i);
      for (int64_t lane = 0; lane < launch.lanes; ++lane) {
        Value x = frame.elements.element(b, frame.loc, op->getOperand(0),
                                         getElement(step, lane));
        Partial &sum = sums[i * launch.lanes + lane];
        sum = Combiner(b, op).combine(sum, {x, Value()});
      }
    }
}

/// The sums of the teams, in order: each vector of columns by one of the teams,
/// as many at a time as shared memory holds.
void RowEmitter::storePanel(const Indices &panel, Value team) {
  size_t count = panelSums.size() * launch.resident;
  SmallVector<Buffer> shared(count);
  for (size_t first = 0, end = 0; first < count; first = end) {
    if (launch.across == 1) {
      storeSums(panel, end++);
      continue;
    }
    if (first > 0)
      frame.reuseShared(b);
    while (end < count && (shared[end] = shareSums(end, team)))
      ++end;
    emitBarrier(b);
    for (size_t i = first; i < end; ++i)
      b.when(b.equal(team, b.index(i % launch.across)), [&] {
        combineTeams(i, shared[i]);
        storeSums(panel, i);
      });
  }
}

/// Where the sum of a lane of a thread lies.
Value RowEmitter::getSumPlace(Value team, int64_t lane) {
  Value thread = b.add(b.mul(team, b.index(launch.team)), member);
  return b.add(b.mul(thread, b.index(launch.lanes)), b.index(lane));
}

/// No buffer if shared memory has no room for another.
Buffer RowEmitter::shareSums(size_t vector, Value team) {
  Type type = Combiner(b, getPanelReduction(vector)).getValueType();
  int64_t count = launch.getThreads() * launch.lanes;
  if (!frame.hasShared(count * codegen::getStorageBytes(type)))
    return {};
  Buffer shared = frame.allocateShared(b, type, count);
  for (auto [lane, sum] : llvm::enumerate(getSums(vector)))
    shared.store(b, frame.loc, sum.value, getSumPlace(team, lane));
  return shared;
}

void RowEmitter::combineTeams(size_t vector, const Buffer &shared) {
  Combiner combiner(b, getPanelReduction(vector));
  auto load = [&](Value team) {
    SmallVector<Value> sums;
    for (int64_t lane = 0; lane < launch.lanes; ++lane)
      sums.push_back(shared.load(b, frame.loc, getSumPlace(team, lane)));
    return sums;
  };
  SmallVector<Value> all =
      b.loop(b.index(1), b.index(launch.across), b.index(1), load(b.index(0)),
             [&](Value team, ValueRange carried) {
               SmallVector<Value> next = load(team);
               for (auto [sum, value] : llvm::zip_equal(carried, next))
                 value =
                     combiner.combine({sum, Value()}, {value, Value()}).value;
               return next;
             });
  for (auto [sum, value] : llvm::zip_equal(getSums(vector), all))
    sum.value = value;
}

void RowEmitter::storeSums(const Indices &panel, size_t vector) {
  Operation *op = getPanelReduction(vector);
  auto [number, isInside] = getResident(vector % launch.resident);
  Indices first(panel);
  first.append(getReduced(number));
  auto at = [&](int64_t lane) {
    Indices at(first);
    at.back() = b.add(at.back(), b.index(lane));
    return at;
  };
  when(isInside, [&] {
    for (auto [lane, sum] : llvm::enumerate(getSums(vector)))
      frame.elements.define(op->getResult(0), at(lane),
                            Combiner(b, op).getResult(sum, frame.elements));
    storeResults(b, frame, launch.rows.panelResults[vector / launch.resident],
                 launch.lanes, at);
  });
}

void RowEmitter::emit() {
  if (launch.rows.hasPanels())
    placePanel();
  else
    launch.hasLanes() ? placeTeams() : placeColumns();
}

LogicalResult emitRows(KernelBuilder &b, DeviceFrame &frame) {
  if (llvm::none_of(frame.getBody(),
                    [](Operation &op) { return isOnePerRow(&op); }))
    return emitPointwise(b, frame);
  RowEmitter(b, frame).emit();
  return success();
}

} // namespace tcc::cuda

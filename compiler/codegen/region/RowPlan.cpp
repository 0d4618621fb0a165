#include "compiler/codegen/region/RowPlan.h"
#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/codegen/region/SimplifyRegion.h"
#include "compiler/passes/graph/fusion/Cost.h"
#include "runtime/base/Alignment.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

/// Values that cost less are computed again in each stage.
static constexpr double kKeptFlops = 6;
/// Kept values of a row stay in the second-level cache.
static constexpr int64_t kMaxKeptBytes = 256 << 10;
/// Columns of a task: whole lines of the cache.
static constexpr int64_t kMaxColumns = 256;
static constexpr int64_t kLeastColumns = 16;
/// Elements that are walked over again stay in the second-level cache.
static constexpr int64_t kMaxWalkedBytes = 1 << 20;
/// Column kernels of fewer tasks have narrower ones.
static constexpr int64_t kLeastColumnTasks = 16;

// --- Reductions

static Extents dropAxes(const Extents &extents, ArrayRef<int64_t> axes) {
  Extents kept;
  for (auto [i, extent] : llvm::enumerate(extents))
    if (!llvm::is_contained(axes, int64_t(i)))
      kept.push_back(extent);
  return kept;
}

static int64_t getRank(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
}

bool reducesLastAxis(Operation *op) {
  return llvm::is_contained(*getReducedAxes(op), getRank(op) - 1);
}

/// The reductions of `body`: of rows, and of the columns of panels beside them.
static std::pair<SmallVector<Operation *>, SmallVector<Operation *>>
sortReductions(Block &body) {
  SmallVector<Operation *> lanes, columns;
  for (Operation &op : body)
    if (isOnePerRow(&op))
      (reducesLastAxis(&op) ? lanes : columns).push_back(&op);
  if (lanes.empty())
    std::swap(lanes, columns);
  return {lanes, columns};
}

/// Lets `op` reduce `axes` of its operand in the extents of `space`.
static LogicalResult alignReduction(Operation *op, Value space,
                                    ArrayRef<int64_t> axes) {
  Value x = op->getOperand(0), result = op->getResult(0);
  auto type = makeTensorType(getExtents(space), getElementTypeOrSelf(x));
  if (x.getType() == type && ArrayRef(*getReducedAxes(op)) == axes)
    return success();
  if (!isa<ReduceOp>(op))
    return op->emitOpError("does not reduce what its kernel reduces");
  OpBuilder b(op);
  Value aligned = b.create<ReduceOp>(op->getLoc(), cast<ReduceOp>(op).getKind(),
                                     reshapeTo(b, x, type), axes);
  result.replaceAllUsesWith(reshapeTo(b, aligned, result.getType()));
  op->erase();
  return success();
}

static void alignResults(Block &body, const Extents &space,
                         const Extents &row) {
  MLIRContext *context = body.getParentOp()->getContext();
  SmallVector<Operation *> ofPanels = sortReductions(body).second;
  OpBuilder b(body.getTerminator());
  for (OpOperand &yielded : body.getTerminator()->getOpOperands()) {
    AffineExpr count = getNumElements(getExtents(yielded.get()), context);
    bool isWhole = isEqual(count, getNumElements(space, context));
    Type elementType = getElementTypeOrSelf(yielded.get());
    Type type = makeTensorType(isWhole ? space : row, elementType);
    Value source = yielded.get();
    while (auto reshape = source.getDefiningOp<ReshapeOp>())
      source = reshape.getX();
    bool isOfPanel = llvm::is_contained(ofPanels, source.getDefiningOp());
    yielded.set(isOfPanel ? source : reshapeTo(b, yielded.get(), type));
  }
}

LogicalResult alignReductions(Block &body) {
  auto [lanes, columns] = sortReductions(body);
  if (lanes.empty())
    return success();
  // The shape of more axes can say everything that the others can.
  auto findWidest = [](ArrayRef<Operation *> ops) {
    return *llvm::max_element(ops, [](Operation *a, Operation *b) {
      return getRank(a) < getRank(b);
    });
  };
  Operation *widest = findWidest(columns.empty() ? lanes : columns);
  Value space = widest->getOperand(0);
  SmallVector<int64_t> axes = *getReducedAxes(widest), laneAxes = axes;
  Extents extents = getExtents(space);
  if (!columns.empty())
    laneAxes =
        llvm::to_vector(llvm::seq<int64_t>(axes.back() + 1, extents.size()));
  for (Operation *op : columns)
    if (failed(alignReduction(op, space, axes)))
      return failure();
  for (Operation *op : lanes)
    if (failed(alignReduction(op, space, laneAxes)))
      return failure();
  alignResults(body, extents, dropAxes(extents, laneAxes));
  return success();
}

// --- The plan

RowPlan::RowPlan(FusedOp region, ArrayRef<SymbolAttr> symbols,
                 int64_t leastLanes) {
  Block &body = region.getBody().front();
  findReductions(body);
  sortResults(body);
  chooseGroups(leastLanes);
  chooseTasks(symbols);
  keepCostlyValues(body, symbols);
  placeAccumulators(symbols);
  if (!hasLanes())
    findRowValues(body);
}

void RowPlan::findReductions(Block &body) {
  panelReductions = sortReductions(body).second;
  panelResults.resize(panelReductions.size());
  llvm::DenseMap<Operation *, unsigned> stages; // needed before the op
  for (Operation &op : body) {
    unsigned stage = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        stage = std::max(stage, stages[producer] + isOnePerRow(producer));
    stages[&op] = stage;
    if (!isOnePerRow(&op) || llvm::is_contained(panelReductions, &op))
      continue;
    reductions.push_back({&op, stage});
    stageCount = std::max(stageCount, stage + 1);
    space = getExtents(op.getOperand(0));
    isReduced.assign(space.size(), false);
    SmallVector<int64_t> axes = *getReducedAxes(&op);
    for (int64_t axis : axes)
      isReduced[axis] = true;
  }
}

bool RowPlan::isInSpace(Value value) const {
  return getExtents(value) == space;
}

void RowPlan::sortResults(Block &body) {
  for (auto [i, yielded] :
       llvm::enumerate(body.getTerminator()->getOperands())) {
    auto *panel = llvm::find(panelReductions, yielded.getDefiningOp());
    if (panel != panelReductions.end())
      panelResults[panel - panelReductions.begin()].push_back(i);
    else
      (isInSpace(yielded) ? wholeResults : rowResults).push_back(i);
  }
}

Extents RowPlan::getPanelExtents() const {
  int64_t first = getReducedAxes(panelReductions.front())->front();
  return Extents(ArrayRef(space).take_front(first));
}

Extents RowPlan::getPanelRowExtents() const {
  Extents extents;
  SmallVector<int64_t> axes = *getReducedAxes(panelReductions.front());
  for (int64_t axis : axes)
    extents.push_back(space[axis]);
  return extents;
}

Extents RowPlan::getRowExtents() const {
  Extents kept;
  for (auto [axis, extent] : llvm::enumerate(space))
    if (!isReduced[axis])
      kept.push_back(extent);
  if (!hasLanes())
    kept.pop_back();
  return kept;
}

Extents RowPlan::getReducedExtents() const {
  Extents reduced;
  for (auto [axis, extent] : llvm::enumerate(space))
    if (isReduced[axis])
      reduced.push_back(extent);
  if (hasGroups())
    reduced.pop_back();
  return reduced;
}

AffineExpr RowPlan::getColumns() const {
  return hasGroups() ? space[space.size() - 2] * groupSize : space.back();
}

void RowPlan::chooseGroups(int64_t leastLanes) {
  std::optional<int64_t> extent = getConstant(space.back());
  if (hasPanels() || space.size() < 3 || !extent || *extent >= leastLanes)
    return;
  ArrayRef<bool> axes = isReduced;
  if (axes.back() && !axes.drop_back().back() &&
      llvm::is_contained(axes.drop_back(2), true))
    groupSize = *extent;
}

/// A task has whole groups. If it walks more than once, its elements stay near
/// and others find work too.
void RowPlan::chooseColumns(ArrayRef<SymbolAttr> symbols) {
  int64_t all = std::max(groupSize, getMaxCount(getColumns(), symbols));
  columns = std::min(kMaxColumns / groupSize * groupSize, all);
  if (stageCount + !wholeResults.empty() < 2)
    return;
  double rows = getMaxCount(getRowExtents(), symbols);
  double length = getMaxCount(getReducedExtents(), symbols);
  auto isGood = [&](int64_t columns) {
    return length * columns * 4 <= kMaxWalkedBytes &&
           rows * llvm::divideCeil(all, columns) >= kLeastColumnTasks;
  };
  for (int64_t fewer = columns; !isGood(columns); columns = fewer) {
    fewer = columns / 2 / groupSize * groupSize;
    if (fewer < kLeastColumns)
      return;
  }
}

void RowPlan::chooseTasks(ArrayRef<SymbolAttr> symbols) {
  int64_t rowSize = getMaxCount(getReducedExtents(), symbols);
  if (hasLanes()) {
    rowsPerTask = hasPanels() ? getMaxCount(getPanelRowExtents(), symbols)
                              : getRowsPerTask(rowSize);
    assert((!hasPanels() || (rowsPerTask > 0 && rowSize > 0)) &&
           "panels have rows and columns");
    return;
  }
  chooseColumns(symbols);
}

AffineExpr RowPlan::getTasks() const {
  AffineExpr rows = getNumElements(getRowExtents(), space.front().getContext());
  if (hasLanes())
    return rows.ceilDiv(rowsPerTask);
  return rows * getColumns().ceilDiv(columns);
}

static int64_t getScalarBytes(Value value) {
  Type type = getElementTypeOrSelf(value);
  return isa<FloatType>(type) && !type.isF64() ? 4 : getStorageBytes(type);
}

namespace {

/// The stages in which each value is computed, from the results upwards.
class StageFinder {
public:
  StageFinder(const RowPlan &plan);

  unsigned getStages(Operation *op) const { return stages.lookup(op); }
  /// From now on `op` is computed in its first stage alone.
  void keep(Operation *op) {
    unsigned mask = stages[op];
    stages[op] = mask & -mask;
  }
  /// Counts what reads `op`, all of which have been seen.
  void visit(Operation *op);

private:
  llvm::DenseMap<Operation *, unsigned> stages;
  llvm::DenseMap<Operation *, unsigned> own;
  unsigned lastStage;
};

} // namespace

StageFinder::StageFinder(const RowPlan &plan) : lastStage(plan.stageCount) {
  for (const Reduction &reduction : plan.reductions)
    own[reduction.op] = 1u << std::min(31u, reduction.stage);
  for (Operation *op : plan.panelReductions)
    own[op] = 1u << std::min(31u, lastStage);
}

void StageFinder::visit(Operation *op) {
  unsigned mask = 0;
  for (Operation *user : op->getUsers())
    mask |= isa<YieldOp>(user)   ? 1u << std::min(31u, lastStage)
            : own.contains(user) ? own[user]
                                 : stages[user];
  stages[op] = mask;
}

/// Flops to compute an element of `value` from what is loaded anyway.
static double getSubtreeFlops(Value value, const RowPlan &plan,
                              fusion::CostModel &model,
                              llvm::DenseMap<Value, double> &known) {
  Operation *op = value.getDefiningOp();
  if (!op || isOnePerRow(op) || getExtents(value) != plan.space)
    return 0;
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  double flops = model.getElementFlops(op);
  for (Value operand : op->getOperands())
    flops += getSubtreeFlops(operand, plan, model, known);
  return known[value] = flops;
}

void RowPlan::keepCostlyValues(Block &body, ArrayRef<SymbolAttr> symbols) {
  int64_t rowSize = getMaxCount(getReducedExtents(), symbols);
  if (!hasLanes())
    rowSize *= columns;
  fusion::CostModel model(symbols, getHostTarget()); // counts alone
  llvm::DenseMap<Value, double> flops;
  StageFinder finder(*this);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    finder.visit(&op);
    unsigned mask = finder.getStages(&op);
    if (llvm::popcount(mask) < 2 || !isa<PointwiseOpInterface>(op) ||
        !isInSpace(op.getResult(0)) ||
        getSubtreeFlops(op.getResult(0), *this, model, flops) < kKeptFlops)
      continue;
    int64_t bytes = alignTensor(rowSize * getScalarBytes(op.getResult(0)));
    if (scratchBytes + bytes > kMaxKeptBytes)
      continue;
    kept.push_back(
        {op.getResult(0), unsigned(llvm::countr_zero(mask)), scratchBytes});
    scratchBytes += bytes;
    finder.keep(&op);
  }
  // Computed in program order: one may need another.
  std::reverse(kept.begin(), kept.end());
}

void RowPlan::findRowValues(Block &body) {
  SmallVector<int64_t> reduced;
  for (auto [axis, isOne] : llvm::enumerate(isReduced))
    if (isOne)
      reduced.push_back(axis);
  Extents row = dropAxes(space, reduced);
  auto isOfRow = [&](Operation *op) {
    return isa<PointwiseOpInterface>(op) && getExtents(op->getResult(0)) == row;
  };
  llvm::DenseMap<Operation *, unsigned> stages; // 0: of no reduction
  for (const Reduction &reduction : reductions)
    stages[reduction.op] = reduction.stage + 1;
  for (Operation &op : body.without_terminator()) {
    if (!isOfRow(&op))
      continue;
    unsigned stage = 0;
    for (Value operand : op.getOperands())
      stage = std::max(stage, stages.lookup(operand.getDefiningOp()));
    stages[&op] = stage;
    auto isElement = [&](Operation *user) {
      return !isOfRow(user) && !isa<YieldOp>(user);
    };
    Value value = op.getResult(0);
    bool isWalked = stage < stageCount || !wholeResults.empty();
    if (stage == 0 || !isWalked || llvm::none_of(op.getUsers(), isElement))
      continue;
    rowValues.push_back({value, stage, scratchBytes});
    scratchBytes += alignTensor(columns * getScalarBytes(value));
  }
}

/// Columns are combined in memory: one accumulator a column, and its index for
/// reductions to an index; then those of the groups' totals.
void RowPlan::placeAccumulators(ArrayRef<SymbolAttr> symbols) {
  auto place = [&](int64_t bytes) {
    scratchBytes += alignTensor(bytes);
    return scratchBytes - alignTensor(bytes);
  };
  int64_t rowSize = getMaxCount(getReducedExtents(), symbols);
  for (Operation *op : panelReductions)
    accumulatorOffsets.push_back(
        place(rowSize * getScalarBytes(op->getOperand(0))));
  if (hasLanes())
    return;
  for (const Reduction &reduction : reductions) {
    Value x = reduction.op->getOperand(0);
    accumulatorOffsets.push_back(place(columns * getScalarBytes(x)));
    if (hasGroups())
      place(columns * getScalarBytes(x));
    if (isa<ArgReduceOp>(reduction.op))
      place(columns * 8);
  }
}

} // namespace tcc::codegen

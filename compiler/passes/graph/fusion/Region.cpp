#include "compiler/passes/graph/fusion/Region.h"
#include "compiler/passes/graph/fusion/Rows.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

namespace {

KernelKind getKernelKind(Operation *op) {
  return cast<KernelOpInterface>(op).getKernelKind();
}

/// How elements of a value reach an operand that is packed, if they do: read
/// with the strides of a view, or computed one by one.
enum class Packing { none, strided, element };

class Analyzer {
public:
  Analyzer(ArrayRef<Operation *> members, ArrayRef<Value> results,
           CostModel &model, bool isCounted)
      : members(members), results(results), model(model), isCounted(isCounted),
        context(members.empty() ? nullptr : members.front()->getContext()) {
    for (auto [i, op] : llvm::enumerate(members))
      positions[op] = i;
    region.access.assign(members.size(), 0);
    anywhere.assign(members.size(), none());
    packing.assign(members.size(), Packing::none);
  }

  Analysis run();

private:
  /// These return why the members cannot be a kernel, or nothing.
  StringRef chooseKind();
  StringRef chooseSpace();
  Operation *findRowOp(bool reducesLast) const;
  StringRef choosePanels(Operation *op);
  StringRef chooseRows();
  StringRef checkDependence();
  StringRef readResults();
  StringRef readMovedResult(Operation *op);
  StringRef readOperands(unsigned member);
  StringRef readRowOperands(unsigned member);
  StringRef readAnchorOperands(unsigned member);
  void readAttentionOperands(AttentionOpInterface op);
  StringRef checkRecomputation(unsigned member);
  bool movesElements(Operation *op);

  void read(Value value, unsigned access) { read(value, access, none()); }
  void read(Value value, unsigned access, Count anywhereCount,
            Packing how = Packing::none);
  unsigned mapAccess(Operation *op, unsigned operand, Access access);
  AffineExpr countPicked(Operation *op, unsigned operand);
  AffineExpr countTimes(unsigned member);
  Count countEvaluations(unsigned member) const;
  void priceWork();
  void countWork();
  /// Exact at the upper bounds alone.
  Count atMost(double count) const {
    constexpr double kMost = double(int64_t(1) << 62);
    if (!isCounted)
      return {count, AffineExpr()};
    auto whole = int64_t(std::ceil(std::min(count, kMost)));
    return {count, getAffineConstantExpr(whole, context)};
  }
  Count none() const { return atMost(0); }
  Count getCount(Type tensor) const {
    return {model.getMaxCount(tensor),
            isCounted ? model.getCount(tensor) : AffineExpr()};
  }
  bool isOfLibrary() const;
  bool reducesPanel(Operation *op) const {
    return !panels.empty() && isa<ReductionOpInterface>(op) &&
           isEqual(getRows(op), panels);
  }

  bool isFurtherResult(Value value) const {
    return region.anchor && value.getDefiningOp() == region.anchor &&
           value != region.anchor->getResult(0);
  }
  unsigned perRow() const { return hasRows ? kPerRow : kElementwise; }
  int64_t find(Value value) const {
    auto it = positions.find(value.getDefiningOp());
    return it == positions.end() ? -1 : int64_t(it->second);
  }

  ArrayRef<Operation *> members;
  ArrayRef<Value> results;
  CostModel &model;
  bool isCounted; // exactly
  MLIRContext *context = nullptr;
  llvm::SmallDenseMap<Operation *, unsigned, 16> positions;
  Region region;
  Rows rows, panels; // of what reduces columns beside rows
  bool hasRows = false;
  Count spaceSize, rowsSize; // in elements
  AffineExpr count, rowCount;
  /// Evaluations of each member at other indices than the loops'.
  SmallVector<Count> anywhere;
  SmallVector<Packing> packing;
  /// Elements read of each value from outside.
  llvm::SmallMapVector<Value, Count, 8> inputs;
};

} // namespace

StringRef Analyzer::chooseKind() {
  for (Operation *op : members) {
    if (!isa<KernelOpInterface>(op))
      continue;
    KernelKind kind = getKernelKind(op);
    if (!region.anchor) {
      region.anchor = op;
      region.kind = kind;
    } else if (kind != KernelKind::row || region.kind != KernelKind::row) {
      return "two ops with loops of their own";
    }
  }
  return {};
}

/// The first row op that reduces the last of its axes, or keeps it.
Operation *Analyzer::findRowOp(bool reducesLast) const {
  for (Operation *op : members) {
    Rows own = isa<KernelOpInterface>(op) ? getRows(op) : Rows();
    if (!own.empty() && own.back().isReduced == reducesLast)
      return op;
  }
  return nullptr;
}

/// The rows are what lies behind the axes that `op` reduces.
StringRef Analyzer::choosePanels(Operation *op) {
  panels = getRows(op);
  if (!isPanel(panels, model))
    return "rows beside columns that are no panels' of a task each";
  auto isSum = [&](Operation *op) { return reducesPanel(op); };
  if (llvm::count_if(members, isSum) > kMaxPanelSums)
    return "sums of too many columns";
  region.panelAxes = *getReducedAxes(op);
  for (int64_t axis = region.panelAxes.back() + 1;
       axis < region.space.getRank(); ++axis)
    region.reducedAxes.push_back(axis);
  return {};
}

/// The axes that a row op keeps must be the same for all, whatever reshapes lie
/// between them. Where some reduce rows and others columns, the space is that
/// of columns.
StringRef Analyzer::chooseRows() {
  if (!getReducedAxes(region.anchor))
    return "the loops of a row op are not known";
  Operation *ofRows = findRowOp(true), *ofColumns = findRowOp(false);
  bool hasBoth = ofRows && ofColumns;
  region.anchor = hasBoth ? ofRows : region.anchor;
  Value space = (hasBoth ? ofColumns : region.anchor)->getOperand(0);
  region.space = cast<RankedTensorType>(space.getType());
  if (!hasBoth)
    region.reducedAxes = *getReducedAxes(region.anchor);
  else if (StringRef refusal = choosePanels(ofColumns); !refusal.empty())
    return refusal;
  Extents extents = getExtents(region.space), kept;
  rows = getRows(extents, [&](int64_t axis) {
    return llvm::is_contained(region.reducedAxes, axis);
  });
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (!llvm::is_contained(region.reducedAxes, int64_t(axis)))
      kept.push_back(extent);
  rowCount = getNumElements(kept, region.space.getContext());
  double most = 1;
  for (AffineExpr extent : kept)
    most *= model.getMaximum(extent);
  rowsSize = {most, isCounted ? rowCount : AffineExpr()};
  hasRows = llvm::any_of(rows, [](Segment part) { return part.isReduced; });
  return {};
}

/// The space is the anchor's. A pointwise kernel takes the shape of a result
/// that cannot be given another one, else the last one's.
StringRef Analyzer::chooseSpace() {
  if (region.kind == KernelKind::row) {
    if (StringRef refusal = chooseRows(); !refusal.empty())
      return refusal;
  } else if (region.anchor) {
    region.space =
        cast<RankedTensorType>(region.anchor->getResult(0).getType());
  } else {
    for (Value result : results)
      if (!region.space || !isa<PointwiseOpInterface>(result.getDefiningOp()))
        region.space = cast<RankedTensorType>(result.getType());
  }
  if (!region.space)
    return "nothing is read outside";
  count = model.getCount(region.space);
  spaceSize = getCount(region.space);
  return {};
}

/// Matrix kernels keep sums in registers: there is no room there for work that
/// only shares an input with them.
StringRef Analyzer::checkDependence() {
  if (region.kind != KernelKind::contraction &&
      region.kind != KernelKind::window &&
      region.kind != KernelKind::window_sums &&
      region.kind != KernelKind::attention)
    return {};
  for (Operation *op : members)
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          return isFurtherResult(getSource(operand));
        }))
      return "of several results only the first is passed on in the kernel";
  llvm::SmallPtrSet<Operation *, 16> dependent = {region.anchor};
  for (Operation *op : members)
    if (llvm::any_of(op->getOperands(), [&](Value operand) {
          return dependent.contains(getSource(operand).getDefiningOp());
        }))
      dependent.insert(op);
  if (llvm::all_of(results, [&](Value result) {
        return dependent.contains(result.getDefiningOp());
      }))
    return {};
  return "a result does not need the loops of the kernel";
}

static bool haveSameExtents(Type lhs, Type rhs) {
  return getExtents(cast<RankedTensorType>(lhs)) ==
         getExtents(cast<RankedTensorType>(rhs));
}

/// The same but for axes of extent 1.
static bool haveSameLongExtents(Type lhs, Type rhs) {
  auto getLong = [](Type type) {
    Extents extents = getExtents(cast<RankedTensorType>(type));
    llvm::erase_if(extents, [](AffineExpr extent) {
      return graph::getConstant(extent) == 1;
    });
    return extents;
  };
  return llvm::equal(getLong(lhs), getLong(rhs), graph::isEqual);
}

/// Rows of the last axis are stored as they are computed.
StringRef Analyzer::readMovedResult(Operation *op) {
  Value moved = op->getOperand(0), source = getSource(moved);
  int64_t member = find(source);
  if (member < 0 ||
      (members[member] != region.anchor &&
       !isa<PointwiseOpInterface>(members[member])) ||
      !graph::isEqual(model.getCount(source.getType()), count) ||
      !graph::isEqual(getExtents(moved).back(),
                      getExtents(region.space).back()))
    return "a moved result has other rows";
  region.access[positions[op]] |= kStored;
  return {};
}

StringRef Analyzer::readResults() {
  for (Value result : results) {
    Operation *op = result.getDefiningOp();
    AffineExpr size = model.getCount(result.getType());
    bool isAlone =
        region.kind == KernelKind::scan || region.kind == KernelKind::irregular;
    if (isAlone && op != region.anchor)
      return "nothing can follow in the kernel of a scan or an irregular op";
    if (isAlone || isFurtherResult(result)) {
      read(result, kElementwise);
    } else if (reducesPanel(op)) {
      region.access[positions[op]] |= kPerColumn;
    } else if (getStoreMap(op, region.kind)) {
      if (StringRef refusal = readMovedResult(op); !refusal.empty())
        return refusal;
    } else if (graph::isEqual(size, count)) {
      if (isa<ElementOpInterface>(op) &&
          !haveSameExtents(result.getType(), region.space))
        return "a moved result has another shape";
      read(result, kElementwise);
    } else if (hasRows && graph::isEqual(size, rowCount)) {
      read(result, kPerRow);
    } else {
      return "results of different sizes";
    }
  }
  return {};
}

/// Records a read of `value`. Anything read from outside counts once for the
/// reads at one position, and as often as it is read at others.
void Analyzer::read(Value value, unsigned access, Count anywhereCount,
                    Packing how) {
  if (how == Packing::strided && value != getSource(value))
    how = Packing::element;
  value = getSource(value);
  int64_t member = find(value);
  if (member >= 0) {
    region.access[member] |= access;
    anywhere[member] = anywhere[member] + anywhereCount;
    packing[member] = std::max(packing[member], how);
    return;
  }
  if (getSplat(value))
    return;
  Count total = getCount(value.getType());
  Count &reads = inputs.try_emplace(value, none()).first->second;
  bool isWhole = access & (kElementwise | kPerRow);
  reads = isWhole ? total : min(total, reads + anywhereCount);
}

/// How operand `operand` is read where the result of `op` is read by `access`.
unsigned Analyzer::mapAccess(Operation *op, unsigned operand, Access access) {
  if (isa<PointwiseOpInterface>(op))
    return access;
  AffineMap map = getReadMap(op, operand);
  if (access == kAnywhere || !map)
    return kAnywhere;
  Extents from = getExtents(op->getOperand(operand));
  Extents to = getExtents(op->getResult(0));
  // Axes of extent 1 do not matter; the others must keep their order.
  llvm::SmallDenseMap<int64_t, AffineExpr, 8> read;
  int64_t last = -1;
  for (auto [extent, index] : llvm::zip(from, map.getResults())) {
    if (getConstant(extent) == 1)
      continue;
    auto loop = dyn_cast<AffineDimExpr>(index);
    if (!loop || int64_t(loop.getPosition()) <= last ||
        !graph::isEqual(extent, to[loop.getPosition()]))
      return kAnywhere;
    last = loop.getPosition();
    read[last] = extent;
  }
  Rows repeated =
      getRows(to, [&](int64_t axis) { return !read.contains(axis); });
  if (llvm::none_of(repeated, [](Segment part) { return part.isReduced; }))
    return access;
  if (access == kElementwise && hasRows && isEqual(repeated, rows))
    return kPerRow;
  return kAnywhere;
}

Count Analyzer::countEvaluations(unsigned member) const {
  unsigned access = region.access[member];
  return (access & kElementwise ? spaceSize : none()) +
         (access & kPerRow ? rowsSize : none()) + anywhere[member];
}

/// True if `op` reads elements elsewhere than at its own rows or positions: the
/// axes of its shape stay the axes of the loops.
bool Analyzer::movesElements(Operation *op) {
  if (isa<PointwiseOpInterface, KernelOpInterface>(op))
    return false;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (mapAccess(op, i, kElementwise) == kAnywhere)
      return true;
  return false;
}

/// A row op must reduce what the kernel reduces and be read where the loops
/// are; its other operands (a scale) are read along the row.
StringRef Analyzer::readRowOperands(unsigned member) {
  Operation *op = members[member];
  if (!getReducedAxes(op))
    return "the loops of a row op are not known";
  Rows own = getRows(op);
  bool isOfPanel = reducesPanel(op);
  if (!isEqual(own, isOfPanel ? panels : rows))
    return "rows of different extents";
  // Panels have one space: reductions are given it, other row ops are not.
  bool isFree = !panels.empty() ? isa<ReductionOpInterface>(op)
                                : llvm::none_of(members, [&](Operation *op) {
                                    return movesElements(op);
                                  });
  if (!isFree &&
      !haveSameLongExtents(op->getOperand(0).getType(), region.space))
    return "rows of another shape beside moved elements or columns";
  unsigned expected = isOfPanel         ? unsigned(kPerColumn)
                      : isOnePerRow(op) ? perRow()
                                        : unsigned(kElementwise);
  if (region.access[member] != expected)
    return "a reduction is read at other rows";
  read(op->getOperand(0), kElementwise);
  auto iteration = cast<IterationOpInterface>(op);
  for (unsigned i = 1; i < op->getNumOperands(); ++i) {
    AffineMap map = iteration.getOperandMap(i);
    bool isIdentity = map && map.isIdentity();
    read(op->getOperand(i), isIdentity ? kElementwise : kAnywhere,
         isIdentity ? none() : spaceSize);
  }
  return {};
}

/// All matrices but the first are packed by each task, and what belongs to
/// rows is read by each; the mask is read for each score.
void Analyzer::readAttentionOperands(AttentionOpInterface op) {
  int64_t rank = cast<RankedTensorType>(op.getQuery().getType()).getRank();
  double queries = model.getMaximum(getExtent(op.getQuery(), rank - 2));
  double tasks = std::max(1.0, queries / model.getMachine().packedReuse);
  double depth = model.getMaximum(getExtent(op.getKey(), rank - 1));
  double keys = model.getMaxCount(op.getKey().getType());
  SmallVector<OpOperand *> matrices = op.getMatrices();
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    Count elements = getCount(value.getType());
    Count times = atMost(operand.getOperandNumber() == 0 ? 1 : tasks);
    if (value == op.getMask())
      read(value, kAnywhere, atMost(queries * keys / std::max(1.0, depth)));
    else if (llvm::is_contained(matrices, &operand))
      read(value, kAnywhere, elements * times, Packing::strided);
    else
      read(value, kAnywhere, elements * times);
  }
}

/// The operands of a contraction may be computed while they are packed, a
/// scan's element by element, and what an irregular kernel reads once there.
/// Those of other anchors are read where they lie.
StringRef Analyzer::readAnchorOperands(unsigned member) {
  Operation *op = members[member];
  if (region.access[member] != kElementwise)
    return "an op with loops of its own is read at other indices";
  if (auto attention = dyn_cast<AttentionOpInterface>(op)) {
    readAttentionOperands(attention);
    return {};
  }
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    std::optional<Count> reads;
    if (region.kind == KernelKind::contraction ||
        region.kind == KernelKind::scan)
      reads = getPackedReads(op, i, model);
    else if (cast<KernelOpInterface>(op).readsOnce(i))
      reads = atMost(1);
    if (!reads && find(getSource(operand)) >= 0)
      return "the operand is read where it lies";
    Count elements = getCount(operand.getType());
    read(operand, kAnywhere, elements * reads.value_or(atMost(1)),
         Packing::strided);
  }
  return {};
}

/// Values computed more often than they have elements, or one by one while
/// packing, must be cheap. Attention packs again for each block of queries or
/// keys: what combines tensors there reads all of them as often.
StringRef Analyzer::checkRecomputation(unsigned member) {
  Operation *op = members[member];
  double elements = model.getMaxCount(op->getResult(0).getType());
  if (gathers(op) && region.access[member] == kAnywhere &&
      model.isInPlace(op, region.anchor))
    return {};
  bool isRepeated = countEvaluations(member).most > 1.5 * elements;
  if (!isRepeated && packing[member] == Packing::none)
    return {};
  if (gathers(op))
    return "a gather is not computed twice";
  if (model.getElementFlops(op) > model.getMachine().cheapFlops)
    return "too costly to compute again";
  if (region.kind == KernelKind::attention &&
      packing[member] != Packing::none && combinesTensors(op))
    return "several tensors would be read for each block";
  return {};
}

/// Elements of operand `operand` that all elements of the result of `op` take:
/// a border, or another operand, gives the rest.
AffineExpr Analyzer::countPicked(Operation *op, unsigned operand) {
  Type result = op->getResult(0).getType(),
       from = op->getOperand(operand).getType();
  bool picks = isa<ElementOpInterface>(op) && !gathers(op) &&
               !getReadMap(op, operand) &&
               model.getMaxCount(from) < model.getMaxCount(result);
  return model.getCount(picks ? from : result);
}

StringRef Analyzer::readOperands(unsigned member) {
  Operation *op = members[member];
  unsigned access = region.access[member];
  if (!access)
    return "a member is not read";
  if (isa<KernelOpInterface>(op))
    return region.kind == KernelKind::row ? readRowOperands(member)
                                          : readAnchorOperands(member);
  if (access & kStored) {
    if (access != kStored)
      return "a moved result is read in its kernel";
    read(op->getOperand(0), kElementwise);
    return {};
  }
  if (StringRef refusal = checkRecomputation(member); !refusal.empty())
    return refusal;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    for (Access one : {kElementwise, kPerRow, kAnywhere}) {
      if (!(access & one))
        continue;
      unsigned mapped = mapAccess(op, i, one);
      Count evaluations = one == kElementwise ? spaceSize
                          : one == kPerRow    ? rowsSize
                                              : anywhere[member];
      Packing how = packing[member];
      if (how == Packing::strided && !model.isInPlace(op, region.anchor))
        how = Packing::element;
      if (isCounted &&
          graph::isEqual(evaluations.exact,
                         model.getCount(op->getResult(0).getType())))
        evaluations.exact = countPicked(op, i);
      read(operand, mapped, mapped == kAnywhere ? evaluations : none(), how);
    }
  return {};
}

bool Analyzer::isOfLibrary() const {
  if (!region.anchor || results.empty())
    return false;
  auto isInput = [&](Value value) {
    return !isView(value.getDefiningOp()) && find(value) < 0;
  };
  return model.getTarget().isOfLibrary(region.anchor, results, isInput);
}

void Analyzer::priceWork() {
  Work &work = region.work;
  double around = model.getLoopFactor(region.kind, region.space, members);
  for (auto [i, op] : llvm::enumerate(members)) {
    if (isa<KernelOpInterface>(op)) {
      Work own = model.getKernelWork(op);
      work.flops += own.flops;
      work.contractionFlops += own.contractionFlops;
      work.libraryFlops += own.libraryFlops;
      continue;
    }
    if (packing[i] == Packing::strided && model.isInPlace(op, region.anchor))
      continue;
    double factor =
        packing[i] == Packing::none ? around : model.getMachine().packingFactor;
    work.flops += factor * countEvaluations(i).most * model.getElementFlops(op);
  }
  for (auto [value, reads] : inputs)
    work.bytesRead +=
        model.getMaxBytes(value.getType()) *
        (reads.most / std::max(1.0, model.getMaxCount(value.getType())));
  for (Value result : results)
    work.bytesWritten += model.getMaxBytes(result.getType());
  if (isOfLibrary())
    work.libraryFlops = std::exchange(work.contractionFlops, 0);
}

/// How often the loops compute member `member`.
AffineExpr Analyzer::countTimes(unsigned member) {
  AffineExpr own = model.getCount(members[member]->getResult(0).getType());
  return graph::getConstant(own) == 1 ? own : countEvaluations(member).exact;
}

/// Index arithmetic of moved elements is no flop. Single elements are computed
/// outside of the loops.
void Analyzer::countWork() {
  region.flops = region.bytes = none().exact;
  for (auto [i, op] : llvm::enumerate(members))
    if (isa<KernelOpInterface>(op))
      region.flops = region.flops + model.getKernelFlops(op);
    else if (isa<PointwiseOpInterface>(op))
      region.flops =
          region.flops + countTimes(i) * int64_t(model.getElementFlops(op));
  auto addBytes = [&](Value tensor, AffineExpr elements) {
    region.bytes = region.bytes + elements * getElementBytes(tensor.getType());
  };
  for (auto [value, reads] : inputs)
    addBytes(value, reads.exact);
  for (Value result : results)
    addBytes(result, model.getCount(result.getType()));
}

Analysis Analyzer::run() {
  for (auto step : {&Analyzer::chooseKind, &Analyzer::chooseSpace,
                    &Analyzer::checkDependence, &Analyzer::readResults})
    if (StringRef refusal = (this->*step)(); !refusal.empty())
      return {std::nullopt, refusal};
  for (unsigned i = members.size(); i-- > 0;)
    if (StringRef refusal = readOperands(i); !refusal.empty())
      return {std::nullopt, refusal};
  priceWork();
  if (isCounted)
    countWork();
  return {std::move(region), {}};
}

Analysis analyzeRegion(ArrayRef<Operation *> members, ArrayRef<Value> results,
                       CostModel &model) {
  return Analyzer(members, results, model, /*isCounted=*/false).run();
}

Analysis countRegion(ArrayRef<Operation *> members, ArrayRef<Value> results,
                     CostModel &model) {
  return Analyzer(members, results, model, /*isCounted=*/true).run();
}

} // namespace tcc::fusion

#include "compiler/codegen/cpu/kernels/ProductPlan.h"

#include "compiler/codegen/cpu/tile/Convolution.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

static bool isOne(AffineExpr extent) { return getConstant(extent) == 1; }

ProductPlan::ProductPlan(FusedOp region)
    : op(cast<ProductOpInterface>(getAnchor(region))), view(op.getProduct()) {
  numberLoops();
  sum = getSumType(getElementTypeOrSelf(op->getResult(0)));
  lhs = makeSide(view.lhs, rows);
  joinRows();
  rhs = makeSide(view.rhs, columns);
  m = count(rows);
  n = count(columns);
  k = count(depth);
  chooseAccess(lhs);
  chooseAccess(rhs);
  packing = choosePacking();
  setPacking(lhs);
  setPacking(rhs);
  rowsArePositions = arePositions(rows, region);
  columnsArePositions = arePositions(columns, region);
  padded = matchPadded();
  ContractionSizes sizes{.batch = getConstant(count(batch)),
                         .m = getConstant(m),
                         .n = getConstant(n),
                         .k = getConstant(getUnits()),
                         .packsLhs = bool(getPackedLhs()),
                         .packsRhs = bool(getPackedRhs()),
                         .sharesRows = padded.has_value(),
                         .packing = packing};
  blocking = {region, chooseBlocks(sizes), sizes};
  if (padded)
    padded->windows = blocking->m;
  planes = matchPlanes();
  planeRows = choosePlanes(region);
}

AffineExpr ProductPlan::count(ArrayRef<unsigned> loops) const {
  Extents counted;
  for (unsigned loop : loops)
    counted.push_back(extents[loop]);
  return getNumElements(counted, op->getContext());
}

// --- Loops

void ProductPlan::numberLoops() {
  auto number = [&](Loops &loops, const Extents &counted) {
    for (AffineExpr extent : counted) {
      loops.push_back(extents.size());
      extents.push_back(extent);
    }
  };
  number(batch, view.batch);
  number(rows, view.rows);
  number(columns, view.columns);
  number(depth, view.depth);
}

/// The one stride by which a side's elements are walked in the order of
/// `loops`; null if there is none.
AffineExpr ProductPlan::getStride(const SidePlan &side,
                                  ArrayRef<unsigned> loops) const {
  if (!side.walk)
    return AffineExpr();
  AffineExpr stride, next;
  for (unsigned loop : llvm::reverse(loops)) {
    // The stride of a loop of one iteration says nothing.
    if (isOne(extents[loop]))
      continue;
    AffineExpr own = side.walk->strides[loop];
    if (stride && !isEqual(own, next))
      return AffineExpr();
    if (!stride)
      stride = own;
    next = own * extents[loop];
  }
  return stride ? stride : side.walk->strides[loops.back()];
}

/// Rows of a matrix in memory are a fixed distance apart. Where they are not,
/// some of their loops alone serve as rows, and the others join the batch: the
/// longest loop if its rows are read along k, else the inner ones that can be
/// read across it.
void ProductPlan::joinRows() {
  AffineExpr kStride = getStride(lhs, depth);
  if (!kStride || lhs.windows || getStride(lhs, rows))
    return;
  Loops kept = {rows.back()};
  if (getConstant(kStride) == 1) {
    std::optional<int64_t> most = getConstant(extents[kept[0]]);
    for (unsigned loop : rows)
      if (auto extent = getConstant(extents[loop]);
          most && extent && *extent > *most) {
        most = extent;
        kept = {loop};
      }
  } else if (getConstant(getStride(lhs, kept)) == 1) {
    for (size_t count = rows.size(); count-- > 1;)
      if (auto inner = ArrayRef(rows).take_back(count); getStride(lhs, inner)) {
        kept.assign(inner.begin(), inner.end());
        break;
      }
  } else {
    return;
  }
  for (unsigned loop : rows)
    if (!llvm::is_contained(kept, loop))
      batch.push_back(loop);
  rows = kept;
  lhs = makeSide(view.lhs, rows);
}

/// Whether rows, or columns, of the results may be numbered as one.
bool ProductPlan::arePositions(ArrayRef<unsigned> loops, FusedOp region) const {
  ArrayRef<AffineExpr> to = view.result.getResults();
  AffineExpr first = getAffineDimExpr(loops.front(), op->getContext());
  int64_t axis = llvm::find(to, first) - to.begin(), end = axis + loops.size();
  if (loops.size() == 1 || end > int64_t(to.size()))
    return false;
  for (auto [index, loop] :
       llvm::zip_equal(to.slice(axis, loops.size()), loops))
    if (index != getAffineDimExpr(loop, op->getContext()))
      return false;
  return readsPositionsOnly(region, axis, end);
}

// --- Sides

/// Whether the loops of `windows` make the indices of the operand.
static bool slidesOver(const WindowLoops &windows, ArrayRef<LoopSum> indices,
                       ArrayRef<unsigned> batch) {
  auto isOf = [](const LoopSum &index,
                 ArrayRef<std::pair<unsigned, int64_t>> terms) {
    SmallVector<int64_t> multiples(index.multiples.size());
    for (auto [loop, multiple] : terms)
      multiples[loop] += multiple;
    return index.multiples == multiples;
  };
  if (!isOf(indices.front(), {{windows.positions.front(), 1}}) ||
      indices.front().constant != 0 || indices.back().constant != 0 ||
      !isOf(indices.back(),
            {{batch.front(), windows.channels}, {windows.taps.back(), 1}}))
    return false;
  for (size_t i = 0; i < windows.strides.size(); ++i)
    if (windows.strides[i] < 1 || windows.dilations[i] < 1 ||
        !isOf(indices[1 + i], {{windows.positions[1 + i], windows.strides[i]},
                               {windows.taps[i], windows.dilations[i]}}))
      return false;
  return true;
}

std::optional<WindowLoops>
ProductPlan::matchWindows(const ProductSide &side,
                          ArrayRef<unsigned> lanes) const {
  bool isLhs = side.operand == view.lhs.operand;
  Value tensor = op->getOperand(side.operand);
  size_t spatial = side.padded;
  WindowLoops windows;
  llvm::append_range(windows.positions, isLhs ? lanes : ArrayRef(depth));
  llvm::append_range(windows.taps, isLhs ? ArrayRef(depth) : lanes);
  if (!isa<BlockArgument>(tensor) || spatial == 0 || side.firstPadded != 1 ||
      side.map.getNumResults() != spatial + 2 || batch.size() != 1 ||
      windows.positions.size() != spatial + 1 ||
      windows.taps.size() != spatial + 1 || (!isLhs && !isOne(count(batch))))
    return std::nullopt;
  for (unsigned loop : windows.taps)
    if (!getConstant(extents[loop]))
      return std::nullopt;
  windows.channels = *getConstant(extents[windows.taps.back()]);
  SmallVector<LoopSum> indices;
  for (AffineExpr index : side.map.getResults()) {
    std::optional<LoopSum> sum = asLoopSum(index, extents.size());
    if (!sum)
      return std::nullopt;
    indices.push_back(*sum);
  }
  for (size_t i = 0; i < spatial; ++i) {
    const LoopSum &index = indices[1 + i];
    windows.strides.push_back(index.multiples[windows.positions[1 + i]]);
    windows.dilations.push_back(index.multiples[windows.taps[i]]);
    windows.padLow.push_back(-index.constant);
  }
  return slidesOver(windows, indices, batch) ? std::optional(windows)
                                             : std::nullopt;
}

/// Whether the next lane lies next in an operand that is computed, and not the
/// next k, as far as one can tell.
static bool areLanesInner(const ProductSide &side, unsigned lane, unsigned k) {
  int64_t lanesAt = -1, depthAt = -1;
  for (auto [axis, index] : llvm::enumerate(side.map.getResults())) {
    if (index.isFunctionOfDim(lane))
      lanesAt = axis;
    if (index.isFunctionOfDim(k))
      depthAt = axis;
  }
  return lanesAt > depthAt;
}

/// Says how loops walk over the operand of `side`, if it lies in memory.
void ProductPlan::walkOver(const ProductSide &side, SidePlan &plan) const {
  std::optional<unsigned> loop = findGatheredLoop(view, side, plan.tensor);
  if (!loop) {
    plan.walk = spreadOverLoops(traceInput(plan.tensor), side.map);
    return;
  }
  auto gather = plan.tensor.getDefiningOp<GatherOp>();
  StridedInput from = traceInput(gather.getX());
  if (!from.input)
    return;
  AffineExpr &stride = from.strides[gather.getAxis()];
  plan.gathered = GatheredSlices{gather, *loop, stride};
  stride = getAffineConstantExpr(0, op->getContext());
  plan.walk = spreadOverLoops(from, side.map);
}

SidePlan ProductPlan::makeSide(const ProductSide &side,
                               ArrayRef<unsigned> lanes) const {
  SidePlan plan;
  plan.tensor = op->getOperand(side.operand);
  Type element = getElementTypeOrSelf(plan.tensor);
  MatrixAccess &access = plan.access;
  access.isUnsigned = element.isUnsignedInteger();
  access.elementType = getSignless(element);
  if (side.padded == 0 || staysInside(plan.tensor, side.map, extents))
    walkOver(side, plan);
  if (side.panels) {
    access.kind = MatrixAccess::Panels;
    access.input = plan.walk->input;
    return plan;
  }
  AffineExpr laneStride = getStride(plan, lanes),
             kStride = getStride(plan, depth);
  if (laneStride && kStride) {
    access.input = plan.walk->input;
    access.laneStride = laneStride;
    access.kStride = kStride;
    return plan;
  }
  plan.windows = matchWindows(side, lanes);
  bool isAdjacent = areLanesInner(side, lanes.back(), depth.back());
  access.laneStride = getAffineConstantExpr(isAdjacent, op->getContext());
  if (plan.windows)
    access.input = plan.tensor;
  return plan;
}

/// The left operand is read where it lies if its k are neighbours, or few rows
/// make packing them a waste, or there is a lot of it; the right one if few
/// rows are multiplied with whole panels.
void ProductPlan::chooseAccess(SidePlan &side) {
  MatrixAccess &access = side.access;
  if (access.kind == MatrixAccess::Panels)
    return;
  if (!access.input || side.windows) {
    access.kind = side.windows ? MatrixAccess::Windows : MatrixAccess::Elements;
  } else {
    access.kind = getPackedKind(access);
    std::optional<int64_t> rows = getConstant(m), columns = getConstant(n);
    bool isFewRows = rows && *rows <= panelRows;
    bool isAcross = getConstant(access.laneStride) == 1;
    if (&side == &lhs
            ? isFewRows || getConstant(access.kStride) == 1 ||
                  (isAcross && isDeep())
            : isFewRows && isAcross && columns && *columns % kPanelColumns == 0)
      access.kind = MatrixAccess::InPlace;
  }
  if (access.kind == MatrixAccess::Elements)
    access.elementType = getComputedType(side.tensor);
}

// --- Units

/// True unless elements along k start within a unit, or end there.
bool ProductPlan::holdsUnits(const SidePlan &side, Packing packing) const {
  const MatrixAccess &access = side.access;
  if (access.kind == MatrixAccess::Panels ||
      access.kind == MatrixAccess::Windows ||
      access.kind == MatrixAccess::Elements)
    return true;
  if (!k.isMultipleOf(packing.group))
    return false;
  if (access.kind == MatrixAccess::Columns || getConstant(access.kStride) != 1)
    return true;
  for (auto [loop, stride] : llvm::enumerate(side.walk->strides))
    if (!llvm::is_contained(depth, loop) && !isOne(extents[loop]) &&
        !stride.isMultipleOf(packing.group))
      return false;
  if (side.gathered && !side.gathered->stride.isMultipleOf(packing.group))
    return false;
  return side.walk->offset.isMultipleOf(packing.group);
}

std::optional<WindowLoops>
ProductPlan::matchWindows(const SidePlan &side) const {
  return &side == &lhs ? matchWindows(view.lhs, rows)
                       : matchWindows(view.rhs, columns);
}

/// What the right operand has in place, across k, is not worth copying.
Packing ProductPlan::choosePacking() const {
  if (view.rhs.panels)
    return *view.rhs.panels;
  auto packingOf = [](const SidePlan &side) {
    return graph::getPacking(getElementTypeOrSelf(side.tensor));
  };
  Packing packing = packingOf(lhs);
  auto canPack = [&](const SidePlan &side) {
    return holdsUnits(side, packing) || matchWindows(side);
  };
  bool isTaken = packing == packingOf(rhs) && getConstant(k) &&
                 k.isMultipleOf(packing.group) &&
                 rhs.access.kind != MatrixAccess::InPlace && canPack(lhs) &&
                 canPack(rhs);
  return isTaken ? packing : Packing();
}

void ProductPlan::setPacking(SidePlan &side) {
  if (!holdsUnits(side, packing)) {
    side.windows = matchWindows(side);
    side.access.kind =
        side.windows ? MatrixAccess::Windows : MatrixAccess::Elements;
  }
  side.access.setPacking(packing);
}

Type ProductPlan::getPackedLhs() const {
  if (lhs.access.kind == MatrixAccess::Windows &&
      !packsPatches(lhs.windows->channels, packing, /*hasTileRegisters=*/true))
    return Type();
  return lhs.access.getPackedType();
}

// --- Blocks

/// A right operand made of windows takes long to pack: tasks share it.
bool ProductPlan::isDeep() const {
  return view.rhs.padded > 0 && isOne(count(batch)) && getConstant(m) &&
         getConstant(n) && getConstant(k);
}

Blocking ProductPlan::chooseBlocks(const ContractionSizes &sizes) const {
  if (isDeep())
    return chooseDeepBlocking(*sizes.m, *sizes.n, *sizes.k,
                              lhs.access.kind == MatrixAccess::Columns,
                              packing);
  return chooseBlocking(sizes);
}

std::optional<PaddedWindows> ProductPlan::matchPadded() const {
  if (lhs.access.kind != MatrixAccess::Windows || packing.group == 1 ||
      !view.rhs.panels || !isOne(count(batch)) || !sum.isF32())
    return std::nullopt;
  const WindowLoops &loops = *lhs.windows;
  PaddedWindows windows{{}, loops.channels};
  for (size_t i = 0; i < loops.strides.size(); ++i) {
    auto input = getConstant(getExtent(lhs.tensor, 1 + i));
    auto output = getConstant(extents[loops.positions[1 + i]]);
    auto taps = getConstant(extents[loops.taps[i]]);
    if (!input || !output || !taps || loops.strides[i] != 1)
      return std::nullopt;
    windows.axes.push_back(
        {*input, *output, *taps, loops.dilations[i], loops.padLow[i]});
  }
  return windows.isWorthwhile() ? std::optional(windows) : std::nullopt;
}

// --- Planes

static constexpr StringLiteral kPlaneRows = "plane_rows";

/// The window over rows and columns, if the product is a convolution of f32 or
/// of units with one panel of filters.
std::optional<PlaneWindow> ProductPlan::matchPlanes() const {
  if (lhs.access.kind != MatrixAccess::Windows || !lhs.windows ||
      !view.rhs.panels || !view.zeros.empty() ||
      view.sums != ProductSums::none || !isOne(count(batch)) || !sum.isF32())
    return std::nullopt;
  auto isMultiplied = [&](const SidePlan &side) {
    return packing.group > 1 || getElementTypeOrSelf(side.tensor).isF32();
  };
  if (!isMultiplied(lhs) || !isMultiplied(rhs))
    return std::nullopt;
  const WindowLoops &windows = *lhs.windows;
  size_t spatial = windows.strides.size();
  std::optional<int64_t> filters = getConstant(n);
  if (spatial > 2 || !filters)
    return std::nullopt;
  PlaneWindow window;
  window.channels = windows.channels;
  window.filters = *filters;
  window.packing = packing;
  for (size_t i = 0; i < spatial; ++i) {
    PlaneAxis &axis = i + 1 == spatial ? window.columns : window.rows;
    auto input = getConstant(getExtent(lhs.tensor, 1 + i));
    auto output = getConstant(extents[windows.positions[1 + i]]);
    auto taps = getConstant(extents[windows.taps[i]]);
    if (!input || !output || !taps || *output == 0 || *taps == 0)
      return std::nullopt;
    axis = {*input,
            *output,
            *taps,
            windows.strides[i],
            windows.dilations[i],
            windows.padLow[i]};
  }
  return window;
}

/// As the attribute has it; an attribute with blocks has none.
int64_t ProductPlan::choosePlanes(FusedOp region) {
  if (Attribute attr = getChoice(region, kPlaneRows)) {
    auto number = dyn_cast<IntegerAttr>(attr);
    int64_t rows = number ? number.getValue().getSExtValue() : -1;
    return planes && isPlaneRows(*planes, rows) ? rows : -1;
  }
  return planes && !blocking.isGiven() ? choosePlaneRows(*planes) : 0;
}

AffineExpr ProductPlan::getTasks() const {
  if (planeRows == 0)
    return getBlockTasks();
  return extents[lhs.windows->positions.front()] *
         llvm::divideCeil(planes->rows.output, planeRows);
}

AffineExpr ProductPlan::getBlockTasks() const {
  return count(batch) * m.ceilDiv(blocking->m) * n.ceilDiv(blocking->n);
}

int64_t ProductPlan::getBlockScratch() const {
  int64_t bytes =
      contractionScratchBytes(*blocking, sum, getPackedLhs(), getPackedRhs());
  return padded ? std::max(bytes, padded->getScratchBytes()) : bytes;
}

FailureOr<TaskPlan> ProductPlan::describe() const {
  Operation *product = op;
  if (planeRows < 0)
    return product->emitOpError("cannot be computed by planes of so many rows");
  TaskPlan plan{getTasks()};
  if (planeRows == 0) {
    plan.scratchBytes = getBlockScratch();
    return blocking.describe(plan);
  }
  // Blocks are what may be chosen instead.
  FailureOr<TaskPlan> blocks = blocking.describe(TaskPlan());
  if (failed(blocks))
    return failure();
  Builder b(product->getContext());
  plan.scratchBytes = planes->getScratchBytes(planeRows);
  if (packing.group > 1)
    plan.scratchBytes = std::max(plan.scratchBytes, getBlockScratch());
  plan.plan = b.getDictionaryAttr(
      b.getNamedAttr(kPlaneRows, b.getI64IntegerAttr(planeRows)));
  plan.alternatives.push_back(blocks->plan);
  llvm::append_range(plan.alternatives, blocks->alternatives);
  return plan;
}

} // namespace tcc::cpu

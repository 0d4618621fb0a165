//===- RowLaunch.cpp - Which threads reduce what --------------------------===//

#include "compiler/codegen/cuda/kernels/Rows.h"

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

/// Bytes that a thread of a warp may hold of its columns of a panel, in
/// registers: sums, what it loads of a row, what belongs to columns.
static constexpr int64_t kMaxPanelBytes = 704;

RowLaunch::RowLaunch(FusedOp region, ArrayRef<SymbolAttr> symbols)
    : rows(region, symbols) {
  chooseLanes(region);
  chooseTeam(region, symbols);
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
  if (rows.hasPanels())
    return count.floorDiv(rows.rowsPerTask);
  if (hasLanes())
    return count.ceilDiv(across);
  return count * rows.space.back().floorDiv(lanes).ceilDiv(across);
}

static int64_t roundUp(int64_t count, int64_t least, int64_t most) {
  int64_t power = llvm::PowerOf2Ceil(std::max<int64_t>(count, 1));
  return std::clamp(power, least, most);
}

void RowLaunch::chooseTeam(FusedOp region, ArrayRef<SymbolAttr> symbols) {
  int64_t steps =
      std::max<int64_t>(1, codegen::getMaxCount(getSteps(), symbols));
  if (rows.hasPanels()) {
    choosePanelTeam(region, steps);
  } else if (hasLanes()) {
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

/// A warp for each row if a thread of it can hold all that belongs to its
/// columns, else a block.
void RowLaunch::choosePanelTeam(FusedOp region, int64_t vectors) {
  auto getBytes = [](Value x) {
    return std::max<int64_t>(4,
                             codegen::getStorageBytes(getElementTypeOrSelf(x)));
  };
  int64_t bytes = 0; // of a column
  for (Operation *op : rows.panelReductions)
    bytes += getBytes(op->getOperand(0));
  for (Value input : region.getBody().getArguments())
    if (isEqual(getExtents(input).back(), rows.space.back()))
      bytes += getBytes(input);
  bool isWarp =
      llvm::divideCeil(vectors, kWarp) * lanes * bytes <= kMaxPanelBytes;
  team = isWarp ? kWarp : roundUp(vectors, 2 * kWarp, kBlockThreads);
  across = isWarp ? roundUp(rows.rowsPerTask, 1, kBlockThreads / kWarp) : 1;
}

void RowLaunch::chooseResident(FusedOp region) {
  auto known = getConstant(getSteps());
  int64_t vectors = known ? (*known + team - 1) / team : 0;
  int64_t inputs = llvm::count_if(region.getInputs(), [&](Value input) {
    return getExtents(input).size() == rows.space.size();
  });
  if (rows.hasPanels() ||
      (vectors * lanes <= kMaxResident &&
       vectors * lanes * inputs <= kMaxLoaded && !hasManyColumns()))
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

} // namespace tcc::cuda

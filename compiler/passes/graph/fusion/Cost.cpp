#include "compiler/passes/graph/fusion/Cost.h"
#include "compiler/passes/graph/fusion/Members.h"

#include "dialects/graph/Gathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

Times getTimes(const Work &work, const Machine &machine) {
  double memory =
      (work.bytesRead + work.bytesWritten) / machine.bytesPerMicrosecond;
  double arithmetic =
      work.flops / machine.flopsPerMicrosecond +
      work.contractionFlops / machine.contractionFlopsPerMicrosecond;
  if (work.libraryFlops > 0)
    arithmetic += work.libraryFlops / machine.libraryFlopsPerMicrosecond;
  return {machine.launchMicroseconds, memory, arithmetic};
}

double getMicroseconds(const Work &work, const Machine &machine) {
  return getTimes(work, machine).getAll();
}

Count operator+(Count x, Count y) {
  return {x.most + y.most, x.exact ? x.exact + y.exact : x.exact};
}

Count operator*(Count x, Count times) {
  return {x.most * times.most, x.exact ? x.exact * times.exact : x.exact};
}

Count min(Count x, Count y) { return y.most < x.most ? y : x; }

CostModel::CostModel(ModuleOp module, const Target &target)
    : target(target), symbols(getSymbols(module)) {}

CostModel &CostModels::get(const Target &target) {
  return models.try_emplace(&target, module, target).first->second;
}

double CostModel::getMinimum(AffineExpr extent) const {
  return double(getRange(extent, symbols).min);
}

double CostModel::getMaximum(AffineExpr extent) const {
  return double(getRange(extent, symbols).max);
}

const CostModel::Size &CostModel::getSize(Type tensor) {
  auto [it, isNew] = sizes.try_emplace(tensor);
  if (!isNew)
    return it->second;
  Extents extents = getExtents(cast<RankedTensorType>(tensor));
  double maxCount = 1;
  for (AffineExpr extent : extents)
    maxCount *= getMaximum(extent);
  it->second = {getNumElements(extents, tensor.getContext()), maxCount};
  return it->second;
}

int64_t getElementBytes(Type tensor) {
  return (getElementTypeOrSelf(tensor).getIntOrFloatBitWidth() + 7) / 8;
}

double CostModel::getMaxBytes(Type tensor) {
  return getMaxCount(tensor) * double(getElementBytes(tensor));
}

/// The type in which a scalar body sees elements of `type`.
static Type getScalarType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isIntOrIndex())
    return IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth());
  if (element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(type.getContext());
  return element;
}

/// Additions count 1, elementary functions 16.
static double getScalarOpFlops(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return 0;
  bool isArithmetic = isa<arith::ArithDialect>(op->getDialect());
  return llvm::StringSwitch<double>(op->getName().getStringRef())
      .Cases("arith.divf", "arith.remf", "arith.divsi", "arith.divui",
             "arith.remsi", "arith.remui", 4)
      .Cases("math.sqrt", "math.rsqrt", 4)
      .Cases("math.absf", "math.absi", "math.copysign", "math.fma", 1)
      .Cases("math.floor", "math.ceil", "math.round", "math.roundeven",
             "math.trunc", 1)
      .Default(isArithmetic ? 1 : 16);
}

/// Bodies compute in f32 at least; what they store is rounded behind them.
static double getRoundingFlops(Type element) {
  constexpr double kRounding = 4;
  bool isNarrow =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  return isNarrow ? kRounding : 0;
}

/// Emits the body into a block of its own and counts.
static double countScalarFlops(PointwiseOpInterface op) {
  Block block;
  for (Type type : op->getOperandTypes())
    block.addArgument(getScalarType(type), op->getLoc());
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  op.emitScalar(builder, op->getLoc(), block.getArguments());
  double flops = getRoundingFlops(getElementTypeOrSelf(op->getResult(0)));
  block.walk([&](Operation *scalar) { flops += getScalarOpFlops(scalar); });
  return flops;
}

double CostModel::getElementFlops(Operation *op) {
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  if (!pointwise) {
    // Index arithmetic; more where the op picks between operands.
    constexpr double kMapped = 1, kPicked = 6;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (!getReadMap(op, i))
        return kPicked;
    return kMapped;
  }
  DictionaryAttr attrs = op->getPropertiesStorageSize() == 0
                             ? op->getRawDictionaryAttrs()
                             : op->getAttrDictionary();
  SmallVector<const void *> key{op->getName().getAsOpaquePointer(),
                                attrs.getAsOpaquePointer()};
  for (Type type : op->getOperandTypes())
    key.push_back(getElementTypeOrSelf(type).getAsOpaquePointer());
  key.push_back(getElementTypeOrSelf(op->getResult(0)).getAsOpaquePointer());
  StringRef bytes(reinterpret_cast<const char *>(key.data()),
                  key.size_in_bytes());
  auto [it, isNew] = scalarFlops.try_emplace(bytes);
  if (isNew)
    it->second = countScalarFlops(pointwise);
  return it->second;
}

double CostModel::getLoopFactor(KernelKind kind, RankedTensorType space,
                                ArrayRef<Operation *> members) const {
  constexpr double kShortRow = 16;
  bool isRow = kind == KernelKind::row;
  if ((!isRow && kind != KernelKind::pointwise) || space.getRank() == 0 ||
      getMaximum(getExtents(space).back()) >= kShortRow)
    return 1;
  bool moves = llvm::any_of(members, [](Operation *op) {
    return isa<ElementOpInterface>(op) && !isa<BroadcastOp>(op);
  });
  return isRow && moves ? getMachine().packingFactor
                        : getMachine().shortRowFactor;
}

/// The loops of an op that has some, or the elements of its result.
static Extents getIterations(Operation *op) {
  auto iteration = dyn_cast<IterationOpInterface>(op);
  return iteration ? iteration.getLoopExtents() : getExtents(op->getResult(0));
}

static bool isProduct(Operation *op) {
  KernelKind kind = cast<KernelOpInterface>(op).getKernelKind();
  return kind == KernelKind::contraction || kind == KernelKind::window ||
         kind == KernelKind::window_sums;
}

/// A composite makes several passes, most with an elementary function; what is
/// irregular compares and moves.
static int64_t getFlopsPerIteration(Operation *op) {
  constexpr int64_t kProduct = 2, kReduction = 2, kComposite = 24,
                    kIrregular = 24;
  if (isProduct(op))
    return kProduct;
  if (cast<KernelOpInterface>(op).getKernelKind() == KernelKind::irregular)
    return kIrregular;
  return isa<DecomposableOpInterface>(op) ? kComposite : kReduction;
}

/// Queries meet every key in a product for each matrix but the first.
Work CostModel::getAttentionWork(AttentionOpInterface op) {
  constexpr double kSoftmax = 24;
  int64_t rank = cast<RankedTensorType>(op.getKey().getType()).getRank();
  double keys = getMaximum(getExtent(op.getKey(), rank - 2));
  double depth = getMaximum(getExtent(op.getKey(), rank - 1));
  double queryElements = getMaxCount(op.getQuery().getType());
  Work work;
  SmallVector<OpOperand *> matrices = op.getMatrices();
  for (OpOperand *matrix : ArrayRef(matrices).drop_front()) {
    double width = getMaximum(getExtent(matrix->get(), rank - 1));
    work.contractionFlops +=
        2 * keys * queryElements / std::max(1.0, depth) * width;
  }
  work.flops = kSoftmax * keys * queryElements / std::max(1.0, depth);
  // Taken as half as fast as a library: nobody has measured it.
  constexpr double kSlowdown = 2;
  if (target.getCapabilities().hasTensorAttention && takesTensorCores(op))
    work.libraryFlops = kSlowdown * std::exchange(work.contractionFlops, 0);
  return work;
}

Work CostModel::getKernelWork(Operation *op) {
  if (auto attention = dyn_cast<AttentionOpInterface>(op))
    return getAttentionWork(attention);
  if (auto external = dyn_cast<ExternalKernelOpInterface>(op)) {
    Work work;
    work.flops = getMaximum(external.countFlops());
    return work;
  }
  double flops = double(getFlopsPerIteration(op));
  for (AffineExpr extent : getIterations(op))
    flops *= getMaximum(extent);
  Work work;
  (isProduct(op) ? work.contractionFlops : work.flops) = flops;
  return work;
}

AffineExpr CostModel::getKernelFlops(Operation *op) {
  MLIRContext *context = op->getContext();
  if (auto attention = dyn_cast<AttentionOpInterface>(op)) {
    Work work = getAttentionWork(attention);
    return getAffineConstantExpr(
        int64_t(work.flops + work.contractionFlops + work.libraryFlops),
        context);
  }
  if (auto external = dyn_cast<ExternalKernelOpInterface>(op))
    return external.countFlops();
  return getNumElements(getIterations(op), context) * getFlopsPerIteration(op);
}

std::optional<Count> getPackedReads(Operation *anchor, unsigned operand,
                                    CostModel &model) {
  auto iteration = dyn_cast<IterationOpInterface>(anchor);
  AffineMap map = iteration ? iteration.getOperandMap(operand) : AffineMap();
  if (!map || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return std::nullopt;
  double most = 1;
  Extents unread;
  AffineMap resultMap = iteration.getResultMap(0);
  for (auto [axis, loop] : llvm::enumerate(resultMap.getResults()))
    if (!map.isFunctionOfDim(cast<AffineDimExpr>(loop).getPosition())) {
      unread.push_back(getExtent(anchor->getResult(0), axis));
      most *= model.getMaximum(unread.back());
    }
  double reuse = std::max(1.0, model.getMachine().packedReuse);
  AffineExpr exact = getNumElements(unread, anchor->getContext());
  return Count{std::max(1.0, std::ceil(most / reuse)),
               exact.ceilDiv(int64_t(reuse))};
}

/// Whether `op` gathers the slices that the batch of a product chooses.
static bool choosesSlices(Operation *op, Operation *anchor) {
  auto product = dyn_cast_if_present<ProductOpInterface>(anchor);
  if (!product || !isa<GatherOp>(op))
    return false;
  ProductView view = product.getProduct();
  return llvm::any_of(ArrayRef{&view.lhs, &view.rhs},
                      [&](const ProductSide *side) {
                        Value tensor = anchor->getOperand(side->operand);
                        return tensor.getDefiningOp() == op &&
                               findGatheredLoop(view, *side, tensor);
                      });
}

bool CostModel::isInPlace(Operation *op, Operation *anchor) const {
  return isStrided(op) || (target.getCapabilities().readsGatheredBatches &&
                           choosesSlices(op, anchor));
}

AffineMap getReadMap(Operation *op, unsigned operand) {
  if (isa<PointwiseOpInterface>(op)) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    return AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext());
  }
  auto iteration = dyn_cast<IterationOpInterface>(op);
  if (!iteration || !iteration.getResultMap(0).isIdentity())
    return AffineMap();
  return iteration.getOperandMap(operand);
}

} // namespace tcc::fusion

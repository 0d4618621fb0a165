//===- SumOperands.cpp - Sums of what a product reads, behind it ----------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/fusion/LibraryWork.h"
#include "compiler/passes/graph/fusion/Region.h"
#include "dialects/graph/Strides.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_SUMOPERANDSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct SumOperandsPass : impl::SumOperandsPassBase<SumOperandsPass> {
  void runOnOperation() override;
};

/// A product that reads as `operand` what is summed.
struct Match {
  ReduceOp sum;
  MatmulOp product;
  unsigned operand;
};

} // namespace

/// The elements of `value` in their order, as they are stored.
static Value getStored(Value value) {
  for (Operation *op = value.getDefiningOp();
       fusion::isView(op) || isWidening(op); op = value.getDefiningOp())
    value = op->getOperand(0);
  return value;
}

/// The op whose kernel of matrices makes `value`, null if there is none: it has
/// no room for the sums of columns, which rows and pointwise ops sum while they
/// make them.
static Operation *findMatrices(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto kernel = dyn_cast_if_present<KernelOpInterface>(op))
    return kernel.getKernelKind() != KernelKind::row ? op : nullptr;
  if (fusion::isView(op) || isFloatCast(op) ||
      fusion::getStoreMap(op, KernelKind::contraction))
    return findMatrices(op->getOperand(0));
  auto findBefore = [](Value operand) {
    return operand.hasOneUse() ? findMatrices(operand) : nullptr;
  };
  if (fusion::isActivation(op)) {
    Operation *product = findBefore(fusion::getActivated(op));
    return product && fusion::isActivationOf(op, product) ? product : nullptr;
  }
  if (!isa_and_nonnull<AddOp>(op))
    return nullptr;
  Operation *first = findBefore(op->getOperand(0));
  return first ? first : findBefore(op->getOperand(1));
}

/// The columns that `op` sums, if it sums all but the last axes.
static AffineExpr getColumns(ReduceOp op) {
  ArrayRef<int64_t> axes = op.getAxes();
  bool sumsFirst = op.getKind() == ReduceKind::sum && !axes.empty() &&
                   axes.back() + 1 == int64_t(axes.size());
  return sumsFirst ? getNumElements(getExtents(op.getResult()), op.getContext())
                   : AffineExpr();
}

/// Whether `op` reads as `operand` a matrix of `columns` with its depth first,
/// and a library also stores the sums of these, in `elementType`.
static bool sumsAlongDepth(MatmulOp op, unsigned operand, AffineExpr columns,
                           Type elementType) {
  Value matrix = op->getOperand(operand);
  bool depthIsFirst =
      operand == 0 ? op.getTransposeLhs() : !op.getTransposeRhs();
  auto isInput = [](Value value) {
    return !fusion::isView(value.getDefiningOp());
  };
  bool isKnown = depthIsFirst && !op.getPackedRhs() &&
                 llvm::all_of(op->getOperands(),
                              [](Value matrix) {
                                return getExtents(matrix).size() == 2;
                              }) &&
                 isEqual(getExtent(matrix, 1), columns) &&
                 op.getResult().getType().hasStaticShape();
  if (!isKnown)
    return false;
  auto work = fusion::describeProduct(op, op.getResult(), isInput);
  if (!work)
    return false;
  auto kind =
      operand == 0 ? format::StepKind::sum_lhs : format::StepKind::sum_rhs;
  work->steps.push_back(
      {kind, 1, fusion::makeVector(kind, *work, Value(), elementType)});
  return fusion::isOfLibrary(*work);
}

/// Finds the products that read `value` or views of it.
static void findProducts(Value value, SmallVectorImpl<OpOperand *> &reads) {
  for (OpOperand &use : value.getUses()) {
    if (fusion::isView(use.getOwner()))
      findProducts(use.getOwner()->getResult(0), reads);
    else if (isa<MatmulOp>(use.getOwner()))
      reads.push_back(&use);
  }
}

/// Whether nobody reads the sums before the product is made.
static bool canMove(ReduceOp sum, MatmulOp product) {
  Block *block = product->getBlock();
  if (sum->getBlock() != block)
    return false;
  return product->isBeforeInBlock(sum) ||
         llvm::all_of(sum->getUsers(), [&](Operation *user) {
           return product->isBeforeInBlock(block->findAncestorOpInBlock(*user));
         });
}

static std::optional<Match> findMatch(ReduceOp sum) {
  AffineExpr columns = getColumns(sum);
  Value stored = getStored(sum.getX());
  if (!columns || !findMatrices(stored))
    return std::nullopt;
  SmallVector<OpOperand *> reads;
  findProducts(stored, reads);
  for (OpOperand *read : reads) {
    Match match{sum, cast<MatmulOp>(read->getOwner()),
                read->getOperandNumber()};
    if (sumsAlongDepth(match.product, match.operand, columns,
                       getElementTypeOrSelf(sum.getResult())) &&
        canMove(sum, match.product))
      return match;
  }
  return std::nullopt;
}

static void rewrite(const Match &match) {
  auto [sum, product, operand] = match;
  OpBuilder builder(product);
  Extents extents = {getColumns(sum)};
  Location loc = builder.getFusedLoc({product.getLoc(), sum.getLoc()});
  auto both = builder.create<MatmulSumsOp>(
      loc, product.getType(),
      makeTensorType(extents, getElementTypeOrSelf(sum.getResult())),
      product.getLhs(), product.getRhs(), product.getTransposeLhs(),
      product.getTransposeRhs(),
      /*of_lhs=*/operand == 0);
  Value sums = both.getSums();
  if (sums.getType() != sum.getType())
    sums = builder.create<ReshapeOp>(loc, sum.getType(), sums);
  product.replaceAllUsesWith(both.getResult());
  sum.replaceAllUsesWith(sums);
  product.erase();
  sum.erase();
}

void SumOperandsPass::runOnOperation() {
  DecisionLog log(getOperation(), "sum-operands");
  SmallVector<ReduceOp> sums;
  getOperation()->walk([&](ReduceOp op) { sums.push_back(op); });
  for (ReduceOp sum : sums)
    if (std::optional<Match> match = findMatch(sum)) {
      log.add(match->product, "sums an operand",
              "it is not read again for its columns");
      rewrite(*match);
    }
}

} // namespace tcc

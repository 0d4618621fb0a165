#include "compiler/passes/graph/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

#include <numeric>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// The one element that `tensor` repeats, null if it does not.
Value getRepeatedElement(Value tensor) {
  auto broadcast = tensor.getDefiningOp<BroadcastOp>();
  bool isOne = broadcast && llvm::all_of(getExtents(broadcast.getX()),
                                         [](AffineExpr extent) {
                                           return getConstant(extent) == 1;
                                         });
  return isOne ? broadcast.getX() : Value();
}

/// The operand of `op` that does not repeat one element, if only one does not.
std::optional<unsigned> getOnlyTensor(Operation *op) {
  std::optional<unsigned> only;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (getRepeatedElement(operand))
      continue;
    if (only)
      return std::nullopt;
    only = i;
  }
  return only;
}

/// `tensor`, which repeats one element, in the shape of `like`.
Value repeatLike(OpBuilder &builder, Value tensor, Value like) {
  Location loc = tensor.getLoc();
  Type elementType = getElementTypeOrSelf(tensor);
  Value scalar = reshapeTo(builder, loc, getRepeatedElement(tensor),
                           RankedTensorType::get({}, elementType));
  return builder.create<BroadcastOp>(
      loc, withElementType(getTensorType(like), elementType), scalar);
}

/// f(move(x), scalar) = move(f(x, scalar)) for reshapes and transposes: f fuses
/// with what makes x, and the move with what reads it.
struct PointwiseBeforeMove : RewritePattern {
  explicit PointwiseBeforeMove(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<PointwiseOpInterface>(op))
      return failure();
    auto tensor = getOnlyTensor(op);
    Operation *move =
        tensor ? op->getOperand(*tensor).getDefiningOp() : nullptr;
    if (!isa_and_present<ReshapeOp, TransposeOp>(move) ||
        !hasOneLocalUse(move->getResult(0)))
      return rewriter.notifyMatchFailure(op, "not of one moved tensor");
    Value x = move->getOperand(0);
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(i == *tensor ? x : repeatLike(rewriter, operand, x));
    Type elementType = getElementTypeOrSelf(op->getResult(0));
    OperationState state(op->getLoc(), op->getName(), operands,
                         {withElementType(getTensorType(x), elementType)},
                         op->getAttrs());
    Value result = rewriter.create(state)->getResult(0);
    OperationState moved(move->getLoc(), move->getName(), result,
                         op->getResultTypes(), move->getAttrs());
    rewriter.replaceOp(op, rewriter.create(moved));
    return success();
  }
};

/// reshape(transpose(x)) = transpose(reshape(x)) where the reshape only places
/// axes of extent 1: transposes meet, and products that take them in.
struct UnitReshapeBeforeTranspose : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = getSingleUse<TransposeOp>(op.getX());
    if (!transpose || lookThroughUnitReshapes(op.getResult()) == op.getResult())
      return rewriter.notifyMatchFailure(op, "does more than place unit axes");
    // The i-th long axis of the result is the same as that of the transpose.
    SmallVector<int64_t> places = getLongAxes(op.getResult());
    SmallVector<int64_t> sources = getLongAxes(transpose.getX());
    Extents extents = getExtents(op.getResult());
    SmallVector<int64_t> permutation(extents.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    for (auto [axis, place] :
         llvm::zip_equal(getLongAxes(transpose.getResult()), places)) {
      int64_t source = transpose.getPermutation()[axis];
      permutation[place] =
          places[llvm::find(sources, source) - sources.begin()];
    }
    for (auto [source, place] : llvm::zip_equal(sources, places))
      extents[place] = getExtent(transpose.getX(), source);
    Type elementType = op.getType().getElementType();
    Value x = reshapeTo(rewriter, op.getLoc(), transpose.getX(),
                        makeTensorType(extents, elementType));
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), x, permutation);
    return success();
  }
};

} // namespace

void addReorderPatterns(RewritePatternSet &patterns) {
  patterns.add<PointwiseBeforeMove, UnitReshapeBeforeTranspose>(
      patterns.getContext());
}

} // namespace tcc

#include "compiler/passes/graph/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

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

/// The groups of a reshape of a transpose in the order that their axes have
/// before the transpose; nullopt if those of one group are not adjacent there.
std::optional<SmallVector<AxisGroup>> orderGroups(ArrayRef<AxisGroup> groups,
                                                  TransposeOp transpose) {
  SmallVector<int64_t> sources = getLongAxes(transpose.getX());
  SmallVector<std::pair<int64_t, AxisGroup>> placed;
  for (const AxisGroup &group : groups) {
    int64_t first = -1, next = -1;
    for (size_t axis = group.fromBegin; axis < group.fromEnd; ++axis) {
      auto source = llvm::find(sources, transpose.getPermutation()[axis]);
      if (source == sources.end())
        continue; // of extent 1
      int64_t place = source - sources.begin();
      if (first >= 0 && place != next)
        return std::nullopt;
      first = first >= 0 ? first : place;
      next = place + 1;
    }
    placed.push_back({first, group});
  }
  llvm::stable_sort(placed, llvm::less_first());
  return llvm::map_to_vector(placed, [](auto &pair) { return pair.second; });
}

/// reshape(transpose(x)) = transpose(reshape(x)) where the reshape splits axes,
/// or joins such that are adjacent in x: transposes meet, and products that
/// take them in.
struct ReshapeBeforeTranspose : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = getSingleUse<TransposeOp>(op.getX());
    if (!transpose)
      return rewriter.notifyMatchFailure(op, "not of a transpose");
    Extents to = getExtents(op.getResult());
    auto groups = orderGroups(groupAxes(getExtents(op.getX()), to), transpose);
    if (!groups)
      return rewriter.notifyMatchFailure(op, "joins what lies apart");
    // Axes of extent 1 keep their places, the others take turns.
    SmallVector<int64_t> places = getLongAxes(op.getResult()), ordered;
    for (const AxisGroup &group : *groups)
      for (int64_t place : places)
        if (place >= int64_t(group.toBegin) && place < int64_t(group.toEnd))
          ordered.push_back(place);
    SmallVector<int64_t> permutation =
        llvm::to_vector(llvm::seq<int64_t>(0, to.size()));
    Extents extents = to;
    for (auto [place, axis] : llvm::zip_equal(places, ordered)) {
      permutation[axis] = place;
      extents[place] = to[axis];
    }
    Type elementType = op.getType().getElementType();
    Value x = rewriter.create<ReshapeOp>(
        op.getLoc(), makeTensorType(extents, elementType), transpose.getX());
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), x, permutation);
    return success();
  }
};

} // namespace

void addReorderPatterns(RewritePatternSet &patterns) {
  patterns.add<PointwiseBeforeMove, ReshapeBeforeTranspose>(
      patterns.getContext());
}

} // namespace tcc

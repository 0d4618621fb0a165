#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// A transpose that only moves unit axes = a reshape
struct TransposeToReshape : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    Extents extents = getExtents(op.getX());
    int64_t last = -1;
    for (int64_t axis : op.getPermutation()) {
      if (getConstant(extents[axis]) == 1)
        continue;
      if (axis < last)
        return rewriter.notifyMatchFailure(op, "moves elements");
      last = axis;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

/// transpose(reshape(x)) of a reshape that only moves unit axes = transpose(x)
struct TransposeOfMovedUnits : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getX().getDefiningOp<ReshapeOp>();
    if (!reshape ||
        reshape.getX().getType().getRank() != op.getType().getRank())
      return rewriter.notifyMatchFailure(op, "not of a reshape to this rank");
    Extents from = getExtents(reshape.getX()), to = getExtents(reshape);
    // The axes of x in the order of those of the reshape, units apart.
    SmallVector<int64_t> sources(from.size());
    SmallVector<int64_t> fromAxes[2], toAxes[2];
    for (size_t axis = 0; axis < from.size(); ++axis) {
      fromAxes[getConstant(from[axis]) == 1].push_back(axis);
      toAxes[getConstant(to[axis]) == 1].push_back(axis);
    }
    for (auto [sourceAxes, axes] : llvm::zip(fromAxes, toAxes)) {
      if (sourceAxes.size() != axes.size())
        return rewriter.notifyMatchFailure(op, "regroups elements");
      for (auto [source, axis] : llvm::zip(sourceAxes, axes)) {
        if (!isEqual(from[source], to[axis]))
          return rewriter.notifyMatchFailure(op, "regroups elements");
        sources[axis] = source;
      }
    }
    auto permutation = llvm::map_to_vector(
        op.getPermutation(), [&](int64_t axis) { return sources[axis]; });
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), reshape.getX(),
                                             permutation);
    return success();
  }
};

/// `x` transposed by `permutation`, if that needs no transpose: x is a
/// transpose back, a splat, or a broadcast of a tensor with one axis. Null if
/// it does.
Value transposeForFree(Value x, ArrayRef<int64_t> permutation,
                       OpBuilder &builder) {
  Location loc = x.getLoc();
  if (auto inner = x.getDefiningOp<TransposeOp>()) {
    ArrayRef<int64_t> before = inner.getPermutation();
    bool cancels = true;
    for (auto [i, axis] : llvm::enumerate(permutation))
      cancels &= before[axis] == int64_t(i);
    return cancels ? inner.getX() : Value();
  }
  auto broadcast = x.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  Value from = broadcast.getX();
  Extents extents = getExtents(from), aligned(permutation.size());
  std::fill(aligned.begin(), aligned.end(), builder.getAffineConstantExpr(1));
  llvm::copy(extents, aligned.end() - extents.size());
  if (llvm::count_if(aligned,
                     [](AffineExpr e) { return getConstant(e) != 1; }) > 1)
    return {};
  Type type = getTensorType(x).getElementType();
  auto permute = [&](ArrayRef<AffineExpr> values) {
    return makeTensorType(applyPermutation(values, permutation), type);
  };
  if (!extents.empty())
    from = reshapeTo(builder, loc, from, permute(aligned));
  return builder.create<BroadcastOp>(loc, permute(getExtents(x)), from);
}

bool isFreelyTransposed(Value x, ArrayRef<int64_t> permutation) {
  if (auto inner = x.getDefiningOp<TransposeOp>()) {
    for (auto [i, axis] : llvm::enumerate(permutation))
      if (inner.getPermutation()[axis] != int64_t(i))
        return false;
    return true;
  }
  auto broadcast = x.getDefiningOp<BroadcastOp>();
  return broadcast &&
         llvm::count_if(getExtents(broadcast.getX()),
                        [](AffineExpr e) { return getConstant(e) != 1; }) <= 1;
}

/// transpose(f(transpose(x), splat)) = f(x, splat) where the transposes cancel,
/// also of a repeated vector alone
struct CancelTransposesAround : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    Operation *inner = op.getX().getDefiningOp();
    if (!inner || !isa<PointwiseOpInterface>(inner) ||
        !hasOneLocalUse(op.getX()))
      return rewriter.notifyMatchFailure(op, "not of a pointwise op");
    ArrayRef<int64_t> permutation = op.getPermutation();
    for (Value operand : inner->getOperands())
      if (!isFreelyTransposed(operand, permutation))
        return rewriter.notifyMatchFailure(op, "an operand is not transposed");
    SmallVector<Value> operands;
    for (Value operand : inner->getOperands())
      operands.push_back(transposeForFree(operand, permutation, rewriter));
    OperationState state(inner->getLoc(), inner->getName(), operands,
                         {op.getType()}, inner->getAttrs());
    rewriter.replaceOp(op, rewriter.create(state));
    return success();
  }
};

/// A transpose of the last two axes, at the end of `x`'s: null if x is not one.
/// `rest` is what remains to be done to the operand of the transpose.
struct MatrixTranspose {
  Value x;
  SmallVector<int64_t> rest;
};
std::optional<MatrixTranspose> matchMatrixTranspose(Value x) {
  auto op = x.getDefiningOp<TransposeOp>();
  if (!op || getRank(x) < 2)
    return std::nullopt;
  SmallVector<int64_t> rest(op.getPermutation());
  // The innermost axis stays innermost if the flag swaps the last two.
  if (rest[rest.size() - 2] != int64_t(rest.size()) - 1)
    return std::nullopt;
  std::swap(rest[rest.size() - 2], rest[rest.size() - 1]);
  return MatrixTranspose{op.getX(), rest};
}

/// matmul of a transposed matrix = matmul with the flag
struct TransposeInMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    auto lhs = matchMatrixTranspose(op.getLhs());
    auto rhs =
        op.getPackedRhs() ? std::nullopt : matchMatrixTranspose(op.getRhs());
    if (!lhs && !rhs)
      return rewriter.notifyMatchFailure(op, "no operand is transposed");
    auto apply = [&](std::optional<MatrixTranspose> &match, Value operand,
                     bool &flag) -> Value {
      if (!match)
        return operand;
      flag = !flag;
      return rewriter.create<TransposeOp>(operand.getLoc(), match->x,
                                          match->rest);
    };
    bool transposeLhs = op.getTransposeLhs(),
         transposeRhs = op.getTransposeRhs();
    Value newLhs = apply(lhs, op.getLhs(), transposeLhs);
    Value newRhs = apply(rhs, op.getRhs(), transposeRhs);
    rewriter.replaceOpWithNewOp<MatmulOp>(op, op.getType(), newLhs, newRhs,
                                          transposeLhs, transposeRhs,
                                          op.getPackedRhs(), op.getTf32());
    return success();
  }
};

/// broadcast(reshape(x)) = broadcast(x) if the reshape only adds leading axes
struct BroadcastWithoutLeadingAxes : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getX().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return rewriter.notifyMatchFailure(op, "not of a reshape");
    Extents from = getExtents(reshape.getX()), to = getExtents(op.getX());
    if (from.size() >= to.size() ||
        ArrayRef(to).take_back(from.size()) != ArrayRef(from) ||
        !llvm::all_of(ArrayRef(to).drop_back(from.size()),
                      [](AffineExpr e) { return getConstant(e) == 1; }))
      return rewriter.notifyMatchFailure(op, "reshape does more");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), reshape.getX());
    return success();
  }
};

/// A broadcast that only adds unit axes = a reshape
struct BroadcastToReshape : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    Extents from = getExtents(op.getX()), to = getExtents(op.getResult());
    Extents added(to.begin(), to.end() - from.size());
    if (ArrayRef(to).take_back(from.size()) != ArrayRef(from) ||
        !llvm::all_of(added, [](AffineExpr e) { return getConstant(e) == 1; }))
      return rewriter.notifyMatchFailure(op, "repeats elements");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

/// A reduction of unit axes = a reshape
struct ReduceUnitAxes : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    Extents extents = getExtents(op.getX());
    for (int64_t axis : op.getAxes())
      if (getConstant(extents[axis]) != 1)
        return rewriter.notifyMatchFailure(op, "an axis has several elements");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getX());
    return success();
  }
};

/// What a reduction of all axes combines, made of pointwise ops on tensors that
/// one permutation transposes.
class TransposedTree {
public:
  /// False if `x` is none.
  bool add(Value x) {
    if (auto transpose = x.getDefiningOp<TransposeOp>()) {
      if (!permutation.empty() && permutation != transpose.getPermutation())
        return false;
      permutation = transpose.getPermutation();
      return true;
    }
    auto broadcast = x.getDefiningOp<BroadcastOp>();
    if (broadcast && getRank(broadcast.getX()) == 0)
      return true;
    Operation *op = x.getDefiningOp();
    return op && isa<PointwiseOpInterface>(op) && ++size <= kMaxSize &&
           llvm::all_of(
               op->getUsers(),
               [&](Operation *user) { return user == *op->user_begin(); }) &&
           llvm::all_of(op->getOperands(), [&](Value y) { return add(y); });
  }
  bool isTransposed() const { return !permutation.empty(); }

  /// The same of the tensors as they are.
  Value rebuild(OpBuilder &builder, Value x) const {
    if (auto transpose = x.getDefiningOp<TransposeOp>())
      return transpose.getX();
    Extents extents = applyPermutation(ArrayRef(getExtents(x)),
                                       invertPermutationVector(permutation));
    Type type = makeTensorType(extents, getElementTypeOrSelf(x));
    if (auto broadcast = x.getDefiningOp<BroadcastOp>())
      return builder.create<BroadcastOp>(x.getLoc(), type, broadcast.getX());
    Operation *op = x.getDefiningOp();
    auto operands = llvm::map_to_vector(
        op->getOperands(), [&](Value y) { return rebuild(builder, y); });
    OperationState state(op->getLoc(), op->getName(), operands, {type},
                         op->getAttrs());
    return builder.create(state)->getResult(0);
  }

private:
  static constexpr int kMaxSize = 8;
  int size = 0;
  ArrayRef<int64_t> permutation;
};

/// A reduction of all axes does not care about their order.
struct ReduceTransposed : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    TransposedTree tree;
    if (op.getType().getRank() > 0 || !tree.add(op.getX()) ||
        !tree.isTransposed())
      return rewriter.notifyMatchFailure(op, "not of transposed tensors");
    Value x = tree.rebuild(rewriter, op.getX());
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(x); });
    return success();
  }
};

} // namespace

void addTransposePatterns(RewritePatternSet &patterns) {
  patterns
      .add<TransposeToReshape, TransposeOfMovedUnits, CancelTransposesAround,
           TransposeInMatmul, BroadcastWithoutLeadingAxes, BroadcastToReshape,
           ReduceUnitAxes, ReduceTransposed>(patterns.getContext());
}

} // namespace tcc

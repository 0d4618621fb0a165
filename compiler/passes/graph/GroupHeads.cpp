//===- GroupHeads.cpp - Attention that reads shared keys once -------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_GROUPHEADSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// A key or value [batch..., heads, columns, n] of which `group` heads that
/// follow each other are one of `source` [batch..., heads / group, columns, n].
struct Repeated {
  Value source;
  int64_t group;
};

} // namespace

/// The only axis along which `broadcast` repeats, counted from the end, and how
/// often.
static std::optional<std::pair<int64_t, int64_t>>
matchRepeat(BroadcastOp broadcast) {
  Extents from = getExtents(broadcast.getX()),
          to = getExtents(broadcast.getResult());
  from.insert(from.begin(), to.size() - from.size(),
              getAffineConstantExpr(1, broadcast.getContext()));
  std::optional<std::pair<int64_t, int64_t>> found;
  for (auto [axis, pair] : llvm::enumerate(llvm::zip_equal(from, to))) {
    auto [before, after] = pair;
    if (isEqual(before, after))
      continue;
    auto count = getConstant(after);
    if (found || !count)
      return std::nullopt;
    found = {int64_t(to.size() - axis), *count};
  }
  return found;
}

/// Repeats of the heads, or of an axis behind them that a reshape joins with
/// them.
static std::optional<Repeated> matchRepeated(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  auto broadcast =
      (reshape ? reshape.getX() : value).getDefiningOp<BroadcastOp>();
  auto repeat = broadcast ? matchRepeat(broadcast) : std::nullopt;
  if (!repeat || repeat->first != 3)
    return std::nullopt;
  Extents extents = getExtents(value), inner = getExtents(broadcast);
  int64_t heads = extents.size() - 3;
  auto count = getConstant(extents[heads]);
  if (!count || *count % repeat->second != 0)
    return std::nullopt;
  // [batch..., heads / group, group, columns, n], or without an axis of its own
  // for the heads where it would be of extent 1.
  int64_t shared = *count / repeat->second;
  Extents split = extents;
  split[heads] = getAffineConstantExpr(repeat->second, value.getContext());
  if (shared != 1 || inner.size() != split.size())
    split.insert(split.begin() + heads,
                 getAffineConstantExpr(shared, value.getContext()));
  if (!llvm::equal(split, inner, isEqual))
    return std::nullopt;
  return Repeated{broadcast.getX(), repeat->second};
}

namespace {

/// attention(q, repeat(k), repeat(v)) with the heads of a group as rows.
struct GroupHeads : OpRewritePattern<AttentionOp> {
  GroupHeads(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    int64_t rank = getRank(op.getQuery());
    if (rank < 3 || getRank(op.getKey()) != rank ||
        getRank(op.getValue()) != rank)
      return rewriter.notifyMatchFailure(op, "without heads");
    if (op.getNormalizer())
      return rewriter.notifyMatchFailure(op, "its rows are read");
    auto key = matchRepeated(op.getKey()), value = matchRepeated(op.getValue());
    if (!key || !value || key->group != value->group)
      return rewriter.notifyMatchFailure(op, "key and value are not repeated");
    if (repeatsHeads(op.getMask(), getExtent(op.getQuery(), rank - 3)))
      return rewriter.notifyMatchFailure(op, "groups of heads share a mask");
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    int64_t group = key->group;
    Value query = mergeHeads(builder, op.getQuery(), group);
    Value mask = op.getMask() ? mergeMask(builder, op, group) : Value();
    Extents extents = getExtents(query);
    extents.back() = getExtents(op.getValue()).back();
    Type elementType = getElementTypeOrSelf(op.getResult());
    auto grouped = builder.create<AttentionOp>(
        makeTensorType(extents, elementType), /*normalizer=*/Type(), query,
        dropHeads(builder, key->source, op.getKey(), group),
        dropHeads(builder, value->source, op.getValue(), group), mask,
        op.getScaleAttr(), op.getGuardAttr());
    log.add(op, "grouped", "heads that share a key are rows");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getResult().getType(),
                                           grouped.getResult());
    return success();
  }

private:
  /// Whether `mask` is the same for some of the `heads`, but not for all.
  static bool repeatsHeads(Value mask, AffineExpr heads) {
    if (!mask)
      return false;
    AffineExpr extent = getExtent(mask, getRank(mask) - 3);
    return getConstant(extent) != 1 && !isEqual(extent, heads);
  }

  /// [batch..., heads, rows, n] as [batch..., heads / group, group * rows, n].
  static Value mergeHeads(ImplicitLocOpBuilder &builder, Value x,
                          int64_t group) {
    Extents extents = getExtents(x);
    size_t heads = extents.size() - 3;
    extents[heads] = extents[heads].floorDiv(group);
    extents[heads + 1] = extents[heads + 1] * group;
    return builder.create<ReshapeOp>(
        makeTensorType(extents, getElementTypeOrSelf(x)), x);
  }

  /// The mask for merged heads; one that is the same for all heads stays so.
  static Value mergeMask(ImplicitLocOpBuilder &builder, AttentionOp op,
                         int64_t group) {
    Value mask = op.getMask();
    int64_t heads = getRank(op.getQuery()) - 3;
    if (auto broadcast = mask.getDefiningOp<BroadcastOp>()) {
      Extents from = getExtents(broadcast.getX()), to = getExtents(mask);
      bool isShared = from.size() == to.size() &&
                      getConstant(from[heads]) == 1 &&
                      llvm::equal(ArrayRef(from).drop_front(heads + 1),
                                  ArrayRef(to).drop_front(heads + 1), isEqual);
      mask = isShared ? broadcast.getX() : mask;
    }
    Extents extents = getExtents(mask);
    if (getConstant(extents[heads]) == 1) {
      extents[heads] = builder.getAffineConstantExpr(group);
      mask = builder.create<BroadcastOp>(
          makeTensorType(extents, getElementTypeOrSelf(mask)), mask);
    }
    return mergeHeads(builder, mask, group);
  }

  /// `source` with the extents of `repeated`, fewer heads.
  static Value dropHeads(ImplicitLocOpBuilder &builder, Value source,
                         Value repeated, int64_t group) {
    Extents extents = getExtents(repeated);
    size_t heads = extents.size() - 3;
    extents[heads] = extents[heads].floorDiv(group);
    return builder.createOrFold<ReshapeOp>(
        makeTensorType(extents, getElementTypeOrSelf(source)), source);
  }

  DecisionLog &log;
};

struct GroupHeadsPass : impl::GroupHeadsPassBase<GroupHeadsPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "group-heads");
    RewritePatternSet patterns(&getContext());
    patterns.add<GroupHeads>(&getContext(), log);
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace tcc

//===- MergeAttention.cpp - One kernel where several read the same --------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/CausalMask.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_MERGEATTENTIONPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// Gradients of query, key and value, or what is made of them.
using Parts = SmallVector<Value, 3>;

} // namespace

// --- The normalizer

/// The attention before `op`, in its block, that computes the same scores.
static AttentionOp findAttention(AttentionNormalizerOp op) {
  for (Operation *user : op.getQuery().getUsers()) {
    auto attention = dyn_cast<AttentionOp>(user);
    if (attention && !attention.getNormalizer() &&
        attention.getQuery() == op.getQuery() &&
        attention.getKey() == op.getKey() &&
        attention.getMask() == op.getMask() &&
        attention.getScaleAttr() == op.getScaleAttr() &&
        takesTensorCores(attention) &&
        attention->getBlock() == op->getBlock() &&
        attention->isBeforeInBlock(op))
      return attention;
  }
  return {};
}

static bool mergeNormalizer(AttentionNormalizerOp op) {
  AttentionOp old = findAttention(op);
  if (!old)
    return false;
  OpBuilder builder(old);
  auto attention = builder.create<AttentionOp>(
      old.getLoc(), old.getResult().getType(), op.getType(), old.getQuery(),
      old.getKey(), old.getValue(), old.getMask(), old.getScaleAttr(),
      old.getGuardAttr());
  old.getResult().replaceAllUsesWith(attention.getResult());
  op.replaceAllUsesWith(attention.getNormalizer());
  old.erase();
  op.erase();
  return true;
}

// --- The gradients

/// The gradient of `of` beside `op`; null if there is none.
static AttentionGradientOp findGradient(AttentionGradientOp op,
                                        AttentionOperand of) {
  for (Operation *user : op.getNormalizer().getUsers()) {
    auto other = dyn_cast<AttentionGradientOp>(user);
    if (other && other.getOf() == of && other->getBlock() == op->getBlock() &&
        llvm::equal(other->getOperands(), op->getOperands()) &&
        other.getScaleAttr() == op.getScaleAttr() &&
        other.getGuard() == op.getGuard())
      return other;
  }
  return {};
}

/// Registers have room for the sums of two results.
static bool fitsTogether(AttentionGradientOp op) {
  constexpr int64_t kMaxColumns = 64;
  auto columns = getConstant(getExtents(op.getQuery()).back());
  return takesTensorCores(op) && columns && *columns <= kMaxColumns &&
         llvm::equal(getExtents(op.getQuery()), getExtents(op.getKey()),
                     isEqual) &&
         llvm::equal(getExtents(op.getQuery()), getExtents(op.getValue()),
                     isEqual);
}

/// The results of the ops of type `Op` that are the only readers of `parts`,
/// and alike; nothing if there are none.
template <typename Op> static Parts findReaders(const Parts &parts) {
  Parts results;
  for (Value part : parts) {
    auto op = part.hasOneUse() ? dyn_cast<Op>(*part.user_begin()) : Op();
    if (!op ||
        (!results.empty() &&
         (op.getType() != results.front().getType() ||
          op->getAttrs() != results.front().getDefiningOp()->getAttrs())))
      return {};
    results.push_back(op);
  }
  return results;
}

/// The axis along which a reader concatenates `parts`, else the first.
static int64_t findJoinedAxis(const Parts &parts) {
  for (Operation *user : parts.front().getUsers())
    if (auto concat = dyn_cast<ConcatOp>(user);
        concat && llvm::equal(concat.getOperands(), parts))
      return concat.getAxis();
  return 0;
}

/// `all` of what is computed for `parts` as these are concatenated along `axis`
/// once each is transposed by `permutation`.
static Value join(OpBuilder &builder, Value all, const Parts &parts,
                  ArrayRef<int64_t> permutation, int64_t axis) {
  SmallVector<int64_t> moved;
  for (int64_t from : permutation)
    moved.push_back(from + 1);
  moved.insert(moved.begin() + axis, 0);
  if (!llvm::is_sorted(moved))
    all = builder.create<TransposeOp>(all.getLoc(), all, moved);
  Extents extents = getExtents(parts.front());
  extents[axis] = extents[axis] * int64_t(parts.size());
  return builder.create<ReshapeOp>(
      all.getLoc(), makeTensorType(extents, getElementTypeOrSelf(all)), all);
}

static void replaceBySlices(OpBuilder &builder, Value joined,
                            const Parts &parts, int64_t axis) {
  AffineExpr zero = builder.getAffineConstantExpr(0);
  SmallVector<AffineExpr> starts(getRank(joined), zero);
  SmallVector<int64_t> steps(starts.size(), 1);
  for (Value part : parts) {
    part.replaceAllUsesWith(builder.create<SliceOp>(
        joined.getLoc(), part.getType(), joined,
        makeSizeMap(starts, builder.getContext()), steps));
    starts[axis] = starts[axis] + getExtent(part, axis);
  }
}

/// Erases `value`'s op and what leads to it from the gradient, which nothing
/// else reads.
static void eraseFromGradient(Value value) {
  for (Operation *op = value.getDefiningOp(); op;) {
    Operation *from = isa<AttentionGradientOp>(op)
                          ? nullptr
                          : op->getOperand(0).getDefiningOp();
    op->erase();
    op = from;
  }
}

/// The gradients become one that is rounded, transposed and concatenated as
/// each of them is: so a kernel stores them where they are read. `gradients`
/// are those of query, key and value.
static void mergeGradients(ArrayRef<AttentionGradientOp> gradients) {
  AttentionGradientOp first = *llvm::min_element(
      gradients, [](AttentionGradientOp a, AttentionGradientOp b) {
        return a->isBeforeInBlock(b);
      });
  OpBuilder builder(first);
  Location loc = first.getLoc();
  Extents extents = getExtents(first.getQuery());
  extents.insert(extents.begin(), builder.getAffineConstantExpr(3));
  auto type = makeTensorType(extents, getElementTypeOrSelf(first.getResult()));
  Value all = builder.create<AttentionGradientOp>(
      loc, type,
      AttentionOperandAttr::get(builder.getContext(), AttentionOperand::all),
      first.getQuery(), first.getKey(), first.getValue(), first.getGradient(),
      first.getNormalizer(), first.getShare(), first.getMask(),
      first.getScaleAttr(), first.getGuardAttr());
  Parts parts;
  for (AttentionGradientOp gradient : gradients)
    parts.push_back(gradient.getResult());
  if (Parts narrow = findReaders<CastOp>(parts); !narrow.empty()) {
    parts = narrow;
    all = builder.create<CastOp>(
        loc, withElementType(type, getElementTypeOrSelf(parts.front())), all);
  }
  auto permutation =
      llvm::to_vector(llvm::seq<int64_t>(0, getRank(first.getQuery())));
  if (Parts moved = findReaders<TransposeOp>(parts); !moved.empty()) {
    parts = moved;
    permutation = llvm::to_vector(
        moved.front().getDefiningOp<TransposeOp>().getPermutation());
  }
  int64_t axis = findJoinedAxis(parts);
  Value joined = join(builder, all, parts, permutation, axis);
  replaceBySlices(builder, joined, parts, axis);
  llvm::for_each(parts, eraseFromGradient);
}

// --- The mask's gradient

/// A mask's gradient is the sum of all scores' that read it: some blocks have a
/// part of these each. A multiple of the processors of large devices.
static void splitSums(AttentionGradientOp op) {
  constexpr int64_t kWantedBlocks = 512, kTileElements = 64 * 32;
  auto elements = getNumElements(getExtents(op.getMask()), op.getContext());
  auto scores = getNumElements(getExtents(op.getQuery()), op.getContext());
  std::optional<int64_t> count = getConstant(elements);
  if (!count || *count == 0)
    return;
  // Scores are as many as the mask's elements, times its repeats.
  scores = scores.floorDiv(getExtents(op.getQuery()).back()) *
           getExtents(op.getMask()).back();
  int64_t parts = llvm::divideCeil(kWantedBlocks * kTileElements, *count);
  if (std::optional<int64_t> all = getConstant(scores))
    parts = std::min(parts, *all / *count);
  if (parts < 2)
    return;
  OpBuilder builder(op);
  Extents extents = getExtents(op.getResult());
  extents.front() = builder.getAffineConstantExpr(parts);
  auto split = cast<AttentionGradientOp>(builder.clone(*op));
  Type elementType = getElementTypeOrSelf(op.getResult());
  split.getResult().setType(makeTensorType(extents, elementType));
  Value sum = builder.create<ReduceOp>(op.getLoc(), ReduceKind::sum,
                                       split.getResult(), 0);
  op.replaceAllUsesWith(
      reshapeTo(builder, op.getLoc(), sum, getTensorType(op.getResult())));
  op.erase();
}

namespace {

struct MergeAttentionPass : impl::MergeAttentionPassBase<MergeAttentionPass> {
  void markCausal(DecisionLog &log) {
    getOperation()->walk([&](AttentionOpInterface op) {
      if (!op.getMask() || !takesTensorCores(op) || !isCausalMask(op.getMask()))
        return;
      op->setAttr(kCausalAttr, UnitAttr::get(&getContext()));
      log.add(op, "causal", "what the mask hides is not computed");
    });
  }

  void runOnOperation() override {
    DecisionLog log(getOperation(), "merge-attention");
    SmallVector<AttentionNormalizerOp> normalizers;
    SmallVector<AttentionGradientOp> queries, masks;
    getOperation()->walk([&](Operation *op) {
      if (auto normalizer = dyn_cast<AttentionNormalizerOp>(op))
        normalizers.push_back(normalizer);
      else if (auto gradient = dyn_cast<AttentionGradientOp>(op);
               gradient && gradient.getOf() == AttentionOperand::query)
        queries.push_back(gradient);
      else if (gradient && gradient.getOf() == AttentionOperand::mask &&
               takesTensorCores(gradient))
        masks.push_back(gradient);
    });
    for (AttentionGradientOp query : queries) {
      auto key = findGradient(query, AttentionOperand::key);
      auto value = findGradient(query, AttentionOperand::value);
      if (!key || !value || !fitsTogether(query))
        continue;
      log.add(query, "merged", "one kernel makes all gradients");
      mergeGradients({query, key, value});
    }
    llvm::for_each(masks, splitSums);
    for (AttentionNormalizerOp normalizer : normalizers)
      mergeNormalizer(normalizer);
    markCausal(log);
  }
};

} // namespace
} // namespace tcc

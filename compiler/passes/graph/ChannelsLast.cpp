//===- ChannelsLast.cpp - Convolutions with the channels innermost --------===//

#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"
#include "dialects/graph/ops/Window.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_CHANNELSLASTPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// An extent that is known at run time only counts as so many elements.
constexpr double kDynamicExtent = 64;

double estimateBytes(Value tensor) {
  double bytes =
      getTensorType(tensor).getElementType().getIntOrFloatBitWidth() / 8.0;
  for (AffineExpr extent : getExtents(tensor))
    bytes *= double(getConstant(extent).value_or(kDynamicExtent));
  return bytes;
}

RankedTensorType permuteType(Value tensor, ArrayRef<int64_t> permutation) {
  Extents extents = getExtents(tensor);
  return makeTensorType(applyPermutation(ArrayRef(extents), permutation),
                        getElementTypeOrSelf(tensor));
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [i, axis] : llvm::enumerate(permutation))
    if (axis != int64_t(i))
      return false;
  return true;
}

/// Rewrites ops in their order: behind a convolution stands a transpose back,
/// which each reader takes over to its own result if that moves no more bytes.
class Converter {
public:
  explicit Converter(DecisionLog &log) : log(log) {}

  void convert(Operation *op) {
    if (auto conv = dyn_cast<ConvOp>(op))
      convertConvolution(conv);
    else if (auto transpose = dyn_cast<TransposeOp>(op))
      composeTransposes(transpose);
    else if (op->getNumResults() == 1 && !moveTransposeBehind(op))
      if (auto reshape = dyn_cast<ReshapeOp>(op))
        convertShuffle(reshape);
  }

private:
  DecisionLog &log;
  llvm::DenseSet<Operation *> movable; // transposes back that this pass made
  // Movable transposes that do what a transpose of the model's did as well.
  llvm::DenseSet<Operation *> composed;

  bool isMovable(TransposeOp op) const;
  Value transpose(OpBuilder &builder, Value x, ArrayRef<int64_t> permutation);
  std::optional<Value> permuteFreely(OpBuilder &builder, Value x,
                                     ArrayRef<int64_t> permutation);
  TransposeOp replace(Operation *op, const PermutedResult &result);
  void convertConvolution(ConvOp op);
  void composeTransposes(TransposeOp op);
  void convertShuffle(ReshapeOp op);
  bool moveTransposeBehind(Operation *op);
  bool moveTransposeBehind(Operation *op, TransposeOp moved);
  PermutedResult permute(OpBuilder &builder, Operation *op, ValueRange operands,
                         ArrayRef<int64_t> permutation);
};

} // namespace

/// `x` with axis i its own axis permutation[i]; null if that takes a kernel of
/// its own.
std::optional<Value> Converter::permuteFreely(OpBuilder &builder, Value x,
                                              ArrayRef<int64_t> permutation) {
  Location loc = x.getLoc();
  if (auto inner = x.getDefiningOp<TransposeOp>()) {
    if (isIdentity(applyPermutation(inner.getPermutation(), permutation)))
      return inner.getX();
  }
  if (auto broadcast = x.getDefiningOp<BroadcastOp>()) {
    Extents from = getExtents(broadcast.getX());
    Extents aligned(permutation.size(), builder.getAffineConstantExpr(1));
    llvm::copy(from, aligned.end() - from.size());
    Type elementType = getElementTypeOrSelf(x);
    Value small = reshapeTo(builder, loc, broadcast.getX(),
                            makeTensorType(aligned, elementType));
    small = builder.create<TransposeOp>(loc, small, permutation);
    return builder.create<BroadcastOp>(loc, permuteType(x, permutation), small);
  }
  if (isParameter(x) || llvm::count_if(getExtents(x), [](AffineExpr e) {
                          return getConstant(e) != 1;
                        }) <= 1)
    return builder.create<TransposeOp>(loc, x, permutation);
  return std::nullopt;
}

Value Converter::transpose(OpBuilder &builder, Value x,
                           ArrayRef<int64_t> permutation) {
  if (auto free = permuteFreely(builder, x, permutation))
    return *free;
  return builder.create<TransposeOp>(x.getLoc(), x, permutation);
}

/// The transpose back that takes the place of `op`; null if it needs none.
TransposeOp Converter::replace(Operation *op, const PermutedResult &result) {
  OpBuilder builder(op);
  TransposeOp back;
  if (!isIdentity(result.permutation)) {
    back = builder.create<TransposeOp>(
        op->getLoc(), result.value,
        invertPermutationVector(result.permutation));
    movable.insert(back);
  }
  op->getResult(0).replaceAllUsesWith(back ? back.getResult() : result.value);
  op->erase();
  return back;
}

/// Why the channels of `op` stay where they are; empty if they do not.
static StringRef getObjection(ConvOp op) {
  if (!op.slides())
    return "";
  if (int64_t(op.getFilters()) < kMinSlidingFilters)
    return "fewer filters than half a vector";
  if (op.getGroups() == 1)
    return "";
  if (!op.hasNarrowGroups())
    return "so many filters read a channel";
  // It is brought into its order in each run.
  if (!isParameter(op.getFilter()) &&
      estimateBytes(op.getFilter()) > estimateBytes(op.getX()))
    return "a filter that is no weight is larger than x";
  return "";
}

void Converter::convertConvolution(ConvOp op) {
  if (op.getChannelsLast())
    return;
  if (StringRef objection = getObjection(op); !objection.empty())
    return log.add(op, "kept", objection);
  OpBuilder builder(op);
  auto permutation = getChannelsLastPermutation(getRank(op.getX()));
  Value x = transpose(builder, op.getX(), permutation);
  Value filter = transpose(builder, op.getFilter(), permutation);
  auto clone = cast<ConvOp>(builder.clone(*op));
  clone->setOperands({x, filter});
  clone.getResult().setType(permuteType(op.getResult(), permutation));
  clone.setChannelsLast(true);
  log.add(op, "converted", "channels last");
  replace(op, {clone.getResult(), permutation});
}

/// Whether `op` takes channels back to the front, or moves what a convolution
/// with the channels last gives.
bool Converter::isMovable(TransposeOp op) const {
  int64_t rank = getRank(op.getX());
  if (movable.contains(op))
    return true;
  if (auto conv = op.getX().getDefiningOp<ConvOp>();
      conv && conv.getChannelsLast())
    return true;
  // One of the model's own. Of rank 3 it is as likely the business of a matmul.
  auto last = getChannelsLastPermutation(std::max<int64_t>(rank, 2));
  return rank >= 4 &&
         ArrayRef(invertPermutationVector(last)) == op.getPermutation();
}

/// A transpose of what this pass transposed is one transpose, which its readers
/// take over as the first one.
void Converter::composeTransposes(TransposeOp op) {
  auto moved = op.getX().getDefiningOp<TransposeOp>();
  if (!moved || !movable.contains(moved))
    return;
  auto whole = applyPermutation(moved.getPermutation(), op.getPermutation());
  if (auto back = replace(op, {moved.getX(), invertPermutationVector(whole)}))
    composed.insert(back);
}

namespace {

/// An order of axes that ends with `channels` ones that become the channels.
struct MergedLast {
  SmallVector<int64_t> order;
  size_t channels;
};

} // namespace

/// The order of the axes of `x` in which those that `op` merges into the
/// channels come last; nullopt if it does not only merge neighbours.
static std::optional<MergedLast> getMergedLast(ReshapeOp op) {
  Extents from = getExtents(op.getX()), to = getExtents(op.getResult());
  SmallVector<SmallVector<int64_t>> merged;
  size_t next = 0;
  for (AffineExpr extent : to) {
    SmallVector<int64_t> axes;
    AffineExpr found = getAffineConstantExpr(1, op.getContext());
    while (next < from.size() && (axes.empty() || !isEqual(found, extent))) {
      found = found * from[next];
      axes.push_back(next++);
    }
    if (!isEqual(found, extent))
      return std::nullopt;
    merged.push_back(axes);
  }
  if (next != from.size())
    return std::nullopt;
  SmallVector<int64_t> order;
  for (int64_t axis : getChannelsLastPermutation(to.size()))
    llvm::append_range(order, merged[axis]);
  return MergedLast{order, merged[1].size()};
}

/// Pixels or channels that are shuffled: split axes change places and are
/// merged. The transpose that this takes leaves the channels last if they come
/// to it so.
void Converter::convertShuffle(ReshapeOp op) {
  auto shuffle = op.getX().getDefiningOp<TransposeOp>();
  if (!shuffle || !shuffle->hasOneUse() || getRank(op.getResult()) < 3 ||
      getRank(op.getResult()) >= getRank(op.getX()))
    return;
  auto merged = getMergedLast(op);
  if (!composed.contains(shuffle) || !merged)
    return;
  auto permutation =
      applyPermutation(shuffle.getPermutation(), ArrayRef(merged->order));
  // Axis 1 of what a convolution with the channels last gives, or of its
  // pieces, is of the rows: where these become channels, the model's own order
  // has the channels last.
  if (llvm::is_contained(ArrayRef(permutation).take_back(merged->channels), 1))
    return;
  OpBuilder builder(op);
  Value last = builder.create<TransposeOp>(shuffle.getLoc(), shuffle.getX(),
                                           permutation);
  PermutedResult result = op.permute(builder, last, merged->order);
  if (result.value)
    replace(op, result);
  else
    last.getDefiningOp()->erase();
}

/// False if no transpose is moved.
bool Converter::moveTransposeBehind(Operation *op) {
  if (!isa<PointwiseOpInterface, PermutableOpInterface>(op))
    return false;
  for (Value operand : op->getOperands()) {
    auto moved = operand.getDefiningOp<TransposeOp>();
    if (moved && isMovable(moved))
      return moveTransposeBehind(op, moved);
  }
  return false;
}

/// Whether `x` is an argument, a parameter that is trained say, or made of one
/// element by element: what is computed of it is likely to be stored in its
/// order.
static bool isOfArgument(Value x) {
  while (auto op = x.getDefiningOp<PointwiseOpInterface>()) {
    auto isTensor = [](Value operand) {
      return !getSplat(operand) && !operand.getDefiningOp<BroadcastOp>();
    };
    auto tensors = llvm::make_filter_range(op->getOperands(), isTensor);
    if (!llvm::hasSingleElement(tensors))
      return false;
    x = *tensors.begin();
  }
  return isa<BlockArgument>(x);
}

bool Converter::moveTransposeBehind(Operation *op, TransposeOp moved) {
  auto permutation = invertPermutationVector(moved.getPermutation());
  OpBuilder builder(op);
  SmallVector<Value> operands;
  llvm::SmallDenseSet<Value> seen;
  double saved = 0;
  bool hasOrder = false;
  for (Value operand : op->getOperands()) {
    if (getRank(operand) != int64_t(permutation.size())) {
      operands.push_back(operand);
      continue;
    }
    bool isFirst = seen.insert(operand).second;
    auto free = permuteFreely(builder, operand, permutation);
    if (isFirst && !free) {
      saved -= estimateBytes(operand);
      hasOrder |= isOfArgument(operand);
    } else if (isFirst &&
               isa_and_present<TransposeOp>(operand.getDefiningOp())) {
      saved += estimateBytes(operand);
    }
    operands.push_back(
        free ? *free
             : builder.create<TransposeOp>(op->getLoc(), operand, permutation));
  }
  if (saved < 0 || (saved == 0 && hasOrder))
    return false;
  PermutedResult result = permute(builder, op, operands, permutation);
  if (result.value)
    replace(op, result);
  return result.value != nullptr;
}

PermutedResult Converter::permute(OpBuilder &builder, Operation *op,
                                  ValueRange operands,
                                  ArrayRef<int64_t> permutation) {
  if (auto permutable = dyn_cast<PermutableOpInterface>(op))
    return permutable.permute(builder, operands, permutation);
  OperationState state(op->getLoc(), op->getName(), operands,
                       {permuteType(op->getResult(0), permutation)},
                       op->getAttrs());
  return {builder.create(state)->getResult(0), llvm::to_vector(permutation)};
}

namespace {

struct ChannelsLastPass : impl::ChannelsLastPassBase<ChannelsLastPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "channels-last");
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool hasWindows = false;
      SmallVector<Operation *> ops;
      function.walk<WalkOrder::PreOrder>([&](Operation *op) {
        hasWindows |= isa<ConvOp>(op);
        ops.push_back(op);
      });
      if (!hasWindows)
        continue;
      Converter converter(log);
      for (Operation *op : ops)
        converter.convert(op);
      // What was taken over leaves the old ops behind.
      IRRewriter rewriter(&getContext());
      (void)runRegionDCE(rewriter, function->getRegions());
    }
  }
};

} // namespace

} // namespace tcc

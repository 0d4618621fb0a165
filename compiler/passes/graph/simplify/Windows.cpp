#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// Taps [first, end) of a spatial axis.
struct TapRange {
  int64_t first, end;
};

/// The taps of axis `i` of the window that meet an element of x for some
/// position, with those between; all of them where sizes are not known.
TapRange findMetTaps(ConvOp op, size_t i) {
  int64_t taps = op.getWindow()[i], stride = op.getStrides()[i],
          dilation = op.getDilations()[i], pad = op.getPadLow()[i];
  bool channelsLast = op.getChannelsLast();
  auto input = getConstant(getExtent(op.getX(), i + (channelsLast ? 1 : 2)));
  auto output =
      getConstant(getExtent(op.getResult(), i + (channelsLast ? 1 : 2)));
  if (!input || !output)
    return {0, taps};
  auto meets = [&](int64_t tap) {
    int64_t at = tap * dilation - pad;
    int64_t position = at < 0 ? (-at + stride - 1) / stride : 0;
    return position < *output && at + position * stride < *input;
  };
  int64_t first = 0, end = taps;
  // The padding that is left is not negative.
  while (first + 1 < end && !meets(first) && (first + 1) * dilation <= pad)
    ++first;
  while (end - 1 > first && !meets(end - 1) &&
         (taps - end + 1) * dilation <= op.getPadHigh()[i])
    --end;
  return {first, end};
}

/// A convolution without taps that read only padding, as those of pyramids with
/// large dilations over small pictures do.
struct DropTapsOfPadding : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getPackedFilter() || op.getZeroTaps() || op.getInputDilations())
      return rewriter.notifyMatchFailure(op, "the filter is not as it was");
    SmallVector<int64_t> window(op.getWindow()), low(op.getPadLow()),
        high(op.getPadHigh());
    Extents starts, extents = getExtents(op.getFilter());
    starts.assign(extents.size(), rewriter.getAffineConstantExpr(0));
    for (size_t i = 0; i < window.size(); ++i) {
      TapRange met = findMetTaps(op, i);
      size_t axis = i + (op.getChannelsLast() ? 1 : 2);
      low[i] -= met.first * op.getDilations()[i];
      high[i] -= (window[i] - met.end) * op.getDilations()[i];
      window[i] = met.end - met.first;
      starts[axis] = rewriter.getAffineConstantExpr(met.first);
      extents[axis] = rewriter.getAffineConstantExpr(window[i]);
    }
    if (ArrayRef(window) == op.getWindow())
      return rewriter.notifyMatchFailure(op, "each tap meets an element");
    SmallVector<int64_t> steps(extents.size(), 1);
    Value filter = rewriter.create<SliceOp>(
        op.getLoc(),
        makeTensorType(extents, getElementTypeOrSelf(op.getFilter())),
        op.getFilter(), makeSizeMap(starts, op.getContext()), steps);
    auto made = cast<ConvOp>(rewriter.clone(*op));
    made.getFilterMutable().assign(filter);
    made.setWindow(window);
    made.setPadLow(low);
    made.setPadHigh(high);
    rewriter.replaceOp(op, made);
    return success();
  }
};

/// A pool whose windows are the elements = x, as adaptive ones of pictures that
/// have their size.
struct PoolOfElements : OpRewritePattern<PoolOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PoolOp op,
                                PatternRewriter &rewriter) const override {
    auto isOne = [](int64_t size) { return size == 1; };
    auto isZero = [](int64_t size) { return size == 0; };
    if (!llvm::all_of(op.getWindow(), isOne) ||
        !llvm::all_of(op.getStrides(), isOne) ||
        !llvm::all_of(op.getPadLow(), isZero) ||
        !llvm::all_of(op.getPadHigh(), isZero) ||
        op.getType() != op.getX().getType())
      return rewriter.notifyMatchFailure(op, "windows are no elements");
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

} // namespace

void addWindowPatterns(RewritePatternSet &patterns) {
  patterns.add<DropTapsOfPadding, PoolOfElements>(patterns.getContext());
}

} // namespace tcc

#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"
#include "dialects/graph/Gathers.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// The size expressions of `map` that are constants; nullopt if one is not.
std::optional<SmallVector<int64_t>> getConstants(AffineMap map) {
  SmallVector<int64_t> values;
  for (AffineExpr expression : map.getResults()) {
    auto value = getConstant(expression);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

AffineMap makeConstantMap(ArrayRef<int64_t> values, MLIRContext *context) {
  return makeSizeMap(
      llvm::map_to_vector(
          values,
          [&](int64_t value) { return getAffineConstantExpr(value, context); }),
      context);
}

/// slice(slice(x)) = slice(x)
struct ComposeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<SliceOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "not a slice of a slice");
    SmallVector<AffineExpr> starts;
    SmallVector<int64_t> steps;
    for (size_t i = 0; i < op.getSteps().size(); ++i) {
      starts.push_back(inner.getStarts().getResult(i) +
                       op.getStarts().getResult(i) * inner.getSteps()[i]);
      steps.push_back(inner.getSteps()[i] * op.getSteps()[i]);
    }
    rewriter.replaceOpWithNewOp<SliceOp>(
        op, op.getType(), inner.getX(),
        AffineMapAttr::get(makeSizeMap(starts, op.getContext())),
        rewriter.getDenseI64ArrayAttr(steps));
    return success();
  }
};

/// A slice of a concatenation that lies in one operand = a slice of the operand
struct SliceOfConcat : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getX().getDefiningOp<ConcatOp>();
    auto starts = getConstants(op.getStarts());
    if (!concat || !starts)
      return rewriter.notifyMatchFailure(op, "no constant slice of a concat");
    int64_t axis = concat.getAxis();
    auto extent = getConstant(getExtent(op.getResult(), axis));
    if (!extent || *extent == 0)
      return rewriter.notifyMatchFailure(op, "extent is not known");
    int64_t first = (*starts)[axis];
    int64_t last = first + (*extent - 1) * op.getSteps()[axis];
    int64_t offset = 0;
    for (Value operand : concat.getOperands()) {
      auto size = getConstant(getExtent(operand, axis));
      if (!size)
        break;
      if (std::min(first, last) >= offset &&
          std::max(first, last) < offset + *size) {
        (*starts)[axis] = first - offset;
        rewriter.replaceOpWithNewOp<SliceOp>(
            op, op.getType(), operand,
            AffineMapAttr::get(makeConstantMap(*starts, op.getContext())),
            op.getStepsAttr());
        return success();
      }
      offset += *size;
    }
    return rewriter.notifyMatchFailure(op, "reaches over operands");
  }
};

/// Slices start, start + step, ... of an axis.
struct Progression {
  int64_t start, step, count;
};

/// nullopt if `slices` are in no progression.
std::optional<Progression> getProgression(ArrayRef<int64_t> slices) {
  int64_t count = slices.size();
  if (count == 0)
    return std::nullopt;
  int64_t step = count == 1 ? 1 : slices[1] - slices[0];
  for (int64_t i = 1; i < count; ++i)
    if (step == 0 || slices[i] - slices[i - 1] != step)
      return std::nullopt;
  return Progression{slices.front(), step, count};
}

/// gather at constant indices in a progression = slice. Several rows of a
/// parameter stay a gather: training knows an embedding by that.
struct GatherToSlice : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    int64_t axis = op.getAxis();
    auto slices = findSlices(op);
    auto indices = slices ? getProgression(*slices) : std::nullopt;
    if (!indices)
      return rewriter.notifyMatchFailure(op, "indices are no progression");
    if (indices->count > 1 && isParameter(op.getX()))
      return rewriter.notifyMatchFailure(op, "may be an embedding");
    SmallVector<int64_t> starts(getRank(op.getX()), 0);
    SmallVector<int64_t> steps(starts.size(), 1);
    starts[axis] = indices->start;
    steps[axis] = indices->step;
    Extents extents = getExtents(op.getX());
    extents[axis] = rewriter.getAffineConstantExpr(indices->count);
    Type elementType = getTensorType(op.getX()).getElementType();
    Value slice = rewriter.create<SliceOp>(
        op.getLoc(), makeTensorType(extents, elementType), op.getX(),
        AffineMapAttr::get(makeConstantMap(starts, op.getContext())),
        rewriter.getDenseI64ArrayAttr(steps));
    rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), slice,
                                     getTensorType(op.getResult())));
    return success();
  }
};

/// dynamic_slice at constant starts = slice
struct FixDynamicSlice : OpRewritePattern<DynamicSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DynamicSliceOp op,
                                PatternRewriter &rewriter) const override {
    DenseIntElementsAttr values;
    std::optional<double> splat = getSplat(op.getStarts());
    if (!splat && !matchPattern(op.getStarts(), m_Constant(&values)))
      return rewriter.notifyMatchFailure(op, "starts are not constant");
    SmallVector<int64_t> starts;
    for (int64_t i = 0, e = getRank(op.getX()); i < e; ++i) {
      auto room =
          getConstant(getExtent(op.getX(), i) - getExtent(op.getResult(), i));
      if (!room)
        return rewriter.notifyMatchFailure(op, "an extent is not known");
      int64_t start = splat ? int64_t(*splat) : values.getValues<int64_t>()[i];
      starts.push_back(std::clamp<int64_t>(start, 0, *room));
    }
    SmallVector<int64_t> steps(starts.size(), 1);
    rewriter.replaceOpWithNewOp<SliceOp>(
        op, op.getType(), op.getX(),
        AffineMapAttr::get(makeConstantMap(starts, op.getContext())),
        rewriter.getDenseI64ArrayAttr(steps));
    return success();
  }
};

// --- indices ----------------------------------------------------------------

/// The indices of an op along `axis`, [outer axes..., axis], where they are
/// repeated along all axes behind it, along which the op has all of x: it moves
/// slices. Null if it does not.
Value findSliceIndices(OpBuilder &builder, Value x, Value indices,
                       int64_t axis) {
  auto broadcast = indices.getDefiningOp<BroadcastOp>();
  int64_t rank = getRank(x);
  if (!broadcast || axis + 1 == rank)
    return nullptr;
  Extents wanted = getExtents(x), extents = getExtents(indices),
          own = getExtents(broadcast.getX());
  own.insert(own.begin(), rank - own.size(), builder.getAffineConstantExpr(1));
  for (int64_t i = axis + 1; i < rank; ++i)
    // Types are inferred from the one, and were from the other.
    if (getConstant(own[i]) != 1 || wanted[i] != extents[i])
      return nullptr;
  auto makeOuterType = [&](const Extents &extents) {
    return makeTensorType(ArrayRef(extents).take_front(axis + 1),
                          getElementTypeOrSelf(indices));
  };
  Value outer = reshapeTo(builder, broadcast.getLoc(), broadcast.getX(),
                          makeOuterType(own));
  return builder.createOrFold<BroadcastOp>(broadcast.getLoc(),
                                           makeOuterType(extents), outer);
}

/// gather_elements of slices = gather_nd
struct GatherSlices : OpRewritePattern<GatherElementsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherElementsOp op,
                                PatternRewriter &rewriter) const override {
    int64_t axis = op.getAxis();
    for (int64_t i = 0; i < axis; ++i)
      if (getExtent(op.getX(), i) != getExtent(op.getIndices(), i))
        return rewriter.notifyMatchFailure(op, "reads a part of an outer axis");
    Value indices =
        findSliceIndices(rewriter, op.getX(), op.getIndices(), axis);
    if (!indices)
      return rewriter.notifyMatchFailure(op, "indices differ within slices");
    rewriter.replaceOpWithNewOp<GatherNdOp>(
        op, op.getX(), makeTuples(rewriter, op.getLoc(), indices), axis);
    return success();
  }
};

/// gather_nd at single indices = gather along the first axis
struct GatherFirstAxis : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &rewriter) const override {
    Extents extents = getExtents(op.getIndices());
    if (op.getBatchDims() != 0 || getConstant(extents.back()) != 1)
      return rewriter.notifyMatchFailure(op, "not one index a slice");
    extents.pop_back();
    Value list = reshapeTo(
        rewriter, op.getLoc(), op.getIndices(),
        makeTensorType(extents, getElementTypeOrSelf(op.getIndices())));
    rewriter.replaceOpWithNewOp<GatherOp>(op, op.getX(), list, /*axis=*/0);
    return success();
  }
};

/// scatter_elements of slices = scatter_nd
struct ScatterSlices : OpRewritePattern<ScatterElementsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScatterElementsOp op,
                                PatternRewriter &rewriter) const override {
    int64_t axis = op.getAxis();
    Value indices =
        findSliceIndices(rewriter, op.getX(), op.getIndices(), axis);
    if (!indices)
      return rewriter.notifyMatchFailure(op, "indices differ within slices");
    Value tuples =
        addBatchIndices(rewriter, op.getLoc(),
                        makeTuples(rewriter, op.getLoc(), indices), axis);
    rewriter.replaceOpWithNewOp<ScatterNdOp>(op, op.getX(), tuples,
                                             op.getUpdates(), op.getKind());
    return success();
  }
};

// --- pad ---------------------------------------------------------------------

bool isAll(ArrayRef<int64_t> values, int64_t expected) {
  return llvm::all_of(values, [&](int64_t v) { return v == expected; });
}

/// pad by nothing = x
struct DropEmptyPad : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op,
                                PatternRewriter &rewriter) const override {
    if (!isAll(op.getLow(), 0) || !isAll(op.getHigh(), 0) ||
        !isAll(op.getInterior(), 0))
      return rewriter.notifyMatchFailure(op, "pads something");
    rewriter.replaceOp(op, op.getX());
    return success();
  }
};

/// conv(pad(x, 0)) = conv(x) with more padding
struct PadInConv : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op,
                                PatternRewriter &rewriter) const override {
    auto pad = op.getX().getDefiningOp<PadOp>();
    if (!pad || pad.getMode() != PadMode::constant ||
        getSplat(pad.getValue()) != 0.0 || !isAll(pad.getInterior(), 0))
      return rewriter.notifyMatchFailure(op, "x is not padded with zeros");
    if (op.getInputDilations())
      return rewriter.notifyMatchFailure(op, "x is dilated");
    auto isKept = [&](ArrayRef<int64_t> border) {
      return border[0] == 0 && border[op.getChannelAxis()] == 0 &&
             llvm::all_of(border, [](int64_t v) { return v >= 0; });
    };
    if (!isKept(pad.getLow()) || !isKept(pad.getHigh()))
      return rewriter.notifyMatchFailure(op,
                                         "pads batch or channels, or crops");
    auto add = [&](ArrayRef<int64_t> own, ArrayRef<int64_t> border) {
      SmallVector<int64_t> sum(own);
      for (auto [i, value] :
           llvm::enumerate(border.slice(op.getFirstSpatialAxis(), sum.size())))
        sum[i] += value;
      return sum;
    };
    SmallVector<int64_t> low = add(op.getPadLow(), pad.getLow());
    SmallVector<int64_t> high = add(op.getPadHigh(), pad.getHigh());
    rewriter.modifyOpInPlace(op, [&] {
      op.getXMutable().assign(pad.getX());
      op.setPadLow(low);
      op.setPadHigh(high);
    });
    return success();
  }
};

} // namespace

void addSlicePatterns(RewritePatternSet &patterns) {
  patterns.add<ComposeSlices, SliceOfConcat, GatherToSlice, FixDynamicSlice,
               GatherSlices, GatherFirstAxis, ScatterSlices, DropEmptyPad,
               PadInConv>(patterns.getContext());
}

} // namespace tcc

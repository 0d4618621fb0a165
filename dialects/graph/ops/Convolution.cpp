#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

/// Axes before the spatial ones: batch and channel.
static constexpr int64_t kLeadingAxes = 2;

/// The common part of both ops' shape inference: checks the window and appends
/// the spatial extents of the result.
template <typename Adaptor>
static LogicalResult inferSpatialExtents(std::optional<Location> loc,
                                         Adaptor adaptor, Extents &extents) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  int64_t spatial = type.getRank() - kLeadingAxes;
  if (spatial < 1)
    return emitOptionalError(loc, "expected a spatial axis, found rank ",
                             type.getRank());
  for (ArrayRef<int64_t> values :
       {adaptor.getWindow(), adaptor.getStrides(), adaptor.getPadLow(),
        adaptor.getPadHigh(), adaptor.getDilations()})
    if (int64_t(values.size()) != spatial)
      return emitOptionalError(loc, "expected ", spatial,
                               " window entries, found ", values.size());
  Extents x = getExtents(type);
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t window = adaptor.getWindow()[i], stride = adaptor.getStrides()[i];
    int64_t dilation = adaptor.getDilations()[i];
    if (window < 1 || stride < 1 || dilation < 1)
      return emitOptionalError(loc,
                               "expected positive window, stride and dilation");
    int64_t reach = (window - 1) * dilation + 1;
    AffineExpr free = x[kLeadingAxes + i] + adaptor.getPadLow()[i] +
                      adaptor.getPadHigh()[i] - reach;
    AffineExpr extent = free.floorDiv(stride) + 1;
    if (auto constant = getConstant(extent); constant && *constant < 0)
      return emitOptionalError(loc, "window of ", reach,
                               " elements does not fit axis ",
                               kLeadingAxes + i);
    extents.push_back(extent);
  }
  return success();
}

/// Loops: batch, channel, spatial..., then the reduced ones. The index of x on
/// spatial axis i is p * stride + w * dilation - pad_low.
template <typename Op>
static void appendSpatialIndices(Op op, int64_t firstWindowLoop,
                                 SmallVectorImpl<AffineExpr> &results) {
  MLIRContext *context = op.getContext();
  for (int64_t i = 0, e = op.getWindow().size(); i < e; ++i)
    results.push_back(
        getAffineDimExpr(kLeadingAxes + i, context) * op.getStrides()[i] +
        getAffineDimExpr(firstWindowLoop + i, context) * op.getDilations()[i] -
        op.getPadLow()[i]);
}

template <typename OpTy> static void appendWindow(OpTy op, Extents &extents) {
  for (int64_t extent : op.getWindow())
    extents.push_back(getAffineConstantExpr(extent, op.getContext()));
}

static SmallVector<utils::IteratorType> getWindowLoopKinds(int64_t parallel,
                                                           int64_t reduced) {
  SmallVector<utils::IteratorType> kinds(parallel,
                                         utils::IteratorType::parallel);
  kinds.append(reduced, utils::IteratorType::reduction);
  return kinds;
}

// --- conv --------------------------------------------------------------------

LogicalResult ConvOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  if (type.getRank() <= kLeadingAxes)
    return emitOptionalError(loc, "expected a spatial axis, found rank ",
                             type.getRank());
  Extents extents = {getExtents(type)[0],
                     getAffineConstantExpr(adaptor.getFilters(), context)};
  if (failed(inferSpatialExtents(loc, adaptor, extents)))
    return failure();
  types.push_back(makeTensorType(extents, type.getElementType()));
  return success();
}

static SmallVector<int64_t> getFilterShape(ConvOp op, int64_t channels) {
  constexpr int64_t kPanelRows = ConvOp::kPanelRows;
  int64_t groups = op.getGroups(), perGroup = op.getFilters() / groups;
  int64_t window = 1;
  for (int64_t extent : op.getWindow())
    window *= extent;
  if (op.getPackedFilter())
    return {groups, (perGroup + kPanelRows - 1) / kPanelRows,
            channels / groups * window, kPanelRows};
  SmallVector<int64_t> shape = {int64_t(op.getFilters()), channels / groups};
  llvm::append_range(shape, op.getWindow());
  return shape;
}

LogicalResult ConvOp::verify() {
  auto channels = getConstant(getExtent(getX(), 1));
  int64_t groups = getGroups(), filters = getFilters();
  if (!channels)
    return emitOpError("expected a constant number of channels");
  if (filters < 1)
    return emitOpError("expected at least one filter");
  if (groups < 1 || *channels % groups != 0 || filters % groups != 0)
    return emitOpError("cannot split ")
           << *channels << " channels and " << filters << " filters into "
           << groups << " groups";
  auto expected = getFilterShape(*this, *channels);
  if (getFilter().getType().getShape() != ArrayRef(expected))
    return emitOpError("expected a filter of shape [")
           << expected << "], found " << getFilter().getType();
  return success();
}

// Loops: batch, filter, spatial..., channel of the group, window...

SmallVector<utils::IteratorType> ConvOp::getLoopKinds() {
  return getWindowLoopKinds(getX().getType().getRank(), 1 + getWindow().size());
}

Extents ConvOp::getLoopExtents() {
  Extents extents = getExtents(getResult());
  int64_t channels = *getConstant(getExtent(getX(), 1)) / getGroups();
  extents.push_back(getAffineConstantExpr(channels, getContext()));
  appendWindow(*this, extents);
  return extents;
}

AffineMap ConvOp::getOperandMap(unsigned operand) {
  int64_t rank = getX().getType().getRank(), loops = 2 * rank - 1;
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, getContext()); };
  int64_t channels = *getConstant(getExtent(getX(), 1)) / getGroups();
  SmallVector<AffineExpr> results;
  if (operand == 0) {
    AffineExpr group = loop(1).floorDiv(int64_t(getFilters() / getGroups()));
    results = {loop(0), group * channels + loop(rank)};
    appendSpatialIndices(*this, rank + 1, results);
    return AffineMap::get(loops, 0, results, getContext());
  }
  if (getPackedFilter())
    return AffineMap();
  results = {loop(1), loop(rank)};
  for (int64_t i = rank + 1; i < loops; ++i)
    results.push_back(loop(i));
  return AffineMap::get(loops, 0, results, getContext());
}

AffineMap ConvOp::getResultMap(unsigned) {
  int64_t rank = getX().getType().getRank();
  return AffineMap::getMultiDimIdentityMap(2 * rank - 1, getContext())
      .getMajorSubMap(rank);
}

KernelKind ConvOp::getKernelKind() {
  // One channel a group has nothing to contract: it slides like a pool.
  bool isDepthwise = getConstant(getExtent(getX(), 1)) == int64_t(getGroups());
  return isDepthwise && !getPackedFilter() ? KernelKind::window
                                           : KernelKind::contraction;
}

// --- pool --------------------------------------------------------------------

LogicalResult PoolOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  if (type.getRank() <= kLeadingAxes)
    return emitOptionalError(loc, "expected a spatial axis, found rank ",
                             type.getRank());
  Extents x = getExtents(type), extents = {x[0], x[1]};
  if (failed(inferSpatialExtents(loc, adaptor, extents)))
    return failure();
  types.push_back(makeTensorType(extents, type.getElementType()));
  return success();
}

LogicalResult PoolOp::verify() {
  size_t spatial = getWindow().size();
  if (getCountLow().size() != spatial || getCountHigh().size() != spatial)
    return emitOpError("expected ") << spatial << " counted borders";
  return success();
}

// Loops: batch, channel, spatial..., window...

SmallVector<utils::IteratorType> PoolOp::getLoopKinds() {
  return getWindowLoopKinds(getX().getType().getRank(), getWindow().size());
}

Extents PoolOp::getLoopExtents() {
  Extents extents = getExtents(getResult());
  appendWindow(*this, extents);
  return extents;
}

AffineMap PoolOp::getOperandMap(unsigned) {
  int64_t rank = getX().getType().getRank();
  SmallVector<AffineExpr> results = {getAffineDimExpr(0, getContext()),
                                     getAffineDimExpr(1, getContext())};
  appendSpatialIndices(*this, rank, results);
  return AffineMap::get(2 * rank - 2, 0, results, getContext());
}

AffineMap PoolOp::getResultMap(unsigned) {
  int64_t rank = getX().getType().getRank();
  return AffineMap::getMultiDimIdentityMap(2 * rank - 2, getContext())
      .getMajorSubMap(rank);
}

KernelKind PoolOp::getKernelKind() { return KernelKind::window; }

#define GET_OP_CLASSES
#include "dialects/graph/Convolution.cpp.inc"

void GraphDialect::addConvolutionOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Convolution.cpp.inc"
      >();
}

#include "dialects/graph/ops/Window.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

/// Axes that are not spatial: batch and channel.
static constexpr int64_t kOtherAxes = 2;

/// Shape inference of both ops: checks the window; `channels` is the extent of
/// the result's channels, or null if they are x's; `inputDilations` are those
/// of x, if it has some.
template <typename Adaptor>
static LogicalResult inferWindow(std::optional<Location> loc, Adaptor adaptor,
                                 AffineExpr channels,
                                 SmallVectorImpl<Type> &types,
                                 ArrayRef<int64_t> inputDilations = {}) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  int64_t spatial = type.getRank() - kOtherAxes;
  if (spatial < 1)
    return emitOptionalError(loc, "expected a spatial axis, found rank ",
                             type.getRank());
  if (failed(checkWindow(loc, adaptor, spatial)))
    return failure();
  Extents x = getExtents(type), extents = {x.front()};
  int64_t firstSpatial = adaptor.getChannelsLast() ? 1 : kOtherAxes;
  if (!channels)
    channels = x[adaptor.getChannelsLast() ? x.size() - 1 : 1];
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t window = adaptor.getWindow()[i], stride = adaptor.getStrides()[i];
    int64_t dilation = adaptor.getDilations()[i];
    int64_t reach = (window - 1) * dilation + 1;
    AffineExpr input = x[firstSpatial + i];
    if (!inputDilations.empty())
      input = (input - 1) * inputDilations[i] + 1;
    AffineExpr free =
        input + adaptor.getPadLow()[i] + adaptor.getPadHigh()[i] - reach;
    AffineExpr extent = free.floorDiv(stride) + 1;
    if (auto constant = getConstant(extent); constant && *constant < 0)
      return emitOptionalError(loc, "window of ", reach,
                               " elements does not fit axis ",
                               firstSpatial + i);
    extents.push_back(extent);
  }
  extents.insert(adaptor.getChannelsLast() ? extents.end()
                                           : extents.begin() + 1,
                 channels);
  types.push_back(makeTensorType(extents, type.getElementType()));
  return success();
}

/// Taps of spatial axis i that meet elements of x at any place, not zeros
/// between them.
template <typename Op> static int64_t countTaps(Op op, size_t i) {
  return llvm::divideCeil(op.getWindow()[i], getInputDilation(op, i));
}

/// The first element of x under the window at result index `p`, which may lie
/// before x, if x is dilated along spatial axis i; null if it is not.
template <typename Op>
static AffineExpr getFirstElement(Op op, size_t i, AffineExpr p) {
  int64_t dilation = getInputDilation(op, i);
  return dilation == 1 ? AffineExpr()
                       : (p - op.getPadLow()[i]).ceilDiv(dilation);
}

/// The index of x on spatial axis i under tap `w` of the window at result index
/// `p`; where x is dilated `w` counts the taps that meet an element.
template <typename Op>
static AffineExpr getInputIndex(Op op, size_t i, AffineExpr p, AffineExpr w) {
  if (AffineExpr first = getFirstElement(op, i, p))
    return first + w;
  return p * op.getStrides()[i] + w * op.getDilations()[i] - op.getPadLow()[i];
}

/// The place in the window of what getInputIndex calls tap `w`; one behind the
/// window has no product.
static AffineExpr getTap(ConvOp op, size_t i, AffineExpr p, AffineExpr w) {
  if (AffineExpr first = getFirstElement(op, i, p))
    return (first + w) * op.getInputDilation(i) - p + op.getPadLow()[i];
  return w;
}

/// Loops: the axes of the result, then the reduced ones.
template <typename Op>
static SmallVector<AffineExpr> getInputIndices(Op op, int64_t firstWindowLoop,
                                               AffineExpr channel) {
  MLIRContext *context = op.getContext();
  SmallVector<AffineExpr> indices(op.getX().getType().getRank());
  indices.front() = getAffineDimExpr(0, context);
  indices[op.getChannelAxis()] = channel;
  int64_t first = op.getFirstSpatialAxis();
  for (int64_t i = 0, e = op.getWindow().size(); i < e; ++i)
    indices[first + i] =
        getInputIndex(op, i, getAffineDimExpr(first + i, context),
                      getAffineDimExpr(firstWindowLoop + i, context));
  return indices;
}

template <typename OpTy> static void appendWindow(OpTy op, Extents &extents) {
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    extents.push_back(getAffineConstantExpr(countTaps(op, i), op.getContext()));
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
  AffineExpr filters = getAffineConstantExpr(adaptor.getFilters(), context);
  ArrayRef<int64_t> dilations =
      adaptor.getInputDilations().value_or(ArrayRef<int64_t>());
  if (adaptor.getInputDilations() &&
      dilations.size() != adaptor.getWindow().size())
    return emitOptionalError(loc, "expected an input dilation for each axis of "
                                  "the window");
  return inferWindow(loc, adaptor, filters, types, dilations);
}

bool ConvOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange found) {
  auto type = dyn_cast<RankedTensorType>(inferred.front());
  if (inferred == found || !type || found.size() != 1)
    return inferred == found;
  bool isNarrow = isa<FloatType>(type.getElementType()) &&
                  type.getElementTypeBitWidth() < 32;
  Type f32 = Float32Type::get(type.getContext());
  return isNarrow && found.front() == withElementType(type, f32);
}

Precision ConvOp::getPrecision() { return Precision::narrow; }

Packing ConvOp::getPacking() {
  return slides() ? Packing()
                  : graph::getPacking(getElementTypeOrSelf(getFilter()));
}

static SmallVector<int64_t> getFilterShape(ConvOp op) {
  int64_t groups = op.getGroups(), filters = op.getFilters();
  int64_t perGroup = filters / groups, channels = op.getGroupChannels();
  int64_t window = 1;
  for (int64_t extent : op.getWindow())
    window *= extent;
  if (op.getPackedFilter() && op.slides())
    return {window * channels, filters};
  if (op.getPackedFilter()) {
    int64_t width = MatmulOp::getPanelColumns(perGroup);
    int64_t depth = op.getPacking().getDepth(window * channels);
    return {groups, (perGroup + width - 1) / width, depth, width};
  }
  SmallVector<int64_t> shape(op.getWindow());
  shape.insert(shape.begin(), filters);
  shape.insert(op.getChannelsLast() ? shape.end() : shape.begin() + 1,
               channels);
  return shape;
}

int64_t ConvOp::getGroupChannels() {
  return *getConstant(getExtent(getX(), getChannelAxis())) / getGroups();
}

bool tcc::graph::areNarrow(int64_t groups, int64_t channels, int64_t filters,
                           Type element) {
  // The vectors of any CPU hold whole groups.
  constexpr uint64_t vectorBits = 256;
  unsigned width = element.getIntOrFloatBitWidth();
  return groups > 1 && channels >= 1 && channels <= filters &&
         llvm::isPowerOf2_64(filters) &&
         uint64_t(filters) * std::max(width, 32u) <= vectorBits;
}

bool ConvOp::hasNarrowGroups() {
  return areNarrow(getGroups(), getGroupChannels(),
                   int64_t(getFilters() / getGroups()),
                   getElementTypeOrSelf(getX()));
}

bool ConvOp::slides() {
  return getChannelsLast() ? hasNarrowGroups() : getGroupChannels() == 1;
}

/// Whether `zeroTaps` has taps of equal parts of the filters.
static bool isPartition(ConvOp op, ArrayRef<int64_t> zeroTaps) {
  int64_t taps = computeProduct(op.getWindow());
  return op.getGroups() == 1 && !zeroTaps.empty() && taps < 64 &&
         op.getFilters() % int64_t(zeroTaps.size()) == 0 &&
         llvm::all_of(
             zeroTaps,
             [&](int64_t bits) { return uint64_t(bits) >> taps == 0; });
}

static bool canDilateInput(ConvOp op, ArrayRef<int64_t> inputDilations) {
  if (!op.getChannelsLast() || !op.slides())
    return false;
  for (auto [i, dilation] : llvm::enumerate(inputDilations))
    if (dilation < 1 ||
        (dilation > 1 && (op.getStrides()[i] != 1 ||
                          op.getDilations()[i] != 1 || op.getPadLow()[i] < 0)))
      return false;
  return true;
}

LogicalResult ConvOp::verify() {
  auto channels = getConstant(getExtent(getX(), getChannelAxis()));
  int64_t groups = getGroups(), filters = getFilters();
  if (!channels)
    return emitOpError("expected a constant number of channels");
  if (filters < 1)
    return emitOpError("expected at least one filter");
  if (groups < 1 || *channels % groups != 0 || filters % groups != 0)
    return emitOpError("cannot split ")
           << *channels << " channels and " << filters << " filters into "
           << groups << " groups";
  if (getPackedFilter() && !getChannelsLast())
    return emitOpError("a packed filter has the channels last");
  if (getPackedFilter() &&
      getElementTypeOrSelf(getFilter()) != getElementTypeOrSelf(getX()))
    return emitOpError("a packed filter has the element type of x");
  auto expected = getFilterShape(*this);
  if (getFilter().getType().getShape() != ArrayRef(expected))
    return emitOpError("expected a filter of shape [")
           << expected << "], found " << getFilter().getType();
  if (auto dilations = getInputDilations();
      dilations && !canDilateInput(*this, *dilations))
    return emitOpError("expected input dilations of a conv that slides with "
                       "the channels last, without strides, dilations and "
                       "negative padding where x is dilated");
  if (auto zeros = getZeroTaps(); zeros && !isPartition(*this, *zeros))
    return emitOpError(
        "expected zero taps of equal parts of the filters of one "
        "group, with a bit for each tap");
  return success();
}

// Loops: the axes of the result, channel of the group, window...

SmallVector<utils::IteratorType> ConvOp::getLoopKinds() {
  return getWindowLoopKinds(getX().getType().getRank(), 1 + getWindow().size());
}

Extents ConvOp::getLoopExtents() {
  Extents extents = getExtents(getResult());
  extents.push_back(getAffineConstantExpr(getGroupChannels(), getContext()));
  appendWindow(*this, extents);
  return extents;
}

AffineMap ConvOp::getOperandMap(unsigned operand) {
  int64_t rank = getX().getType().getRank(), loops = 2 * rank - 1;
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, getContext()); };
  AffineExpr filter = loop(getChannelAxis());
  SmallVector<AffineExpr> results;
  if (operand == 0) {
    AffineExpr channel = loop(rank);
    if (int64_t groups = getGroups(); groups > 1)
      channel = filter.floorDiv(int64_t(getFilters() / groups)) *
                    int64_t(getGroupChannels()) +
                channel;
    results = getInputIndices(*this, rank + 1, channel);
    return AffineMap::get(loops, 0, results, getContext());
  }
  if (getPackedFilter())
    return AffineMap();
  results = {filter};
  for (int64_t i = 0, e = getWindow().size(); i < e; ++i)
    results.push_back(
        getTap(*this, i, loop(getFirstSpatialAxis() + i), loop(rank + 1 + i)));
  results.insert(getChannelsLast() ? results.end() : results.begin() + 1,
                 loop(rank));
  return AffineMap::get(loops, 0, results, getContext());
}

AffineMap ConvOp::getResultMap(unsigned) {
  int64_t rank = getX().getType().getRank();
  return AffineMap::getMultiDimIdentityMap(2 * rank - 1, getContext())
      .getMajorSubMap(rank);
}

KernelKind ConvOp::getKernelKind() {
  return slides() ? KernelKind::window : KernelKind::contraction;
}

/// A product for each group: rows are positions in all images, columns the
/// filters of the group, and the depth the taps, then the group's channels.
ProductView ConvOp::getProduct() {
  MLIRContext *context = getContext();
  int64_t spatial = getWindow().size(), perGroup = getFilters() / getGroups();
  int64_t channels = getGroupChannels(), channelAxis = getChannelAxis();
  auto constant = [&](int64_t x) { return getAffineConstantExpr(x, context); };
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, context); };
  ProductView view;
  view.batch = {constant(getGroups())};
  view.rows = getExtents(getResult());
  view.rows.erase(view.rows.begin() + channelAxis);
  view.columns = {constant(perGroup)};
  appendWindow(*this, view.depth);
  view.depth.push_back(constant(channels));
  int64_t firstTap = 3 + spatial;
  AffineExpr group = loop(0), image = loop(1);
  AffineExpr filter = group * perGroup + loop(2 + spatial);
  AffineExpr channel = loop(firstTap + spatial);
  SmallVector<AffineExpr> from = {image}, taps = {filter}, to = {image};
  for (int64_t i = 0; i < spatial; ++i) {
    AffineExpr p = loop(2 + i), tap = loop(firstTap + i);
    from.push_back(getInputIndex(*this, i, p, tap));
    taps.push_back(tap);
    to.push_back(loop(2 + i));
  }
  from.insert(from.begin() + channelAxis, group * channels + channel);
  taps.insert(taps.begin() + channelAxis, channel);
  to.insert(to.begin() + channelAxis, filter);
  auto mapTo = [&](ArrayRef<AffineExpr> indices) {
    return AffineMap::get(view.countLoops(), 0, indices, context);
  };
  view.lhs = {0, mapTo(from), getFirstSpatialAxis(), spatial};
  view.rhs = {1, mapTo(taps)};
  if (getPackedFilter()) {
    view.rhs.map = mapTo({group});
    view.rhs.panels = getPacking();
  }
  view.zeros = getZeroTaps().value_or(ArrayRef<int64_t>());
  view.result = mapTo(to);
  return view;
}

// --- pool --------------------------------------------------------------------

LogicalResult PoolOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  return inferWindow(loc, adaptor, nullptr, types);
}

/// The largest element of a window is one of them.
Precision PoolOp::getPrecision() {
  return getKind() == PoolKind::max ? Precision::follow : Precision::keep;
}

LogicalResult PoolOp::verify() {
  size_t spatial = getWindow().size();
  if (getCountLow().size() != spatial || getCountHigh().size() != spatial)
    return emitOpError("expected ") << spatial << " counted borders";
  if (getKind() == PoolKind::average &&
      !isa<FloatType>(getElementTypeOrSelf(getX())))
    return emitOpError("expected floats to take averages of");
  return success();
}

// Loops: the axes of the result, window...

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
  AffineExpr channel = getAffineDimExpr(getChannelAxis(), getContext());
  return AffineMap::get(2 * rank - 2, 0, getInputIndices(*this, rank, channel),
                        getContext());
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

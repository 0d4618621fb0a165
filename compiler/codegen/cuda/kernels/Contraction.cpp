//===- Contraction.cpp - Ops that are matrix products ---------------------===//

#include "compiler/codegen/cuda/kernels/Product.h"
#include "compiler/codegen/region/Sums.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static Value getElement(KernelBuilder &b, DeviceFrame &frame, Type sum,
                        Value tensor, ValueRange at) {
  Value x = frame.elements.element(b, frame.loc, tensor, at);
  return b.widen(x, sum, isUnsignedElement(tensor));
}

// --- matmul

namespace {

/// What products of matrices say of themselves.
struct Matmul {
  Value lhs, rhs, result;
  bool transposeLhs, transposeRhs;
  AffineExpr m, n, k;
  Ones ones = Ones::none;
};

struct MatmulPlan {
  Matmul op;
  ProductShape shape;
  Extents batch; // axes of the result
  /// The batch axes are rows of one product: rhs has none.
  bool batchIsRows = false;

  explicit MatmulPlan(const Matmul &op);
};

class MatmulEmitter {
public:
  MatmulEmitter(DeviceFrame &frame, const Matmul &op)
      : frame(frame), plan(op) {}
  Product describe();

private:
  DeviceFrame &frame;
  MatmulPlan plan;

  ProductOperand describeOperand(Value tensor, bool isTransposed, bool isLhs);
  SmallVector<Value> getIndices(KernelBuilder &b, Value batch, Value row);
};

} // namespace

/// Nothing for an op that is no product of plain matrices.
static std::optional<Matmul> findMatmul(Operation *op) {
  auto read = [](auto op) {
    return Matmul{
        op.getLhs(),          op.getRhs(), op.getResult(), op.getTransposeLhs(),
        op.getTransposeRhs(), op.getM(),   op.getN(),      op.getK()};
  };
  if (auto plain = dyn_cast_if_present<MatmulOp>(op))
    return read(plain);
  auto withSums = dyn_cast_if_present<MatmulSumsOp>(op);
  if (!withSums)
    return std::nullopt;
  Matmul matmul = read(withSums);
  matmul.ones = withSums.getOfLhs() ? Ones::rhs : Ones::lhs;
  return matmul;
}

MatmulPlan::MatmulPlan(const Matmul &op) : op(op) {
  MLIRContext *context = op.result.getContext();
  batch = getExtents(op.result);
  batch.pop_back_n(2);
  shape = {getNumElements(batch, context), op.m, op.n, op.k,
           codegen::getSumType(getElementTypeOrSelf(op.result))};
  auto isOne = [](AffineExpr extent) { return getConstant(extent) == 1; };
  Extents left = getExtents(op.lhs), right = getExtents(op.rhs);
  batchIsRows = llvm::all_of(ArrayRef(right).drop_back(2), isOne) &&
                llvm::equal(batch, ArrayRef(left).drop_back(2));
  if (!batchIsRows)
    return;
  shape.m = shape.batch * shape.m;
  shape.batch = getAffineConstantExpr(1, context);
}

/// The indices of the result but that of the column.
SmallVector<Value> MatmulEmitter::getIndices(KernelBuilder &b, Value batch,
                                             Value row) {
  auto sizes = llvm::map_to_vector(
      plan.batch, [&](AffineExpr e) { return frame.size(b, e); });
  if (plan.batchIsRows) {
    sizes.push_back(frame.size(b, plan.op.m));
    return b.delinearize(row, sizes);
  }
  SmallVector<Value> at = b.delinearize(batch, sizes);
  at.push_back(row);
  return at;
}

ProductOperand MatmulEmitter::describeOperand(Value tensor, bool isTransposed,
                                              bool isLhs) {
  int64_t rank = getExtents(tensor).size();
  bool kIsLast = isLhs != isTransposed;
  ProductOperand operand;
  operand.kIsAdjacent = isAdjacent(tensor, kIsLast ? rank - 1 : rank - 2);
  operand.element = [=, this](KernelBuilder &b, Value batch, Value lane,
                              Value first, Value step) {
    Value row = isLhs ? lane : b.index(0);
    SmallVector<Value> at = getIndices(b, batch, row);
    lane = isLhs ? at.back() : lane;
    at.pop_back();
    at = codegen::alignBatch(b, tensor, rank - 2, at);
    Value k = b.add(first, step);
    at.append({kIsLast ? lane : k, kIsLast ? k : lane});
    return getElement(b, frame, plan.shape.sum, tensor, at);
  };
  return operand;
}

Product MatmulEmitter::describe() {
  const Matmul &op = plan.op;
  Product product{plan.shape, describeOperand(op.lhs, op.transposeLhs, true),
                  describeOperand(op.rhs, op.transposeRhs, false), nullptr,
                  op.ones};
  product.indices = [this](KernelBuilder &b, Value batch, Value i, Value j) {
    SmallVector<Value> at = getIndices(b, batch, i);
    at.push_back(j);
    return at;
  };
  return product;
}

// --- Windows

namespace {

/// How a window walks over x.
struct Window {
  Value x;
  int64_t firstSpatial, channelAxis;
  ArrayRef<int64_t> strides, padLow, dilations;
};

} // namespace

/// The element of x under a tap of the window that stands `at` an image and a
/// position; zero outside of x.
static Value getPatchElement(KernelBuilder &b, DeviceFrame &frame, Type sum,
                             const Window &window, SmallVector<Value> at,
                             ValueRange tap, Value channel) {
  Value x = window.x, zero = b.index(0);
  Value isInside = b.create<arith::ConstantIntOp>(1, 1);
  for (size_t i = 0; i < window.strides.size(); ++i) {
    Value extent = frame.size(b, getExtent(x, window.firstSpatial + i));
    Value begin = b.sub(b.mul(at[1 + i], b.index(window.strides[i])),
                        b.index(window.padLow[i]));
    Value place = b.add(begin, b.mul(tap[i], b.index(window.dilations[i])));
    Value isValid =
        b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, place, extent);
    isInside = b.create<arith::AndIOp>(isInside, isValid);
    at[1 + i] = b.create<arith::SelectOp>(isValid, place, zero);
  }
  at.insert(at.begin() + window.channelAxis, channel);
  Value none = b.zero(sum);
  Value element = readUnlessEmpty(
      b, frame, x, [&] { return getElement(b, frame, sum, x, at); }, none);
  return b.create<arith::SelectOp>(isInside, element, none);
}

// --- conv

namespace {

/// A product for each group: rows are output positions of all images, columns
/// are filters, k runs over the taps of the window and the group's channels.
struct ConvolutionPlan {
  ConvOp op;
  ProductShape shape;
  int64_t filters, channels; // of a group
  int64_t firstSpatial;
  Extents pixels; // images, spatial...

  explicit ConvolutionPlan(ConvOp op);
};

class ConvolutionEmitter {
public:
  ConvolutionEmitter(DeviceFrame &frame, ConvOp op) : frame(frame), plan(op) {}
  Product describe();

private:
  DeviceFrame &frame;
  ConvolutionPlan plan;

  SmallVector<Value> splitRow(KernelBuilder &b, Value row);
  SmallVector<Value> splitDepth(KernelBuilder &b, Value first, Value step);
  Value getFilterElement(KernelBuilder &b, Value group, Value column,
                         ValueRange tap);
  SmallVector<Value> insertChannel(SmallVector<Value> at, Value channel) {
    at.insert(at.begin() + plan.op.getChannelAxis(), channel);
    return at;
  }
};

} // namespace

ConvolutionPlan::ConvolutionPlan(ConvOp op)
    : op(op), filters(op.getFilters() / op.getGroups()),
      channels(op.getGroupChannels()), firstSpatial(op.getFirstSpatialAxis()) {
  MLIRContext *context = op.getContext();
  pixels = getExtents(op.getResult());
  pixels.erase(pixels.begin() + op.getChannelAxis());
  int64_t depth = channels;
  for (int64_t extent : op.getWindow())
    depth *= extent;
  auto constant = [&](int64_t x) { return getAffineConstantExpr(x, context); };
  shape = {constant(op.getGroups()), getNumElements(pixels, context),
           constant(filters), constant(depth),
           codegen::getSumType(getElementTypeOrSelf(op.getResult()))};
}

/// The image and the position.
SmallVector<Value> ConvolutionEmitter::splitRow(KernelBuilder &b, Value row) {
  return b.delinearize(row, llvm::map_to_vector(plan.pixels, [&](AffineExpr e) {
                         return frame.size(b, e);
                       }));
}

/// The taps and the channel of a step. If the steps of a tile all have the same
/// taps, these are computed once for all threads.
SmallVector<Value> ConvolutionEmitter::splitDepth(KernelBuilder &b, Value first,
                                                  Value step) {
  SmallVector<Value> sizes;
  for (int64_t extent : plan.op.getWindow())
    sizes.push_back(b.index(extent));
  sizes.push_back(b.index(plan.channels));
  int64_t depth = ProductTile::read(frame.region)->depth;
  if (plan.channels % depth != 0)
    return b.delinearize(b.add(first, step), sizes);
  SmallVector<Value> at = b.delinearize(first, sizes);
  at.back() = b.add(at.back(), step);
  return at;
}

Value ConvolutionEmitter::getFilterElement(KernelBuilder &b, Value group,
                                           Value column, ValueRange tap) {
  SmallVector<Value> at(tap.drop_back());
  at.insert(at.begin(), b.add(b.mul(group, b.index(plan.filters)), column));
  at = insertChannel(at, tap.back());
  return getElement(b, frame, plan.shape.sum, plan.op.getFilter(), at);
}

Product ConvolutionEmitter::describe() {
  ConvOp op = plan.op;
  int64_t axis = op.getChannelAxis();
  Product product{plan.shape, {}, {}, nullptr};
  Window window{op.getX(),       plan.firstSpatial, axis,
                op.getStrides(), op.getPadLow(),    op.getDilations()};
  product.lhs.kIsAdjacent = isAdjacent(op.getX(), axis);
  product.lhs.element = [=, this](KernelBuilder &b, Value group, Value row,
                                  Value first, Value step) {
    SmallVector<Value> tap = splitDepth(b, first, step);
    Value channel = b.add(b.mul(group, b.index(plan.channels)), tap.back());
    return getPatchElement(b, frame, plan.shape.sum, window, splitRow(b, row),
                           tap, channel);
  };
  product.rhs.kIsAdjacent = isAdjacent(op.getFilter(), axis);
  product.rhs.element = [this](KernelBuilder &b, Value group, Value column,
                               Value first, Value step) {
    return getFilterElement(b, group, column, splitDepth(b, first, step));
  };
  product.indices = [this](KernelBuilder &b, Value group, Value i, Value j) {
    Value channel = b.add(b.mul(group, b.index(plan.filters)), j);
    return insertChannel(splitRow(b, i), channel);
  };
  return product;
}

// --- conv_filter_gradient

namespace {

/// Rows are filters, columns are taps of the window and channels, k runs over
/// the positions of the gradient in all images.
class FilterGradientEmitter {
public:
  FilterGradientEmitter(DeviceFrame &frame, ConvFilterGradientOp op)
      : frame(frame), op(op), shape(getShape(op)) {}

  static ProductShape getShape(ConvFilterGradientOp op);
  Product describe();

private:
  DeviceFrame &frame;
  ConvFilterGradientOp op;
  ProductShape shape;

  SmallVector<Value> split(KernelBuilder &b, Value number,
                           ArrayRef<int64_t> extents) {
    return b.delinearize(number, llvm::map_to_vector(extents, [&](int64_t e) {
                           return b.index(e);
                         }));
  }
  SmallVector<Value> splitPosition(KernelBuilder &b, Value k) {
    return split(b, k, op.getGradient().getType().getShape().drop_back());
  }
  /// The taps and the channel.
  SmallVector<Value> splitColumn(KernelBuilder &b, Value column) {
    return split(b, column, op.getType().getShape().drop_front());
  }
};

} // namespace

ProductShape FilterGradientEmitter::getShape(ConvFilterGradientOp op) {
  auto constant = [&](int64_t x) {
    return getAffineConstantExpr(x, op.getContext());
  };
  auto count = [&](ArrayRef<int64_t> extents) {
    return constant(ShapedType::getNumElements(extents));
  };
  ArrayRef<int64_t> shape = op.getType().getShape();
  ArrayRef<int64_t> gradient = op.getGradient().getType().getShape();
  return {constant(1), constant(shape.front()), count(shape.drop_front()),
          count(gradient.drop_back()),
          codegen::getSumType(getElementTypeOrSelf(op.getResult()))};
}

Product FilterGradientEmitter::describe() {
  int64_t channelAxis = op.getX().getType().getRank() - 1;
  Window window{op.getX(),      1,
                channelAxis,    op.getStrides(),
                op.getPadLow(), op.getDilations()};
  Product product{shape, {}, {}, nullptr};
  product.lhs.kIsAdjacent = !isAdjacent(op.getGradient(), channelAxis);
  product.lhs.element = [this](KernelBuilder &b, Value, Value filter,
                               Value first, Value step) {
    SmallVector<Value> at = splitPosition(b, b.add(first, step));
    at.push_back(filter);
    return getElement(b, frame, shape.sum, op.getGradient(), at);
  };
  product.rhs.kIsAdjacent = !isAdjacent(op.getX(), channelAxis);
  product.rhs.element = [=, this](KernelBuilder &b, Value, Value column,
                                  Value first, Value step) {
    SmallVector<Value> tap = splitColumn(b, column);
    return getPatchElement(b, frame, shape.sum, window,
                           splitPosition(b, b.add(first, step)), tap,
                           tap.back());
  };
  product.indices = [this](KernelBuilder &b, Value, Value i, Value j) {
    SmallVector<Value> at = splitColumn(b, j);
    at.insert(at.begin(), i);
    return at;
  };
  return product;
}

// --- The kind

static LogicalResult checkPlain(Operation *op, bool isPacked) {
  if (isPacked)
    return op->emitOpError("has an operand packed for the host");
  return success();
}

static FailureOr<ProductShape> getShape(FusedOp region) {
  Operation *op = codegen::getAnchor(region);
  if (auto matmul = dyn_cast_if_present<MatmulOp>(op);
      matmul && failed(checkPlain(op, matmul.getPackedRhs())))
    return failure();
  if (std::optional<Matmul> matmul = findMatmul(op))
    return addOnes(MatmulPlan(*matmul).shape, matmul->ones);
  if (auto conv = dyn_cast_if_present<ConvOp>(op)) {
    if (failed(checkPlain(op, conv.getPackedFilter())))
      return failure();
    return ConvolutionPlan(conv).shape;
  }
  if (auto gradient = dyn_cast_if_present<ConvFilterGradientOp>(op))
    return FilterGradientEmitter::getShape(gradient);
  return region.emitOpError("has no matrix product");
}

FailureOr<LaunchPlan> planContraction(FusedOp region,
                                      ArrayRef<SymbolAttr> symbols) {
  FailureOr<ProductShape> shape = getShape(region);
  if (failed(shape))
    return failure();
  Attribute choice = getChoice(region, ProductTile::kKey);
  if (!choice)
    return shape->getLaunch(shape->chooseTile(symbols));
  std::optional<ProductTile> tile = ProductTile::read(region);
  if (!tile || !llvm::is_contained(shape->listTiles(), *tile))
    return region.emitOpError("has no such tile: ") << choice;
  return shape->getLaunch(*tile);
}

LogicalResult emitContraction(KernelBuilder &b, DeviceFrame &frame) {
  Operation *op = codegen::getAnchor(frame.region);
  if (std::optional<Matmul> matmul = findMatmul(op)) {
    MatmulEmitter emitter(frame, *matmul);
    emitProduct(b, frame, emitter.describe());
    return success();
  }
  if (auto gradient = dyn_cast<ConvFilterGradientOp>(op)) {
    FilterGradientEmitter emitter(frame, gradient);
    emitProduct(b, frame, emitter.describe());
    return success();
  }
  ConvolutionEmitter emitter(frame, cast<ConvOp>(op));
  emitProduct(b, frame, emitter.describe());
  return success();
}

} // namespace tcc::cuda

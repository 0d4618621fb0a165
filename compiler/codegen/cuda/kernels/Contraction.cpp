//===- Contraction.cpp - Ops that are matrix products ---------------------===//

#include "compiler/codegen/cuda/kernels/Product.h"
#include "compiler/codegen/region/EmitIndices.h"
#include "compiler/codegen/region/Sums.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static ProductShape getShape(ProductOpInterface op, const ProductView &view) {
  auto count = [&](const Extents &extents) {
    return getNumElements(extents, op.getContext());
  };
  return {count(view.batch), count(view.rows), count(view.columns),
          count(view.depth),
          codegen::getSumType(getElementTypeOrSelf(op->getResult(0)))};
}

namespace {

/// Gives the tiles of a product the elements of its operands, and the places of
/// its results, whatever op it is.
class ProductReader {
public:
  explicit ProductReader(DeviceFrame &frame)
      : frame(frame),
        op(cast<ProductOpInterface>(codegen::getAnchor(frame.region))),
        view(op.getProduct()), shape(getShape(op, view)) {}
  Product describe();

private:
  DeviceFrame &frame;
  ProductOpInterface op;
  ProductView view;
  ProductShape shape;

  SmallVector<Value> split(KernelBuilder &b, Value number,
                           const Extents &loops);
  SmallVector<Value> splitDepth(KernelBuilder &b, Value first, Value step);
  ProductOperand describe(const ProductSide &side, bool isLhs);
  Value getElement(KernelBuilder &b, const ProductSide &side, ValueRange loops);
};

} // namespace

/// The values of `loops` in their iteration of that number.
SmallVector<Value> ProductReader::split(KernelBuilder &b, Value number,
                                        const Extents &loops) {
  return b.delinearize(number, frame.sizes(b, loops));
}

/// The loops of a step. If the steps of a tile all have the same outer ones,
/// these are computed once for all threads.
SmallVector<Value> ProductReader::splitDepth(KernelBuilder &b, Value first,
                                             Value step) {
  int64_t steps = ProductTile::read(frame.region)->depth;
  if (view.depth.size() > 1 && !view.depth.back().isMultipleOf(steps))
    return split(b, b.add(first, step), view.depth);
  SmallVector<Value> at = split(b, first, view.depth);
  at.back() = b.add(at.back(), step);
  return at;
}

/// The element of an operand; zero outside of it.
Value ProductReader::getElement(KernelBuilder &b, const ProductSide &side,
                                ValueRange loops) {
  Value x = op->getOperand(side.operand);
  SmallVector<Value> at = codegen::emitIndices(b, side.map, loops);
  auto read = [&] {
    Value element = frame.elements.element(b, frame.loc, x, at);
    return b.widen(element, shape.sum, isUnsignedElement(x));
  };
  if (side.padded == 0)
    return read();
  Value isInside = b.create<arith::ConstantIntOp>(1, 1);
  for (int64_t i = 0; i < side.padded; ++i) {
    Value &place = at[side.firstPadded + i];
    // Unsigned, so that places before the operand are outside, too.
    Value isValid = b.create<arith::CmpIOp>(
        arith::CmpIPredicate::ult, place,
        frame.size(b, getExtent(x, side.firstPadded + i)));
    isInside = b.create<arith::AndIOp>(isInside, isValid);
    place = b.create<arith::SelectOp>(isValid, place, b.index(0));
  }
  Value none = b.zero(shape.sum);
  Value element = readUnlessEmpty(b, frame, x, read, none);
  return b.create<arith::SelectOp>(isInside, element, none);
}

/// Whether neighbours along the innermost loop of the depth are adjacent in
/// memory, as far as one can tell.
static bool isDepthAdjacent(const ProductSide &side, Value operand) {
  unsigned loops = side.map.getNumDims();
  AffineExpr innermost = getAffineDimExpr(loops - 1, side.map.getContext());
  for (auto [axis, index] : llvm::enumerate(side.map.getResults()))
    if (index.isFunctionOfDim(loops - 1)) {
      AffineExpr next = index.replace(innermost, innermost + 1);
      AffineExpr step = simplifyAffineExpr(next - index, loops, 0);
      return getConstant(step) == 1 && isAdjacent(operand, axis);
    }
  return false;
}

ProductOperand ProductReader::describe(const ProductSide &side, bool isLhs) {
  ProductOperand operand;
  operand.kIsAdjacent = isDepthAdjacent(side, op->getOperand(side.operand));
  operand.element = [=, &side, this](KernelBuilder &b, Value batch, Value lane,
                                     Value first, Value step) {
    SmallVector<Value> loops = split(b, batch, view.batch);
    SmallVector<Value> none((isLhs ? view.columns : view.rows).size(),
                            b.index(0));
    SmallVector<Value> lanes = split(b, lane, isLhs ? view.rows : view.columns);
    llvm::append_range(loops, isLhs ? lanes : none);
    llvm::append_range(loops, isLhs ? none : lanes);
    llvm::append_range(loops, splitDepth(b, first, step));
    return getElement(b, side, loops);
  };
  return operand;
}

Product ProductReader::describe() {
  Product product{shape, describe(view.lhs, /*isLhs=*/true),
                  describe(view.rhs, /*isLhs=*/false), nullptr, view.sums};
  product.indices = [this](KernelBuilder &b, Value batch, Value i, Value j) {
    SmallVector<Value> loops = split(b, batch, view.batch);
    llvm::append_range(loops, split(b, i, view.rows));
    llvm::append_range(loops, split(b, j, view.columns));
    loops.append(view.depth.size(), b.index(0));
    return codegen::emitIndices(b, view.result, loops);
  };
  return product;
}

FailureOr<LaunchPlan> planContraction(FusedOp region,
                                      ArrayRef<SymbolAttr> symbols) {
  auto op = dyn_cast_if_present<ProductOpInterface>(codegen::getAnchor(region));
  if (!op)
    return region.emitOpError("has no matrix product");
  ProductView view = op.getProduct();
  if (view.rhs.panels)
    return op.emitOpError("has an operand packed for the host");
  ProductShape shape = addOnes(getShape(op, view), view.sums);
  Attribute choice = getChoice(region, ProductTile::kKey);
  if (!choice)
    return shape.getLaunch(shape.chooseTile(symbols));
  std::optional<ProductTile> tile = ProductTile::read(region);
  if (!tile || !llvm::is_contained(shape.listTiles(), *tile))
    return region.emitOpError("has no such tile: ") << choice;
  return shape.getLaunch(*tile);
}

LogicalResult emitContraction(KernelBuilder &b, DeviceFrame &frame) {
  ProductReader reader(frame);
  emitProduct(b, frame, reader.describe());
  return success();
}

} // namespace tcc::cuda

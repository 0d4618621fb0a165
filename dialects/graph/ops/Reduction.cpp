#include "dialects/graph/GraphOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace tcc::graph;

/// Loops of an op that walks all of `rank` axes and reduces `axes`.
static SmallVector<utils::IteratorType> getLoopKinds(int64_t rank,
                                                     ArrayRef<int64_t> axes) {
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  for (int64_t axis : axes)
    kinds[axis] = utils::IteratorType::reduction;
  return kinds;
}

/// The map that keeps all of `rank` loops but `axes`.
static AffineMap getKeptMap(int64_t rank, ArrayRef<int64_t> axes,
                            MLIRContext *context) {
  SmallVector<AffineExpr> kept;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(axes, i))
      kept.push_back(getAffineDimExpr(i, context));
  return AffineMap::get(rank, 0, kept, context);
}

static RankedTensorType dropAxes(RankedTensorType type, ArrayRef<int64_t> axes,
                                 Type elementType) {
  Extents kept;
  for (auto [i, extent] : llvm::enumerate(getExtents(type)))
    if (!llvm::is_contained(axes, int64_t(i)))
      kept.push_back(extent);
  return makeTensorType(kept, elementType);
}

static LogicalResult checkAxis(std::optional<Location> loc, int64_t axis,
                               int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return emitOptionalError(loc, "axis ", axis, " is out of range for rank ",
                           rank);
}

// --- reduce ------------------------------------------------------------------

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  for (int64_t axis : adaptor.getAxes())
    if (failed(checkAxis(loc, axis, type.getRank())))
      return failure();
  types.push_back(dropAxes(type, adaptor.getAxes(), type.getElementType()));
  return success();
}

LogicalResult ReduceOp::verify() {
  for (size_t i = 1; i < getAxes().size(); ++i)
    if (getAxes()[i - 1] >= getAxes()[i])
      return emitOpError("expected increasing axes, found ")
             << getAxes()[i - 1] << " before " << getAxes()[i];
  return success();
}

SmallVector<int64_t> ReduceOp::getReducedAxes() {
  return SmallVector<int64_t>(getAxes());
}

Type ReduceOp::getAccumulatorType() {
  Type type = getResult().getType().getElementType();
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(getContext());
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(getContext(), integer.getWidth());
  return type;
}

static bool isUnsignedElement(Value tensor) {
  Type type = getElementTypeOrSelf(tensor);
  return type.isUnsignedInteger() || type.isInteger(1);
}

static APInt getNeutralInteger(ReduceKind kind, unsigned width,
                               bool isUnsigned) {
  switch (kind) {
  case ReduceKind::sum:
    return APInt(width, 0);
  case ReduceKind::prod:
    return APInt(width, 1);
  case ReduceKind::max:
    return isUnsigned ? APInt(width, 0) : APInt::getSignedMinValue(width);
  case ReduceKind::min:
    return isUnsigned ? APInt::getMaxValue(width)
                      : APInt::getSignedMaxValue(width);
  }
  llvm_unreachable("covered switch");
}

static double getNeutralFloat(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return 0.0;
  case ReduceKind::prod:
    return 1.0;
  case ReduceKind::max:
    return -std::numeric_limits<double>::infinity();
  case ReduceKind::min:
    return std::numeric_limits<double>::infinity();
  }
  llvm_unreachable("covered switch");
}

Value ReduceOp::emitInit(OpBuilder &builder, Location loc) {
  Type type = getAccumulatorType();
  if (auto integer = dyn_cast<IntegerType>(type))
    return builder.create<arith::ConstantOp>(
        loc, builder.getIntegerAttr(
                 type, getNeutralInteger(getKind(), integer.getWidth(),
                                         isUnsignedElement(getX()))));
  return builder.create<arith::ConstantOp>(
      loc, builder.getFloatAttr(type, getNeutralFloat(getKind())));
}

Value ReduceOp::emitCombine(OpBuilder &builder, Location loc, Value lhs,
                            Value rhs) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(lhs.getType()));
  bool isUnsigned = isUnsignedElement(getX());
  switch (getKind()) {
  case ReduceKind::sum:
    return isFloat ? builder.create<arith::AddFOp>(loc, lhs, rhs).getResult()
                   : builder.create<arith::AddIOp>(loc, lhs, rhs);
  case ReduceKind::prod:
    return isFloat ? builder.create<arith::MulFOp>(loc, lhs, rhs).getResult()
                   : builder.create<arith::MulIOp>(loc, lhs, rhs);
  case ReduceKind::max:
    if (isFloat)
      return builder.create<arith::MaximumFOp>(loc, lhs, rhs);
    return isUnsigned
               ? builder.create<arith::MaxUIOp>(loc, lhs, rhs).getResult()
               : builder.create<arith::MaxSIOp>(loc, lhs, rhs);
  case ReduceKind::min:
    if (isFloat)
      return builder.create<arith::MinimumFOp>(loc, lhs, rhs);
    return isUnsigned
               ? builder.create<arith::MinUIOp>(loc, lhs, rhs).getResult()
               : builder.create<arith::MinSIOp>(loc, lhs, rhs);
  }
  llvm_unreachable("covered switch");
}

SmallVector<utils::IteratorType> ReduceOp::getLoopKinds() {
  return ::getLoopKinds(getX().getType().getRank(), getAxes());
}
AffineMap ReduceOp::getOperandMap(unsigned) {
  return AffineMap::getMultiDimIdentityMap(getX().getType().getRank(),
                                           getContext());
}
AffineMap ReduceOp::getResultMap(unsigned) {
  return getKeptMap(getX().getType().getRank(), getAxes(), getContext());
}
KernelKind ReduceOp::getKernelKind() { return KernelKind::row; }

// --- arg_reduce --------------------------------------------------------------

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, type.getRank())))
    return failure();
  types.push_back(dropAxes(type, axis, IntegerType::get(context, 64)));
  return success();
}

LogicalResult ArgReduceOp::verify() {
  if (getKind() != ReduceKind::max && getKind() != ReduceKind::min)
    return emitOpError("expected kind max or min");
  return success();
}

SmallVector<utils::IteratorType> ArgReduceOp::getLoopKinds() {
  return ::getLoopKinds(getX().getType().getRank(), int64_t(getAxis()));
}
AffineMap ArgReduceOp::getOperandMap(unsigned) {
  return AffineMap::getMultiDimIdentityMap(getX().getType().getRank(),
                                           getContext());
}
AffineMap ArgReduceOp::getResultMap(unsigned) {
  return getKeptMap(getX().getType().getRank(), int64_t(getAxis()),
                    getContext());
}
KernelKind ArgReduceOp::getKernelKind() { return KernelKind::row; }

// --- cumulative --------------------------------------------------------------

LogicalResult CumulativeOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location> loc,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  if (failed(checkAxis(loc, adaptor.getAxis(), type.getRank())))
    return failure();
  types.push_back(type);
  return success();
}

LogicalResult CumulativeOp::verify() {
  if (getKind() != ReduceKind::sum && getKind() != ReduceKind::prod)
    return emitOpError("expected kind sum or prod");
  return success();
}

SmallVector<utils::IteratorType> CumulativeOp::getLoopKinds() {
  return ::getLoopKinds(getX().getType().getRank(), int64_t(getAxis()));
}
AffineMap CumulativeOp::getOperandMap(unsigned) {
  return AffineMap::getMultiDimIdentityMap(getX().getType().getRank(),
                                           getContext());
}
AffineMap CumulativeOp::getResultMap(unsigned) { return getOperandMap(0); }
KernelKind CumulativeOp::getKernelKind() { return KernelKind::scan; }

#define GET_OP_CLASSES
#include "dialects/graph/Reduction.cpp.inc"

void GraphDialect::addReductionOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Reduction.cpp.inc"
      >();
}

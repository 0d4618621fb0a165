#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

static std::optional<double> getSplat(ElementsAttr value) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !dense.isSplat())
    return std::nullopt;
  Type type = dense.getElementType();
  if (isa<FloatType>(type)) {
    APFloat element = dense.getSplatValue<APFloat>();
    bool losesInfo;
    element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
    return element.convertToDouble();
  }
  constexpr int64_t kExact = int64_t(1) << 53;
  APInt element = dense.getSplatValue<APInt>();
  bool isUnsigned = type.isUnsignedInteger() || type.isInteger(1);
  if (element.getSignificantBits() > 63)
    return std::nullopt;
  int64_t number = isUnsigned ? element.getZExtValue() : element.getSExtValue();
  if (number > kExact || number < -kExact)
    return std::nullopt;
  return double(number);
}

std::optional<double> getSplat(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(op))
      return getSplat(constant.getValue());
    if (!isa<BroadcastOp, ReshapeOp>(op))
      return std::nullopt;
    tensor = op->getOperand(0);
  }
  return std::nullopt;
}

bool isClose(double value, double expected, Value like) {
  auto type = dyn_cast<FloatType>(getTensorType(like).getElementType());
  if (!type)
    return value == expected;
  double unit = std::ldexp(1.0, 1 - int(type.getFPMantissaWidth()));
  return value == expected ||
         std::abs(value - expected) < unit * std::abs(expected);
}

bool isSplat(Value tensor, double expected) {
  std::optional<double> value = getSplat(tensor);
  return value && isClose(*value, expected, tensor);
}

Value makeSplat(OpBuilder &builder, Location loc, RankedTensorType type,
                double value) {
  Type elementType = type.getElementType();
  auto scalarType = RankedTensorType::get({}, elementType);
  TypedAttr element =
      isa<FloatType>(elementType)
          ? TypedAttr(builder.getFloatAttr(elementType, value))
          : TypedAttr(builder.getIntegerAttr(elementType, int64_t(value)));
  Value scalar = builder.create<ConstantOp>(
      loc, scalarType, DenseElementsAttr::get(scalarType, Attribute(element)));
  if (type == scalarType)
    return scalar;
  return builder.create<BroadcastOp>(loc, type, scalar);
}

/// True if the extents other than 1 are the same on both sides.
static bool differsInUnitAxes(Value from, Value to) {
  auto getKept = [](Value tensor) {
    Extents kept = getExtents(tensor);
    llvm::erase_if(kept, [](AffineExpr e) { return getConstant(e) == 1; });
    return kept;
  };
  return getKept(from) == getKept(to);
}

Value lookThroughUnitReshapes(Value x) {
  auto reshape = x.getDefiningOp<ReshapeOp>();
  while (reshape && differsInUnitAxes(reshape.getX(), x)) {
    x = reshape.getX();
    reshape = x.getDefiningOp<ReshapeOp>();
  }
  return x;
}

bool hasOneLocalUse(Value value) {
  return value.hasOneUse() &&
         value.getParentBlock() == (*value.user_begin())->getBlock();
}

bool gathers(Operation *op) {
  return isa<ElementOpInterface>(op) && op->hasTrait<OpTrait::ReadsIndices>();
}

/// A concatenation of many weights is within; a walk through a whole model for
/// each of its values is not.
constexpr size_t kMaxParameterOps = 1024;

bool isParameter(Value value) {
  SmallVector<Value> worklist = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!worklist.empty() && seen.size() <= kMaxParameterOps) {
    Value next = worklist.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || op->getNumRegions() != 0)
      return false;
    if (!seen.insert(next).second || isa<WeightOp, ConstantOp>(op))
      continue;
    if (op->getNumOperands() == 0 && !isa<IotaOp>(op))
      return false; // a size: known at run time
    llvm::append_range(worklist, op->getOperands());
  }
  return worklist.empty();
}

std::optional<std::pair<Value, Value>>
matchEither(Operation *op, llvm::function_ref<bool(Value)> accept) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (accept(a))
    return std::make_pair(a, b);
  if (accept(b))
    return std::make_pair(b, a);
  return std::nullopt;
}

int64_t getBytes(RankedTensorType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

Value reshapeTo(OpBuilder &builder, Location loc, Value x,
                RankedTensorType type) {
  if (x.getType() == type)
    return x;
  return builder.create<ReshapeOp>(loc, type, x);
}

} // namespace tcc

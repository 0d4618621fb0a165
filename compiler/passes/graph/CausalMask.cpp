#include "compiler/passes/graph/CausalMask.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

/// What `value`, [..., rows, columns], has the matrices of: seen through what
/// only repeats them or adds axes.
static Value getMatrix(Value value) {
  while (isa_and_present<BroadcastOp, ReshapeOp>(value.getDefiningOp())) {
    Value from = value.getDefiningOp()->getOperand(0);
    if (getRank(from) < 2 ||
        !llvm::equal(ArrayRef(getExtents(from)).take_back(2),
                     ArrayRef(getExtents(value)).take_back(2), isEqual))
      break;
    value = from;
  }
  return value;
}

/// True if the elements of `x` are their indices along the axis that is
/// `fromEnd` from the end.
static bool isIndex(Value x, int64_t fromEnd) {
  while (auto broadcast = x.getDefiningOp<BroadcastOp>()) {
    Value from = broadcast.getX();
    if (getRank(from) < fromEnd ||
        !isEqual(getExtent(from, getRank(from) - fromEnd),
                 getExtent(x, getRank(x) - fromEnd)))
      return false;
    x = from;
  }
  int64_t axis = getRank(x) - fromEnd;
  if (auto iota = x.getDefiningOp<IotaOp>())
    return int64_t(iota.getAxis()) == axis;
  DenseIntElementsAttr values;
  if (!matchPattern(x, m_Constant(&values)) || axis < 0 ||
      values.getType().getDimSize(axis) != values.getNumElements())
    return false;
  return llvm::all_of(llvm::enumerate(values.getValues<APInt>()),
                      [](auto at) { return at.value() == at.index(); });
}

/// True if `isEqual(value, visible)` for each element of a constant matrix.
template <typename T>
static bool matchMatrix(DenseElementsAttr values,
                        llvm::function_ref<bool(const T &, bool)> isEqual) {
  ArrayRef<int64_t> shape = values.getType().getShape();
  if (shape.size() < 2)
    return false;
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  return llvm::all_of(
      llvm::enumerate(values.getValues<T>()), [&](auto element) {
        int64_t place = element.index();
        return isEqual(element.value(),
                       place % columns <= place / columns % rows);
      });
}

/// True if `condition` holds where the key's index is not larger.
static bool isVisible(Value condition) {
  condition = getMatrix(condition);
  DenseElementsAttr values;
  if (matchPattern(condition, m_Constant(&values)))
    return values.getElementType().isInteger(1) &&
           matchMatrix<bool>(values, [](bool x, bool y) { return x == y; });
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare)
    return false;
  if (compare.getKind() == CompareKind::le)
    return isIndex(compare.getLhs(), 1) && isIndex(compare.getRhs(), 2);
  return compare.getKind() == CompareKind::ge && isIndex(compare.getLhs(), 2) &&
         isIndex(compare.getRhs(), 1);
}

bool isCausalMask(Value mask) {
  mask = getMatrix(mask);
  DenseElementsAttr values;
  if (matchPattern(mask, m_Constant(&values)))
    return isa<FloatType>(values.getElementType()) &&
           matchMatrix<APFloat>(values, [](const APFloat &x, bool isVisible) {
             return isVisible ? x.isZero() : x.isInfinity() && x.isNegative();
           });
  auto select = mask.getDefiningOp<SelectOp>();
  return select && getSplat(select.getOnTrue()) == 0.0 &&
         getSplat(select.getOnFalse()) == -INFINITY &&
         isVisible(select.getCondition());
}

} // namespace tcc

//===- Combiner.cpp - Partial results of reductions -----------------------===//

#include "compiler/codegen/cuda/kernels/Rows.h"
#include "dialects/graph/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

Type Combiner::getValueType() {
  if (toIndex)
    return getScalarType(getElementTypeOrSelf(toIndex.getX()));
  return cast<ReductionOpInterface>(op).getAccumulatorType();
}

/// The value that any element is at least as good as; its index loses against
/// all others.
Partial Combiner::getNeutral() {
  if (!toIndex)
    return {cast<ReductionOpInterface>(op).emitInit(b, b.getLoc()), Value()};
  ScalarEmitter e(b, b.getLoc());
  Type type = getValueType();
  bool isMax = toIndex.getKind() == ReduceKind::max;
  Value index = b.index(
      toIndex.getSelectLast() ? -1 : std::numeric_limits<int32_t>::max());
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return {e.constant(type, isMax ? -infinity : infinity), index};
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedElement(toIndex.getX());
  APInt worst = isMax ? (isUnsigned ? APInt::getMinValue(width)
                                    : APInt::getSignedMinValue(width))
                      : (isUnsigned ? APInt::getMaxValue(width)
                                    : APInt::getSignedMaxValue(width));
  return {e.integer(type, worst), index};
}

/// NaN is better than all numbers; of equal values the first or the last one.
Value Combiner::isBetter(Partial x, Partial y) {
  ScalarEmitter e(b, b.getLoc());
  bool isMax = toIndex.getKind() == ReduceKind::max;
  using I = arith::CmpIPredicate;
  Value isAhead, isLevel;
  if (isa<FloatType>(x.value.getType())) {
    using F = arith::CmpFPredicate;
    auto compare = [&](F predicate, Value l, Value r) {
      return e.emit<arith::CmpFOp>(predicate, l, r);
    };
    Value isXNan = compare(F::UNO, x.value, x.value);
    Value isYNan = compare(F::UNO, y.value, y.value);
    Value isYNumber = compare(F::ORD, y.value, y.value);
    isAhead =
        e.emit<arith::OrIOp>(compare(isMax ? F::OGT : F::OLT, x.value, y.value),
                             e.emit<arith::AndIOp>(isXNan, isYNumber));
    isLevel = e.emit<arith::OrIOp>(compare(F::OEQ, x.value, y.value),
                                   e.emit<arith::AndIOp>(isXNan, isYNan));
  } else {
    bool isUnsigned = isUnsignedElement(toIndex.getX());
    I predicate =
        isMax ? (isUnsigned ? I::ugt : I::sgt) : (isUnsigned ? I::ult : I::slt);
    isAhead = e.compare(predicate, x.value, y.value);
    isLevel = e.compare(I::eq, x.value, y.value);
  }
  Value comesFirst =
      e.compare(toIndex.getSelectLast() ? I::sgt : I::slt, x.index, y.index);
  return e.emit<arith::OrIOp>(isAhead,
                              e.emit<arith::AndIOp>(isLevel, comesFirst));
}

Partial Combiner::combine(Partial lhs, Partial rhs) {
  if (toIndex)
    return select(isBetter(rhs, lhs), rhs, lhs);
  return {cast<ReductionOpInterface>(op).emitCombine(b, b.getLoc(), lhs.value,
                                                     rhs.value),
          Value()};
}

Partial Combiner::select(Value condition, Partial then, Partial otherwise) {
  auto choose = [&](Value x, Value y) -> Value {
    return b.create<arith::SelectOp>(condition, x, y);
  };
  return {choose(then.value, otherwise.value),
          toIndex ? choose(then.index, otherwise.index) : Value()};
}

Partial Combiner::shuffle(Partial partial, int64_t mask) {
  return {emitShuffle(b, partial.value, mask),
          toIndex ? emitShuffle(b, partial.index, mask) : Value()};
}

Value Combiner::getResult(Partial partial, codegen::ElementEmitter &elements) {
  if (toIndex)
    return b.create<arith::IndexCastOp>(b.getI64Type(), partial.index);
  return elements.round(b, b.getLoc(), partial.value,
                        getElementTypeOrSelf(op->getResult(0)));
}

} // namespace tcc::cuda

#include "compiler/codegen/region/Updates.h"

#include "compiler/codegen/region/ElementEmitter.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

Value emitUpdate(OpBuilder &b, Location loc, ScatterOpInterface op, Value old,
                 Value update) {
  ScalarEmitter e(b, loc);
  bool isFloat = isa<FloatType>(old.getType());
  bool isUnsigned = isUnsignedElement(op->getOperand(0));
  switch (op.getKind()) {
  case ScatterKind::none:
    return update;
  case ScatterKind::add:
    return isFloat ? e.add(old, update) : e.emit<arith::AddIOp>(old, update);
  case ScatterKind::mul:
    return isFloat ? e.mul(old, update) : e.emit<arith::MulIOp>(old, update);
  case ScatterKind::max:
    if (isFloat)
      return e.emit<arith::MaximumFOp>(old, update);
    return isUnsigned ? e.emit<arith::MaxUIOp>(old, update)
                      : e.emit<arith::MaxSIOp>(old, update);
  case ScatterKind::min:
    if (isFloat)
      return e.emit<arith::MinimumFOp>(old, update);
    return isUnsigned ? e.emit<arith::MinUIOp>(old, update)
                      : e.emit<arith::MinSIOp>(old, update);
  }
  llvm_unreachable("covered switch");
}

Value emitIsBetter(OpBuilder &b, Location loc, TopKOp op, Value x, Value y) {
  ScalarEmitter e(b, loc);
  if (op.getSmallest())
    std::swap(x, y);
  if (!isa<FloatType>(x.getType()))
    return e.compare(isUnsignedElement(op.getX()) ? arith::CmpIPredicate::ugt
                                                  : arith::CmpIPredicate::sgt,
                     x, y);
  auto compare = [&](arith::CmpFPredicate predicate, Value l, Value r) {
    return e.emit<arith::CmpFOp>(predicate, l, r);
  };
  // Larger, or one of them is NaN, but not y.
  return e.emit<arith::AndIOp>(compare(arith::CmpFPredicate::UGT, x, y),
                               compare(arith::CmpFPredicate::ORD, y, y));
}

} // namespace tcc::codegen

#include "compiler/codegen/region/Boxes.h"

#include <limits>

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

Box emitBox(KernelBuilder &b, RegionFrame &frame, ChooseBoxesOp op, Value batch,
            Value box) {
  Box result;
  for (int64_t i = 0; i < Box::kBorders; ++i)
    result.parts[i] = frame.elements.element(b, frame.loc, op.getBorders(),
                                             {batch, b.index(i), box});
  Value *low = result.parts, *high = low + 2;
  result.parts[Box::kBorders] =
      b.create<arith::MulFOp>(b.create<arith::SubFOp>(high[0], low[0]),
                              b.create<arith::SubFOp>(high[1], low[1]));
  return result;
}

Value emitOverlaps(KernelBuilder &b, const Box &x, const Box &y,
                   Value threshold) {
  using F = arith::CmpFPredicate;
  auto compare = [&](F predicate, Value l, Value r) -> Value {
    return b.create<arith::CmpFOp>(predicate, l, r);
  };
  // What an instruction does: NaN needs no rule here.
  auto choose = [&](F predicate, Value l, Value r) -> Value {
    return b.create<arith::SelectOp>(compare(predicate, l, r), l, r);
  };
  Value zero = b.zero(threshold.getType()), both;
  for (int axis : {0, 1}) {
    Value extent = b.create<arith::SubFOp>(
        choose(F::OLT, x.parts[2 + axis], y.parts[2 + axis]),
        choose(F::OGT, x.parts[axis], y.parts[axis]));
    extent = choose(F::OGT, extent, zero);
    both = both ? b.create<arith::MulFOp>(both, extent) : extent;
  }
  Value areas =
      b.create<arith::AddFOp>(x.parts[Box::kBorders], y.parts[Box::kBorders]);
  Value share =
      b.create<arith::DivFOp>(both, b.create<arith::SubFOp>(areas, both));
  return b.create<arith::AndIOp>(compare(F::OGT, both, zero),
                                 compare(F::OGT, share, threshold));
}

Value emitBoxKey(KernelBuilder &b, Value score, Value box) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto number = [&](int64_t value) -> Value {
    return b.create<arith::ConstantIntOp>(value, 32);
  };
  Value isNan =
      b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, score, score);
  score = b.create<arith::AddFOp>(score, b.zero(score.getType()));
  Value bits = b.create<arith::BitcastOp>(i32, score);
  Value isNegative =
      b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, bits, number(0));
  Value flipped = b.create<arith::SelectOp>(
      isNegative, number(-1), number(std::numeric_limits<int32_t>::min()));
  bits = b.create<arith::SelectOp>(isNan, number(-1),
                                   b.create<arith::XOrIOp>(bits, flipped));
  Value low = b.create<arith::XOrIOp>(b.create<arith::IndexCastOp>(i32, box),
                                      number(-1));
  Value high = b.create<arith::ShLIOp>(b.create<arith::ExtUIOp>(i64, bits),
                                       b.create<arith::ConstantIntOp>(32, 64));
  return b.create<arith::OrIOp>(high, b.create<arith::ExtUIOp>(i64, low));
}

Value emitBoxOfKey(KernelBuilder &b, Value key) {
  Value low =
      b.create<arith::XOrIOp>(b.create<arith::TruncIOp>(b.getI32Type(), key),
                              b.create<arith::ConstantIntOp>(-1, 32));
  return b.create<arith::IndexCastUIOp>(b.getIndexType(), low);
}

Value emitBoxLimit(KernelBuilder &b, RegionFrame &frame, ChooseBoxesOp op) {
  Value limit = b.create<arith::IndexCastOp>(
      b.getIndexType(),
      frame.elements.element(b, frame.loc, op.getLimit(), {}));
  return b.max(b.min(limit, frame.size(b, op.getPlaceCount())), b.index(0));
}

} // namespace tcc::codegen

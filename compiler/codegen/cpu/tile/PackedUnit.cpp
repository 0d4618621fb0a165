#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

/// The bits of a bf16 are the upper ones of the f32 that it is.
static Value widenHalf(KernelBuilder &b, Value pairs, bool isHigh) {
  auto type = cast<VectorType>(pairs.getType());
  auto constant = [&](uint32_t bits) -> Value {
    return b.create<arith::ConstantOp>(
        DenseElementsAttr::get(type, APInt(32, bits)));
  };
  Value bits;
  if (isHigh)
    bits = b.create<arith::AndIOp>(pairs, constant(0xffff0000u));
  else
    bits = b.create<arith::ShLIOp>(pairs, constant(16));
  return b.create<arith::BitcastOp>(type.clone(b.getF32Type()), bits);
}

static Value emitInstruction(KernelBuilder &b, Value x, Value y, Value sum) {
  int64_t lanes = cast<VectorType>(sum.getType()).getNumElements();
  auto halves = VectorType::get(2 * lanes, b.getBF16Type());
  std::string name =
      ("llvm.x86.avx512bf16.dpbf16ps." + Twine(32 * lanes)).str();
  SmallVector<Value> arguments = {sum, b.create<LLVM::BitcastOp>(halves, x),
                                  b.create<LLVM::BitcastOp>(halves, y)};
  return b
      .create<LLVM::CallIntrinsicOp>(sum.getType(), b.getStringAttr(name),
                                     arguments)
      .getResult(0);
}

/// The sums that a unit goes to are as wide.
static constexpr unsigned kUnitBits = 32;

Type tcc::cpu::getUnitType(Type element, Packing packing) {
  return packing.group == 1 ? element
                            : IntegerType::get(element.getContext(), kUnitBits);
}

Value tcc::cpu::multiplyUnits(KernelBuilder &b, Value x, Value y, Value sum,
                              VectorUnit unit) {
  if (unit.hasPairProducts)
    return emitInstruction(b, x, y, sum);
  for (bool isHigh : {true, false})
    sum = b.multiplyAdd(widenHalf(b, x, isHigh), widenHalf(b, y, isHigh), sum);
  return sum;
}

Memory tcc::cpu::asUnits(Memory matrix, Packing packing) {
  return {matrix.pointer, getUnitType(matrix.element, packing)};
}

Value tcc::cpu::interleave(KernelBuilder &b, ArrayRef<Value> rows) {
  assert(rows.size() == 2 && "only pairs have an instruction");
  Value low = rows[0], high = rows[1];
  int64_t lanes = cast<VectorType>(low.getType()).getNumElements();
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < lanes; ++i)
    places.append({i, lanes + i});
  Value mixed = b.create<vector::ShuffleOp>(low, high, places);
  return b.create<LLVM::BitcastOp>(VectorType::get(lanes, b.getI32Type()),
                                   mixed);
}

Value tcc::cpu::makeUnit(KernelBuilder &b, ArrayRef<Value> elements) {
  assert(elements.size() == 2 && "only pairs have an instruction");
  Value low = elements[0], high = elements[1];
  auto bits = [&](Value x) {
    return b.create<arith::BitcastOp>(b.getI32Type(), x);
  };
  Value places = b.create<arith::ConstantIntOp>(16, 32);
  Value mask = b.create<arith::ConstantIntOp>(0xffff0000u, 32);
  return b.create<arith::OrIOp>(b.create<arith::ShRUIOp>(bits(low), places),
                                b.create<arith::AndIOp>(bits(high), mask));
}

void tcc::cpu::storeHalves(KernelBuilder &b, Value halves, Value isHigh,
                           Memory pairs, Value at, Value mask) {
  auto type = cast<VectorType>(halves.getType()).clone(b.getI32Type());
  Value all = b.create<vector::SplatOp>(mask.getType(), isHigh);
  Value none = b.zero(type);
  Value places = b.create<arith::SelectOp>(
      isHigh, b.create<arith::ConstantOp>(DenseElementsAttr::get(type, 16)),
      none);
  Value bits = b.create<arith::ExtUIOp>(type, halves);
  bits = b.create<arith::ShLIOp>(bits, places);
  Value kept = b.create<arith::AndIOp>(mask, all);
  Value below = b.loadMasked(pairs, at, kept, none);
  b.storeMasked(b.create<arith::OrIOp>(bits, below), pairs, at, mask);
}

#include "compiler/codegen/cuda/kernels/WarpProduct.h"

using namespace mlir;

namespace tcc::cuda {

/// The operand of the intrinsic that a word is.
static Value getOperand(KernelBuilder &b, Type narrow, Value word) {
  if (narrow.isBF16())
    return word;
  return b.create<LLVM::BitcastOp>(VectorType::get(2, narrow), word);
}

SumFragment emitWarpProduct(KernelBuilder &b, Type narrow,
                            const RowFragment &rows,
                            const ColumnFragment &columns,
                            const SumFragment &sums) {
  SmallVector<Value> operands;
  for (Value word : rows)
    operands.push_back(getOperand(b, narrow, word));
  for (Value word : columns)
    operands.push_back(getOperand(b, narrow, word));
  operands.append(sums.begin(), sums.end());
  StringRef name = narrow.isBF16() ? "llvm.nvvm.mma.m16n8k16.row.col.bf16"
                                   : "llvm.nvvm.mma.m16n8k16.row.col.f32.f32";
  SmallVector<Type> types(sums.size(), b.getF32Type());
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  Value all =
      b.create<LLVM::CallIntrinsicOp>(type, b.getStringAttr(name), operands)
          .getResult(0);
  SumFragment result;
  for (auto [i, sum] : llvm::enumerate(result))
    sum = b.create<LLVM::ExtractValueOp>(all, int64_t(i));
  return result;
}

Value packBits(KernelBuilder &b, Value low, Value high) {
  Type word = b.getI32Type();
  Value places = b.create<arith::ConstantIntOp>(16, word);
  high = b.create<arith::ShLIOp>(b.create<arith::ExtUIOp>(word, high), places);
  return b.create<arith::OrIOp>(b.create<arith::ExtUIOp>(word, low), high);
}

/// The upper half of an f32 is a bf16: a conversion would be an instruction.
static Value getExactBits(KernelBuilder &b, Type narrow, Value x) {
  Type i16 = b.getI16Type(), i32 = b.getI32Type();
  if (!narrow.isBF16())
    return b.create<arith::BitcastOp>(i16,
                                      b.create<arith::TruncFOp>(narrow, x));
  Value bits = b.create<arith::BitcastOp>(i32, x);
  Value places = b.create<arith::ConstantIntOp>(16, i32);
  return b.create<arith::TruncIOp>(i16, b.create<arith::ShRUIOp>(bits, places));
}

Value packExact(KernelBuilder &b, Type narrow, Value low, Value high) {
  return packBits(b, getExactBits(b, narrow, low),
                  getExactBits(b, narrow, high));
}

Value packRounded(KernelBuilder &b, Type narrow, Value low, Value high) {
  auto round = [&](Value x) -> Value {
    return b.create<arith::BitcastOp>(b.getI16Type(),
                                      b.create<arith::TruncFOp>(narrow, x));
  };
  return packBits(b, round(low), round(high));
}

} // namespace tcc::cuda

#include "compiler/codegen/cpu/KernelBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tcc::cpu;

Value KernelBuilder::index(int64_t value) {
  return create<arith::ConstantIndexOp>(value);
}

Value KernelBuilder::add(Value x, Value y) {
  return createOrFold<arith::AddIOp>(x, y);
}

Value KernelBuilder::sub(Value x, Value y) {
  return createOrFold<arith::SubIOp>(x, y);
}

Value KernelBuilder::mul(Value x, Value y) {
  if (constantOf(x) == 1)
    return y;
  return createOrFold<arith::MulIOp>(x, y);
}

Value KernelBuilder::div(Value x, Value y) {
  if (constantOf(y) == 1)
    return x;
  return createOrFold<arith::DivUIOp>(x, y);
}

Value KernelBuilder::rem(Value x, Value y) {
  if (constantOf(y) == 1)
    return index(0);
  return createOrFold<arith::RemUIOp>(x, y);
}

Value KernelBuilder::ceilDiv(Value x, int64_t divisor) {
  return div(add(x, index(divisor - 1)), index(divisor));
}

Value KernelBuilder::min(Value x, Value y) {
  return createOrFold<arith::MinSIOp>(x, y);
}

Value KernelBuilder::max(Value x, Value y) {
  return createOrFold<arith::MaxSIOp>(x, y);
}

Value KernelBuilder::less(Value x, Value y) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, y);
}

Value KernelBuilder::equal(Value x, Value y) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
}

Value KernelBuilder::linearize(ValueRange indices, ValueRange strides) {
  Value sum = index(0);
  for (auto [i, stride] : llvm::zip_equal(indices, strides))
    sum = add(sum, mul(i, stride));
  return sum;
}

SmallVector<Value> KernelBuilder::delinearize(Value position,
                                              ValueRange sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t d = sizes.size(); d-- > 1;) {
    indices[d] = rem(position, sizes[d]);
    position = div(position, sizes[d]);
  }
  if (!sizes.empty())
    indices[0] = position;
  return indices;
}

void KernelBuilder::loop(Value from, Value to, Value step, Body body) {
  auto loop = create<scf::ForOp>(from, to, step);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

SmallVector<Value> KernelBuilder::loop(Value from, Value to, ValueRange carried,
                                       CarryBody body) {
  auto loop = create<scf::ForOp>(from, to, index(1), carried);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  create<scf::YieldOp>(body(loop.getInductionVar(), loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::when(Value condition, function_ref<void()> then,
                         function_ref<void()> otherwise) {
  if (APInt known; matchPattern(condition, m_ConstantInt(&known))) {
    if (!known.isZero())
      return then();
    return otherwise ? otherwise() : void();
  }
  bool hasElse = static_cast<bool>(otherwise);
  auto branch = create<scf::IfOp>(condition, hasElse);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  then();
  if (!hasElse)
    return;
  setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

Value KernelBuilder::zero(Type type) {
  return create<arith::ConstantOp>(getZeroAttr(type));
}

std::optional<int64_t> tcc::cpu::constantOf(Value index) {
  return getConstantIntValue(index);
}

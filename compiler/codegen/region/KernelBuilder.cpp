#include "compiler/codegen/region/KernelBuilder.h"
#include "runtime/base/Alignment.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include <numeric>

using namespace mlir;
using namespace tcc::codegen;

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

SmallVector<Value> KernelBuilder::loop(Value from, Value to, Value step,
                                       ValueRange carried, CarryBody body) {
  if (constantOf(from) && constantOf(from) == constantOf(to))
    return SmallVector<Value>(carried);
  auto loop = create<scf::ForOp>(from, to, step, carried);
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

SmallVector<Value> KernelBuilder::choose(Value condition, TypeRange types,
                                         Values then, Values otherwise) {
  auto branch = create<scf::IfOp>(types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  create<scf::YieldOp>(then());
  setInsertionPointToStart(branch.elseBlock());
  create<scf::YieldOp>(otherwise());
  return SmallVector<Value>(branch.getResults());
}

Value KernelBuilder::choose(Value condition, Type type,
                            function_ref<Value()> then,
                            function_ref<Value()> otherwise) {
  return choose(
      condition, TypeRange(type), [&] { return SmallVector<Value>{then()}; },
      [&] { return SmallVector<Value>{otherwise()}; })[0];
}

Value KernelBuilder::lanesBelow(int64_t lanes, Value end) {
  auto type = VectorType::get(lanes, getI32Type());
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = create<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  Value limit = createOrFold<arith::IndexCastOp>(getI32Type(), end);
  return create<arith::CmpIOp>(arith::CmpIPredicate::slt, iota,
                               create<vector::SplatOp>(type, limit));
}

Value KernelBuilder::zero(Type type) {
  return create<arith::ConstantOp>(getZeroAttr(type));
}

static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(element) : element;
}

/// The bits of a bf16 are the upper ones of the f32: LLVM's conversion would
/// flush denormals or call a library.
static Value widenBF16(KernelBuilder &b, Value value) {
  auto as = [&](unsigned width) {
    return withElement(value.getType(), b.getIntegerType(width));
  };
  Value bits = b.create<arith::BitcastOp>(as(16), value);
  bits = b.create<arith::ExtUIOp>(as(32), bits);
  Value places = b.create<arith::ConstantOp>(
      isa<VectorType>(as(32))
          ? TypedAttr(DenseElementsAttr::get(cast<VectorType>(as(32)), 16))
          : TypedAttr(b.getI32IntegerAttr(16)));
  bits = b.create<arith::ShLIOp>(bits, places);
  Type f32 = withElement(value.getType(), b.getF32Type());
  return b.create<arith::BitcastOp>(f32, bits);
}

Value KernelBuilder::widen(Value value, Type wide, bool isUnsigned) {
  Type element = getElementTypeOrSelf(value);
  if (element == wide)
    return value;
  if (element.isBF16())
    return widenBF16(*this, value);
  Type type = withElement(value.getType(), wide);
  if (isa<FloatType>(element))
    return create<arith::ExtFOp>(type, value);
  if (isUnsigned)
    return create<arith::ExtUIOp>(type, value);
  return create<arith::ExtSIOp>(type, value);
}

/// Not vector.fma: that becomes llvm.fmuladd, which is two instructions where
/// contraction is off.
Value KernelBuilder::multiplyAdd(Value x, Value y, Value sum) {
  if (isa<FloatType>(getElementTypeOrSelf(sum)))
    return create<math::FmaOp>(x, y, sum);
  return create<arith::AddIOp>(sum, create<arith::MulIOp>(x, y));
}

static unsigned alignmentOf(Type element) {
  return std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

/// Not `inbounds`: masked lanes may lie outside of the buffer.
Value KernelBuilder::address(Memory memory, Value at) {
  Value offset = createOrFold<arith::IndexCastOp>(getI64Type(), at);
  return create<LLVM::GEPOp>(memory.pointer.getType(), memory.element,
                             memory.pointer, ArrayRef<LLVM::GEPArg>{offset});
}

Value KernelBuilder::load(Memory from, Value at) {
  return create<LLVM::LoadOp>(from.element, address(from, at),
                              alignmentOf(from.element));
}

Value KernelBuilder::loadVector(Memory from, Value at, int64_t lanes) {
  return create<LLVM::LoadOp>(VectorType::get(lanes, from.element),
                              address(from, at), alignmentOf(from.element));
}

void KernelBuilder::store(Value value, Memory to, Value at) {
  create<LLVM::StoreOp>(value, address(to, at), alignmentOf(to.element));
}

Memory Memory::asBits() const {
  if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() != 16)
    return *this;
  return {pointer, IntegerType::get(element.getContext(), 16)};
}

Value KernelBuilder::loadMasked(Memory from, Value at, Value mask,
                                Value otherwise) {
  Type type = otherwise.getType();
  if (Memory bits = from.asBits(); bits.element != from.element) {
    Value kept =
        create<arith::BitcastOp>(withElement(type, bits.element), otherwise);
    return create<arith::BitcastOp>(type, loadMasked(bits, at, mask, kept));
  }
  return create<LLVM::MaskedLoadOp>(type, address(from, at), mask, otherwise,
                                    alignmentOf(from.element));
}

void KernelBuilder::storeMasked(Value value, Memory to, Value at, Value mask) {
  Memory bits = to.asBits();
  if (bits.element != to.element)
    value = create<arith::BitcastOp>(withElement(value.getType(), bits.element),
                                     value);
  create<LLVM::MaskedStoreOp>(value, address(bits, at), mask,
                              alignmentOf(bits.element));
}

Value KernelBuilder::loadEverySecond(Memory from, Value at, Value mask) {
  auto maskType = cast<VectorType>(mask.getType());
  int64_t lanes = maskType.getNumElements();
  auto type = VectorType::get(lanes, from.element);
  if (Memory bits = from.asBits(); bits.element != from.element)
    return create<arith::BitcastOp>(type, loadEverySecond(bits, at, mask));
  SmallVector<Value> halves;
  for (int64_t half : {int64_t(0), lanes / 2}) {
    // Lane i of the mask for place 2 * i of both loads; nothing between.
    SmallVector<int64_t> places(lanes, lanes);
    for (int64_t i = 0; i < lanes / 2; ++i)
      places[2 * i] = half + i;
    Value spread = create<vector::ShuffleOp>(mask, zero(maskType), places);
    Value place = add(at, index(2 * half));
    halves.push_back(loadMasked(from, place, spread, zero(type)));
  }
  SmallVector<int64_t> even;
  for (int64_t i = 0; i < lanes; ++i)
    even.push_back(2 * i);
  return create<vector::ShuffleOp>(halves[0], halves[1], even);
}

Value KernelBuilder::gather(Memory from, Value at, Value offsets, Value mask) {
  int64_t lanes = cast<VectorType>(offsets.getType()).getNumElements();
  auto type = VectorType::get(lanes, from.element);
  if (Memory bits = from.asBits(); bits.element != from.element)
    return create<arith::BitcastOp>(type, gather(bits, at, offsets, mask));
  Type pointers =
      LLVM::getFixedVectorType(from.pointer.getType(), unsigned(lanes));
  Value addresses =
      create<LLVM::GEPOp>(pointers, from.element, address(from, at),
                          ArrayRef<LLVM::GEPArg>{offsets});
  return create<LLVM::masked_gather>(
      type, addresses, mask, ValueRange{zero(type)}, alignmentOf(from.element));
}

void KernelBuilder::prefetch(Memory from, Value at, CacheLevel level) {
  constexpr int read = 0, data = 1;
  create<LLVM::Prefetch>(address(from, at), read, level, data);
}

void KernelBuilder::prefetchForStore(Memory to, Value at) {
  constexpr int write = 1, data = 1;
  create<LLVM::Prefetch>(address(to, at), write, firstLevel, data);
}

/// In the entry block: the stack grows with each alloca in a loop.
Memory KernelBuilder::allocate(Type element, int64_t count) {
  InsertionGuard guard(*this);
  Operation *function = getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  setInsertionPointToStart(&function->getRegion(0).front());
  Value size = create<LLVM::ConstantOp>(getI64Type(), count);
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  return {create<LLVM::AllocaOp>(pointer, element, size, kTensorAlignment),
          element};
}

Memory KernelBuilder::view(Value pointer, int64_t offset, Type element) {
  return {address({pointer, getI8Type()}, index(offset)), element};
}

std::optional<int64_t> tcc::codegen::constantOf(Value index) {
  return getConstantIntValue(index);
}

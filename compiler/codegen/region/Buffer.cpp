#include "compiler/codegen/region/Buffer.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

int64_t getStorageBytes(Type elementType) {
  return (elementType.getIntOrFloatBitWidth() + 7) / 8;
}

/// bf16 moves as its bits: LLVM's conversions flush denormals or call a
/// library.
static Type getMemoryType(Type elementType) {
  MLIRContext *context = elementType.getContext();
  if (elementType.isBF16())
    return IntegerType::get(context, 16);
  if (auto integer = dyn_cast<IntegerType>(elementType))
    return IntegerType::get(context, std::max(8u, integer.getWidth()));
  return elementType;
}

/// The bits of a bf16 as those of the f32 it is.
static Value widenBits(const ScalarEmitter &e, Value bits) {
  MLIRContext *context = bits.getContext();
  Type i32 = IntegerType::get(context, 32);
  Value wide = e.emit<arith::ExtUIOp>(i32, bits);
  Value shifted = e.emit<arith::ShLIOp>(wide, e.constant(i32, 16));
  return e.emit<arith::BitcastOp>(Float32Type::get(context), shifted);
}

static Value roundToBF16(const ScalarEmitter &e, Value x) {
  Type i32 = IntegerType::get(x.getContext(), 32);
  Value bits = e.emit<arith::BitcastOp>(i32, x);
  // Half of the last place, less one for even results: carries round up.
  Value odd = e.emit<arith::AndIOp>(
      e.emit<arith::ShRUIOp>(bits, e.constant(i32, 16)), e.constant(i32, 1));
  Value half = e.emit<arith::AddIOp>(odd, e.constant(i32, 0x7fff));
  Value sum = e.emit<arith::AddIOp>(bits, half);
  Value mask = e.integer(i32, APInt(32, 0xffff0000u));
  Value rounded = e.emit<arith::AndIOp>(sum, mask);
  Value quiet = e.emit<arith::OrIOp>(e.emit<arith::AndIOp>(bits, mask),
                                     e.constant(i32, 0x00400000));
  Value isNan = e.emit<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  return e.emit<arith::BitcastOp>(x.getType(), e.select(isNan, quiet, rounded));
}

Value emitRounding(OpBuilder &b, Location loc, Value x, Type elementType) {
  ScalarEmitter e(b, loc);
  if (elementType.isBF16())
    return roundToBF16(e, x);
  if (elementType.isF16())
    return e.emit<arith::ExtFOp>(x.getType(),
                                 e.emit<arith::TruncFOp>(elementType, x));
  return x;
}

/// `pointer` advanced by `position` elements, by one summand after the other:
/// LLVM turns a sum without common bits into an `or`, in which it may no longer
/// see that neighbours are adjacent.
static Value advance(OpBuilder &b, Location loc, Value pointer, Value position,
                     Type type, bool isWhole) {
  if (auto sum = position.getDefiningOp<arith::AddIOp>()) {
    pointer = advance(b, loc, pointer, sum.getLhs(), type, false);
    return advance(b, loc, pointer, sum.getRhs(), type, false);
  }
  Value offset =
      b.createOrFold<arith::IndexCastOp>(loc, b.getI64Type(), position);
  // Only the whole sum is known to stay inside.
  return b.create<LLVM::GEPOp>(loc, pointer.getType(), type, pointer,
                               ArrayRef<LLVM::GEPArg>{offset}, isWhole);
}

Value Buffer::getAddress(OpBuilder &b, Location loc, Value position,
                         Type type) const {
  return advance(b, loc, pointer, position, type, /*isWhole=*/true);
}

Value Buffer::loadType(OpBuilder &b, Location loc, Value position, Type type,
                       int64_t alignment) const {
  Value address = getAddress(b, loc, position, getMemoryType(elementType));
  auto op = b.create<LLVM::LoadOp>(loc, type, address, alignment);
  if (scopes)
    op.setAliasScopesAttr(scopes);
  if (otherScopes)
    op.setNoaliasScopesAttr(otherScopes);
  return op;
}

void Buffer::storeType(OpBuilder &b, Location loc, Value value, Value position,
                       int64_t alignment) const {
  Value address = getAddress(b, loc, position, getMemoryType(elementType));
  auto op = b.create<LLVM::StoreOp>(
      loc, value, address, alignment, /*isVolatile=*/false,
      /*isNonTemporal=*/false,
      isAtomic ? LLVM::AtomicOrdering::monotonic
               : LLVM::AtomicOrdering::not_atomic);
  if (scopes)
    op.setAliasScopesAttr(scopes);
  if (otherScopes)
    op.setNoaliasScopesAttr(otherScopes);
}

Value Buffer::load(OpBuilder &b, Location loc, Value position) const {
  ScalarEmitter e(b, loc);
  Value x = loadType(b, loc, position, getMemoryType(elementType),
                     getStorageBytes(elementType));
  if (elementType.isInteger(1))
    return e.compare(arith::CmpIPredicate::ne, x, e.like(x, 0));
  if (elementType.isBF16())
    return widenBits(e, x);
  if (elementType.isF16())
    return e.emit<arith::ExtFOp>(b.getF32Type(), x);
  return x;
}

/// The bf16 that `scalar` was widened from, or null.
static Value getNarrow(Value scalar, Type elementType) {
  Operation *op = scalar.getDefiningOp();
  bool isNarrow = elementType.isBF16() &&
                  isa_and_present<arith::ExtFOp, LLVM::FPExtOp>(op) &&
                  op->getOperand(0).getType() == elementType;
  return isNarrow ? op->getOperand(0) : Value();
}

void Buffer::store(OpBuilder &b, Location loc, Value scalar,
                   Value position) const {
  ScalarEmitter e(b, loc);
  Type type = getMemoryType(elementType);
  if (elementType.isInteger(1)) {
    scalar = e.emit<arith::ExtUIOp>(type, scalar);
  } else if (Value narrow = getNarrow(scalar, elementType)) {
    scalar = e.emit<arith::BitcastOp>(type, narrow);
  } else if (elementType.isBF16()) {
    Value bits = e.emit<arith::BitcastOp>(b.getI32Type(), scalar);
    Value high = e.emit<arith::ShRUIOp>(bits, e.constant(bits.getType(), 16));
    scalar = e.emit<arith::TruncIOp>(type, high);
  } else if (elementType.isF16()) {
    scalar = e.emit<arith::TruncFOp>(type, scalar);
  }
  storeType(b, loc, scalar, position, getStorageBytes(elementType));
}

Value Buffer::loadVector(OpBuilder &b, Location loc, Value position,
                         int64_t count) const {
  auto type = VectorType::get(count, getMemoryType(elementType));
  return loadType(b, loc, position, type, getStorageBytes(elementType));
}

void Buffer::storeVector(OpBuilder &b, Location loc, Value vector,
                         Value position) const {
  storeType(b, loc, vector, position, getStorageBytes(elementType));
}

void separate(MutableArrayRef<Buffer *> buffers) {
  if (buffers.empty())
    return;
  MLIRContext *context = buffers.front()->getElementType().getContext();
  auto createId = [&] { return DistinctAttr::create(UnitAttr::get(context)); };
  auto domain = LLVM::AliasScopeDomainAttr::get(context, createId(), nullptr);
  SmallVector<Attribute> scopes;
  for (size_t i = 0; i < buffers.size(); ++i)
    scopes.push_back(
        LLVM::AliasScopeAttr::get(context, createId(), domain, nullptr));
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    SmallVector<Attribute> others(scopes);
    others.erase(others.begin() + i);
    buffer->scopes = ArrayAttr::get(context, scopes[i]);
    buffer->otherScopes = ArrayAttr::get(context, others);
  }
}

} // namespace tcc::codegen

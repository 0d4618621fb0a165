#include "compiler/codegen/cpu/kernels/RadixSort.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tcc::codegen;

namespace tcc::cpu {

static constexpr int64_t kDigitBits = 8, kDigits = 1 << kDigitBits;

static int64_t getPasses(Type key) {
  return key.getIntOrFloatBitWidth() / kDigitBits;
}

/// Bytes of one array, which the next one follows.
static int64_t getArrayBytes(Type element, int64_t count) {
  return llvm::alignTo(count * bytesOf(element), 8);
}

int64_t RadixSort::getBytes(Type key, Type index, int64_t capacity) {
  return getArrayBytes(key, 2 * capacity) + getArrayBytes(index, 2 * capacity) +
         getPasses(key) * kDigits * 4;
}

RadixSort::RadixSort(KernelBuilder &b, Value scratch, Type key, Type index,
                     int64_t capacity)
    : b(b), capacity(capacity) {
  keys = {scratch, key};
  int64_t offset = getArrayBytes(key, 2 * capacity);
  indices = b.view(scratch, offset, index);
  offset += getArrayBytes(index, 2 * capacity);
  counts = b.view(scratch, offset, b.getI32Type());
}

/// Where the count of the key's digit lies.
Value RadixSort::getDigit(Value key, Value pass) {
  Type type = key.getType();
  Value shift =
      b.create<arith::IndexCastOp>(type, b.mul(pass, b.index(kDigitBits)));
  Value digit = b.create<arith::AndIOp>(
      b.create<arith::ShRUIOp>(key, shift),
      b.create<arith::ConstantOp>(b.getIntegerAttr(type, kDigits - 1)));
  return b.add(b.mul(pass, b.index(kDigits)),
               b.create<arith::IndexCastUIOp>(b.getIndexType(), digit));
}

/// Counts all digits at once.
void RadixSort::count(Value from, Value count) {
  int64_t passes = getPasses(keys.element);
  Value one = b.create<arith::ConstantIntOp>(1, 32);
  b.loop(b.index(passes * kDigits),
         [&](Value i) { b.store(b.zero(b.getI32Type()), counts, i); });
  b.loop(count, [&](Value i) {
    Value key = b.load(keys, b.add(from, i));
    for (int64_t pass = 0; pass < passes; ++pass) {
      Value at = getDigit(key, b.index(pass));
      b.store(b.create<arith::AddIOp>(b.load(counts, at), one), counts, at);
    }
  });
}

/// Counts become the places where keys of a value begin.
void RadixSort::addUp(Value first) {
  b.loop(b.index(0), b.index(kDigits), b.zero(b.getI32Type()),
         [&](Value i, ValueRange sum) {
           Value at = b.add(first, i), own = b.load(counts, at);
           b.store(sum[0], counts, at);
           return SmallVector<Value>{b.create<arith::AddIOp>(sum[0], own)};
         });
}

void RadixSort::move(Value from, Value to, Value count, Value pass) {
  Value one = b.create<arith::ConstantIntOp>(1, 32);
  b.loop(count, [&](Value i) {
    Value source = b.add(from, i), key = b.load(keys, source);
    Value index = b.load(indices, source);
    Value at = getDigit(key, pass), own = b.load(counts, at);
    b.store(b.create<arith::AddIOp>(own, one), counts, at);
    Value place =
        b.add(to, b.create<arith::IndexCastUIOp>(b.getIndexType(), own));
    b.store(key, keys, place);
    b.store(index, indices, place);
  });
}

Value RadixSort::sort(Value from, Value count) {
  this->count(from, count);
  Value total = b.create<arith::IndexCastOp>(b.getI32Type(), count);
  int64_t passes = getPasses(keys.element);
  return b.loop(
      b.index(0), b.index(passes), from, [&](Value pass, ValueRange carried) {
        Value own = carried[0], other = b.sub(b.index(capacity), own);
        Value shared = b.load(counts, getDigit(b.load(keys, own), pass));
        Value moves =
            b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, shared, total);
        b.when(moves, [&] {
          addUp(b.mul(pass, b.index(kDigits)));
          move(own, other, count, pass);
        });
        return SmallVector<Value>{b.create<arith::SelectOp>(moves, other, own)};
      })[0];
}

} // namespace tcc::cpu

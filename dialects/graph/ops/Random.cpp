//===- Random.cpp - Counter-based random numbers --------------------------===//
//
// Philox4x32-10: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3,
// 2011.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ops/Scalar.h"

#include <array>
#include <numbers>

using namespace mlir;
using namespace tcc::graph;

LogicalResult RandomOp::verify() {
  for (Value scalar : getOperands()) {
    auto type = cast<RankedTensorType>(scalar.getType());
    if (type.getRank() != 0 || !type.getElementType().isSignlessInteger(64))
      return emitOpError("expected seed and step to be i64 scalars, found ")
             << type;
  }
  Type element = getElementTypeOrSelf(getResult());
  if (!element.isF32() && !element.isF64())
    return emitOpError("expected a result of f32 or f64, found ") << element;
  return success();
}

namespace {

/// Words of 32 bits in i64: their products need no conversion then, which costs
/// vectors more than the products do.
using Words = std::array<Value, 4>;

class PhiloxEmitter {
public:
  PhiloxEmitter(OpBuilder &builder, Location loc)
      : emitter(builder, loc), i32(builder.getI32Type()),
        i64(builder.getI64Type()) {}

  Value getLow(Value x) const {
    return emitter.emit<arith::AndIOp>(x, word(0xFFFFFFFF));
  }
  Value getHigh(Value x) const { return shift(x, 32); }
  Value word(uint32_t value) const {
    return emitter.integer(i64, APInt(64, value));
  }

  /// The words of `counter` under `key`.
  Words emit(Words counter, Value key) const;

  /// In [0, 1), from the high bits of one or two words.
  Value toUniform(Type type, Value first, Value second) const;

private:
  Value shift(Value x, int64_t bits) const {
    return emitter.emit<arith::ShRUIOp>(x, emitter.like(x, bits));
  }
  Value mix(Value x, Value y, Value z) const {
    return emitter.emit<arith::XOrIOp>(emitter.emit<arith::XOrIOp>(x, y), z);
  }
  Words emitRound(const Words &x, Value low, Value high) const;

  ScalarEmitter emitter;
  Type i32, i64;
};

} // namespace

Words PhiloxEmitter::emitRound(const Words &x, Value low, Value high) const {
  auto multiply = [&](Value factor, uint32_t by) -> Value {
    return emitter.emit<arith::MulIOp>(factor, word(by));
  };
  Value first = multiply(x[0], 0xD2511F53), second = multiply(x[2], 0xCD9E8D57);
  return {mix(getHigh(second), x[1], low), getLow(second),
          mix(getHigh(first), x[3], high), getLow(first)};
}

Words PhiloxEmitter::emit(Words counter, Value key) const {
  constexpr int kRounds = 10;
  Value low = getLow(key), high = getHigh(key);
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) {
      low = getLow(emitter.emit<arith::AddIOp>(low, word(0x9E3779B9)));
      high = getLow(emitter.emit<arith::AddIOp>(high, word(0xBB67AE85)));
    }
    counter = emitRound(counter, low, high);
  }
  return counter;
}

Value PhiloxEmitter::toUniform(Type type, Value first, Value second) const {
  Value bits = emitter.emit<arith::TruncIOp>(i32, shift(first, 8));
  int digits = 24;
  if (type.isF64()) {
    Value high = emitter.emit<arith::ShLIOp>(first, emitter.like(first, 32));
    bits = shift(emitter.emit<arith::OrIOp>(high, second), 11);
    digits = 53;
  }
  // The bits are few enough to be positive and exact.
  Value number = emitter.emit<arith::SIToFPOp>(type, bits);
  return emitter.mul(number, emitter.constant(type, std::ldexp(1.0, -digits)));
}

/// The place of an element in row-major order, i64.
static Value emitPlace(OpBuilder &builder, Location loc, Value tensor,
                       ValueRange indices, ElementSource &source) {
  Value place = builder.create<arith::ConstantIndexOp>(loc, 0);
  for (auto [axis, index] : llvm::enumerate(indices)) {
    Value extent = source.size(builder, loc, getExtent(tensor, axis));
    place = builder.create<arith::MulIOp>(loc, place, extent);
    place = builder.create<arith::AddIOp>(loc, place, index);
  }
  return builder.create<arith::IndexCastOp>(loc, builder.getI64Type(), place);
}

Value RandomOp::emitElement(OpBuilder &builder, Location loc,
                            ValueRange indices, ElementSource &source) {
  PhiloxEmitter philox(builder, loc);
  ScalarEmitter emitter(builder, loc);
  Type type = getElementTypeOrSelf(getResult());
  Value seed = source.element(builder, loc, getSeed(), {});
  Value step = source.element(builder, loc, getStep(), {});
  Value place = emitPlace(builder, loc, getResult(), indices, source);
  Words words = philox.emit({philox.getLow(place), philox.getHigh(place),
                             philox.getLow(step), philox.word(getKey())},
                            seed);
  Value first = philox.toUniform(type, words[0], words[1]);
  if (getKind() == RandomKind::uniform)
    return first;
  // In (0, 1], whose logarithm is finite.
  first = emitter.sub(emitter.like(first, 1), first);
  Value second = philox.toUniform(type, words[2], words[3]);
  Value radius = emitter.emit<math::SqrtOp>(
      emitter.mul(emitter.like(first, -2), emitter.emit<math::LogOp>(first)));
  Value angle = emitter.mul(emitter.like(first, 2 * std::numbers::pi), second);
  return emitter.mul(radius, emitter.emit<math::CosOp>(angle));
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  types.assign({type, withElementType(type, IntegerType::get(context, 1))});
  return success();
}

#define GET_OP_CLASSES
#include "dialects/graph/Random.cpp.inc"

void GraphDialect::addRandomOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Random.cpp.inc"
      >();
}

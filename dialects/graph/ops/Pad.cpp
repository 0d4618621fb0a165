//===- Pad.cpp - Padding --------------------------------------------------===//

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;
using arith::CmpIPredicate;

LogicalResult PadOp::inferReturnTypes(MLIRContext *context,
                                      std::optional<Location> loc,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  auto value = cast<RankedTensorType>(adaptor.getValue().getType());
  size_t rank = type.getRank();
  if (value.getRank() != 0 || value.getElementType() != type.getElementType())
    return emitOptionalError(loc, "expected a scalar of ",
                             type.getElementType(), " as value, found ", value);
  if (adaptor.getLow().size() != rank || adaptor.getHigh().size() != rank ||
      adaptor.getInterior().size() != rank)
    return emitOptionalError(loc, "expected ", rank,
                             " low, high and interior paddings");
  Extents result;
  for (auto [i, extent] : llvm::enumerate(getExtents(type))) {
    int64_t interior = adaptor.getInterior()[i];
    if (interior < 0 ||
        (interior > 0 && adaptor.getMode() != PadMode::constant))
      return emitOptionalError(loc, "interior padding ", interior, " of axis ",
                               i, " is not supported");
    AffineExpr inside =
        interior ? extent + (extent - 1) * interior : AffineExpr(extent);
    result.push_back(inside + (adaptor.getLow()[i] + adaptor.getHigh()[i]));
    auto count = getConstant(result.back());
    if (count && *count < 0)
      return emitOptionalError(loc, "axis ", i, " has a negative extent");
  }
  types.push_back(makeTensorType(result, type.getElementType()));
  return success();
}

namespace {
/// Maps indices of a padded axis to the axis.
class PadEmitter {
public:
  PadEmitter(OpBuilder &builder, Location loc)
      : emitter(builder, loc), builder(builder), loc(loc) {}

  /// x mod size, never negative.
  Value wrap(Value index, Value size) {
    Value remainder = emitter.emit<arith::RemSIOp>(index, size);
    Value shifted = emitter.emit<arith::AddIOp>(remainder, size);
    return emitter.select(
        emitter.compare(CmpIPredicate::slt, remainder, number(0)), shifted,
        remainder);
  }

  /// Back and forth between the first and the last element.
  Value reflect(Value index, Value extent) {
    Value last = emitter.emit<arith::SubIOp>(extent, number(1));
    Value period = emitter.emit<arith::AddIOp>(last, last);
    period = emitter.emit<arith::MaxSIOp>(period, number(1));
    Value place = wrap(index, period);
    Value back = emitter.emit<arith::SubIOp>(period, place);
    return emitter.select(emitter.compare(CmpIPredicate::sgt, place, last),
                          back, place);
  }

  Value clamp(Value index, Value extent) {
    Value last = emitter.emit<arith::SubIOp>(extent, number(1));
    return emitter.emit<arith::MaxSIOp>(
        emitter.emit<arith::MinSIOp>(index, last), number(0));
  }

  /// Divides `index` by 1 + interior; `isInside` stays true for those that are
  /// elements of the axis.
  Value skip(Value index, Value extent, int64_t interior, Value &isInside) {
    require(emitter.compare(CmpIPredicate::sge, index, number(0)), isInside);
    if (interior > 0) {
      Value step = number(interior + 1);
      Value rest = emitter.emit<arith::RemSIOp>(index, step);
      require(emitter.compare(CmpIPredicate::eq, rest, number(0)), isInside);
      index = emitter.emit<arith::DivSIOp>(index, step);
    }
    require(emitter.compare(CmpIPredicate::slt, index, extent), isInside);
    return index;
  }

private:
  Value number(int64_t value) {
    return builder.create<arith::ConstantIndexOp>(loc, value);
  }
  void require(Value condition, Value &all) {
    all = all ? emitter.emit<arith::AndIOp>(all, condition) : condition;
  }

  ScalarEmitter emitter;
  OpBuilder &builder;
  Location loc;
};
} // namespace

Value PadOp::emitElement(OpBuilder &builder, Location loc, ValueRange indices,
                         ElementSource &source) {
  ScalarEmitter emitter(builder, loc);
  PadEmitter pad(builder, loc);
  SmallVector<Value> inner(indices);
  Value isInside;
  for (auto [i, index] : llvm::enumerate(inner)) {
    int64_t low = getLow()[i];
    if (low == 0 && getHigh()[i] == 0 && getInterior()[i] == 0)
      continue;
    Value extent = source.size(builder, loc, getExtent(getX(), i));
    index = emitter.emit<arith::SubIOp>(
        index, builder.create<arith::ConstantIndexOp>(loc, low));
    switch (getMode()) {
    case PadMode::constant:
      index = pad.skip(index, extent, getInterior()[i], isInside);
      break;
    case PadMode::reflect:
      index = pad.reflect(index, extent);
      break;
    case PadMode::edge:
      index = pad.clamp(index, extent);
      break;
    case PadMode::wrap:
      index = pad.wrap(index, extent);
      break;
    }
  }
  if (!isInside)
    return source.element(builder, loc, getX(), inner);
  return emitBranch(
      builder, loc, getScalarType(getElementTypeOrSelf(getX())), isInside,
      [&](OpBuilder &b) { return source.element(b, loc, getX(), inner); },
      [&](OpBuilder &b) { return source.element(b, loc, getValue(), {}); });
}

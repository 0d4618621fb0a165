//===- EmitMovement.cpp - Ops that move elements --------------------------===//

#include "frontends/Emitter.h"

using namespace mlir;

namespace tcc {

int64_t Emitter::rank(Value x) {
  return x ? cast<RankedTensorType>(x.getType()).getRank() : 0;
}

Type Emitter::elementType(Value x) {
  return x ? cast<RankedTensorType>(x.getType()).getElementType() : Type();
}

Value Emitter::reshape(Value x, ArrayRef<AffineExpr> extents) {
  if (!x)
    return nullptr;
  auto type = graph::makeTensorType(extents, elementType(x));
  return type == x.getType() ? x : create<graph::ReshapeOp>(x, {}, type);
}

Value Emitter::broadcast(Value x, ArrayRef<AffineExpr> extents) {
  if (!x)
    return nullptr;
  auto type = graph::makeTensorType(extents, elementType(x));
  return type == x.getType() ? x : create<graph::BroadcastOp>(x, {}, type);
}

void Emitter::limitMade(ArrayRef<AffineExpr> made, ArrayRef<AffineExpr> extents,
                        ArrayRef<AffineExpr> larger) {
  graph::Extents group, others;
  for (auto [own, bound] : llvm::zip_equal(extents, larger))
    if (isa<AffineSymbolExpr>(own) &&
        graph::isComputed(own, sizes.getSymbols())) {
      group.push_back(own);
      others.push_back(bound);
    }
  int64_t most = sizes.getMaxElements(others);
  if (group.size() < 2 || most > kMaxElements)
    return;
  sizes.limitProduct(group, made, most);
  graph::setSymbols(getModule(), sizes.getSymbols());
}

void Emitter::equate(Value &a, Value &b, int64_t except) {
  if (!a || !b || failed)
    return;
  graph::Extents from = extents(a), to = extents(b), made;
  for (size_t i = 1; i <= std::min(from.size(), to.size()); ++i) {
    AffineExpr &mine = from[from.size() - i], &other = to[to.size() - i];
    bool broadcasts = except == 0 && (graph::getConstant(mine) == 1 ||
                                      graph::getConstant(other) == 1);
    if (broadcasts || int64_t(i) == except || graph::isEqual(mine, other) ||
        !graph::isComputed(mine - other, sizes.getSymbols()))
      continue;
    Value count = size(mine);
    Value areEqual = compare(graph::CompareKind::eq, count, size(other));
    require(areEqual, "shapes " + printShape(a) + " and " + printShape(b) +
                          " are of different sizes");
    int64_t most =
        std::min(sizes.getRange(mine).max, sizes.getRange(other).max);
    mine = other = readSize(
        {AffineExpr(), select(areEqual, count, constantLike(0, count))},
        "common", most);
    made.push_back(mine);
  }
  if (made.empty() || failed)
    return;
  if (from.size() >= to.size())
    limitMade(made, from, extents(a));
  else
    limitMade(made, to, extents(b));
  a = reshape(a, from);
  b = reshape(b, to);
}

/// `x` in the extents `common`, counted from the last, where a run computes
/// that they are its own; other axes, and `except`, stay.
static Value settle(Emitter &emitter, Value x, ArrayRef<AffineExpr> common,
                    int64_t except = 0) {
  if (!x || emitter.hasFailed())
    return nullptr;
  graph::Extents settled = emitter.extents(x);
  for (size_t i = 1; i <= std::min(settled.size(), common.size()); ++i) {
    AffineExpr &own = settled[settled.size() - i];
    AffineExpr other = common[common.size() - i];
    bool broadcasts = except == 0 && graph::getConstant(own) == 1;
    if (!broadcasts && int64_t(i) != except &&
        graph::isComputed(own - other, emitter.getSizes().getSymbols()))
      own = other;
  }
  return emitter.reshape(x, settled);
}

/// The first extent of each axis that is not 1, axes counted from the last.
static graph::Extents findLeading(Emitter &emitter, ArrayRef<Value> operands) {
  graph::Extents leading; // from the last axis on
  for (Value operand : operands) {
    graph::Extents extents = emitter.extents(operand);
    for (auto [i, extent] : llvm::enumerate(llvm::reverse(extents))) {
      if (i == leading.size())
        leading.push_back(extent);
      else if (graph::getConstant(leading[i]) == 1)
        leading[i] = extent;
    }
  }
  std::reverse(leading.begin(), leading.end());
  return leading;
}

SmallVector<Value> Emitter::broadcastTogether(ArrayRef<Value> given) {
  SmallVector<Value> result, operands(given);
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      equate(operands[i], operands[j]);
  if (hasFailed() || llvm::is_contained(operands, Value()))
    return {};
  // The first of an axis has by now what all others are equal to.
  graph::Extents leading = findLeading(*this, operands);
  for (Value &operand : operands)
    operand = settle(*this, operand, leading);
  std::optional<graph::Extents> common = graph::Extents();
  for (Value operand : operands) {
    if (!operand)
      return {};
    auto merged = graph::broadcastExtents(*common, graph::getExtents(operand));
    if (!merged) {
      fail("shapes " + printShape(operands[0]) + " and " + printShape(operand) +
           " do not broadcast");
      return {};
    }
    common = merged;
  }
  for (Value operand : operands) {
    result.push_back(broadcast(operand, *common));
    if (!result.back())
      return {};
  }
  return result;
}

Value Emitter::transpose(Value x, ArrayRef<int64_t> permutation) {
  bool isIdentity = true;
  for (auto [i, axis] : llvm::enumerate(permutation))
    isIdentity &= int64_t(i) == axis;
  return isIdentity ? x
                    : create<graph::TransposeOp>(
                          x, {attr("permutation", permutation)});
}

Value Emitter::unsqueeze(Value x, ArrayRef<int64_t> axes) {
  if (!x)
    return nullptr;
  SmallVector<int64_t> sorted(axes);
  llvm::sort(sorted);
  graph::Extents result = extents(x);
  for (int64_t axis : sorted) {
    if (axis > int64_t(result.size()))
      return fail("axis " + llvm::Twine(axis) + " is out of range for rank " +
                  llvm::Twine(result.size()));
    result.insert(result.begin() + axis, sizes.constant(1));
  }
  return reshape(x, result);
}

Value Emitter::squeeze(Value x, ArrayRef<int64_t> axes) {
  if (!x)
    return nullptr;
  graph::Extents result;
  for (auto [i, extent] : llvm::enumerate(extents(x)))
    if (!llvm::is_contained(axes, int64_t(i)))
      result.push_back(extent);
  return reshape(x, result);
}

Value Emitter::slice(Value x, int64_t axis, AffineExpr start, AffineExpr extent,
                     int64_t step) {
  if (!x || failed)
    return nullptr;
  if (axis < 0 || axis >= rank(x))
    return fail("axis " + llvm::Twine(axis) + " is out of range for rank " +
                llvm::Twine(rank(x)));
  graph::Extents starts(rank(x), sizes.constant(0));
  SmallVector<int64_t> steps(rank(x), 1);
  starts[axis] = start;
  steps[axis] = step;
  auto type =
      graph::makeTensorType(withExtent(x, axis, extent), elementType(x));
  if (type == x.getType() && step == 1)
    return x;
  auto map = AffineMapAttr::get(graph::makeSizeMap(starts, getContext()));
  return create<graph::SliceOp>(x, {attr("starts", map), attr("steps", steps)},
                                type);
}

Value Emitter::slice(Value x, int64_t axis, int64_t start, int64_t extent) {
  return slice(x, axis, sizes.constant(start), sizes.constant(extent));
}

Value Emitter::concat(ArrayRef<Value> parts, int64_t axis) {
  if (parts.size() == 1)
    return parts[0];
  SmallVector<Value> same(parts);
  for (Value &part : MutableArrayRef(same).drop_front())
    if (same[0] && part && rank(same[0]) == rank(part))
      equate(same[0], part, rank(part) - axis);
  // The first part has by now what all others are equal to.
  for (Value &part : MutableArrayRef(same).drop_front())
    if (same[0] && part && rank(same[0]) == rank(part))
      part = settle(*this, part, extents(same[0]), rank(part) - axis);
  return create<graph::ConcatOp>(same, {attr("axis", axis)});
}

Value Emitter::pad(Value x, Value value, ArrayRef<int64_t> low,
                   ArrayRef<int64_t> high, ArrayRef<int64_t> interior,
                   graph::PadMode mode) {
  auto isZero = [](int64_t n) { return n == 0; };
  SmallVector<int64_t> between(interior);
  between.resize(low.size(), 0);
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero) &&
      llvm::all_of(between, isZero))
    return x;
  auto modeAttr = graph::PadModeAttr::get(getContext(), mode);
  return create<graph::PadOp>({x, value}, {attr("low", low), attr("high", high),
                                           attr("interior", between),
                                           attr("mode", modeAttr)});
}

Value Emitter::iota(ArrayRef<AffineExpr> extents, int64_t axis, Type type) {
  if (!type)
    return nullptr; // of a value that is missing
  return create<graph::IotaOp>({}, {attr("axis", axis)},
                               graph::makeTensorType(extents, type));
}

Value Emitter::sliceAt(Value x, int64_t axis, Value position) {
  if (!x || !position || failed)
    return nullptr;
  SmallVector<Value> starts(rank(x), constant(ArrayRef<int64_t>{0}));
  starts[axis] = reshape(position, {sizes.constant(1)});
  auto type = graph::makeTensorType(withExtent(x, axis, sizes.constant(1)),
                                    elementType(x));
  Value part = create<graph::DynamicSliceOp>({x, concat(starts, 0)}, {}, type);
  return squeeze(part, {axis});
}

Value Emitter::guardIndices(Value &x, Value indices, ArrayRef<int64_t> axes,
                            bool areTuples) {
  if (!x || !indices || failed)
    return nullptr;
  SmallVector<int64_t> none(rank(x), 0), behind(none);
  graph::Extents lengths, read = extents(indices);
  for (int64_t axis : axes) {
    AffineExpr extent = lengths.emplace_back(graph::getExtent(x, axis));
    if (graph::isComputed(extent, sizes.getSymbols()) &&
        sizes.getRange(extent).min < 1 && !llvm::is_contained(read, extent))
      behind[axis] = 1;
  }
  if (behind == none)
    return indices;
  x = pad(x, constantLike(0, x), none, behind);
  SmallVector<int64_t> shape;
  if (areTuples)
    shape.push_back(lengths.size());
  auto type = RankedTensorType::get(shape, elementType(indices));
  Value length = content(lengths, type), zero = constantLike(0, length);
  auto isNegative = [&](Value index) {
    return compare(graph::CompareKind::lt, index, zero);
  };
  Value index = select(isNegative(indices), add(indices, length), indices);
  Value isOutside = pointwise<graph::OrOp>(
      {isNegative(index), compare(graph::CompareKind::ge, index, length)});
  return select(isOutside, add(length, constantLike(1, length)), index);
}

Value Emitter::gather(Value x, Value indices, int64_t axis) {
  indices = guardIndices(x, indices, {axis}, /*areTuples=*/false);
  return create<graph::GatherOp>({x, indices}, {attr("axis", axis)});
}

graph::Extents Emitter::withExtent(Value x, int64_t axis, AffineExpr extent) {
  graph::Extents result = extents(x);
  result[axis] = extent;
  return result;
}

} // namespace tcc

//===- AttentionMask.cpp - Which keys a query of attention sees -----------===//

#include "frontends/onnx/Attention.h"

#include <limits>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The number of keys before the first query: an i64 that broadcasts to [batch,
/// 1, rows, columns].
static Value getOffset(Node &node, const Attention &attention, Value past,
                       Value lengths) {
  if (past)
    return node.size(graph::getExtent(past, 2));
  Type index = IntegerType::get(node.getContext(), 64);
  if (!lengths)
    return node.constant(0, index);
  return node.sub(lengths, node.size(attention.getRows()));
}

/// lengths [batch] as [batch, 1, 1, 1].
static Value readLengths(Node &node, const Attention &attention) {
  if (!node.hasInput(6))
    return nullptr;
  Value lengths = node.input(6);
  if (!lengths || node.rank(lengths) != 1 ||
      !graph::isEqual(graph::getExtent(lengths, 0),
                      graph::getExtent(attention.query, 0)))
    return node.fail("nonpad_kv_seqlen must have one element a batch");
  return node.unsqueeze(lengths, {1, 2, 3});
}

/// Keys to one side of a query that it sees; -1 if all.
static int64_t readWindowSize(Node &node, StringRef name) {
  int64_t size = node.intAttr(name, -1);
  if (size < -1)
    node.fail("attribute '" + name + "' is less than -1");
  return size > kMaxElements ? -1 : size;
}

/// True where causality, the window and the padding let a query see a key; null
/// if it sees all.
static Value emitVisible(Node &node, const Attention &attention, Value past) {
  int64_t left = readWindowSize(node, "left_window_size");
  int64_t right = readWindowSize(node, "right_window_size");
  if (node.intAttr("is_causal", 0) != 0)
    right = 0;
  Value lengths = readLengths(node, attention);
  if (node.hasFailed() || (left < 0 && right < 0 && !lengths))
    return nullptr;
  Type index = IntegerType::get(node.getContext(), 64);
  AffineExpr one = node.getSizes().constant(1);
  Value column = node.iota({one, attention.getColumns()}, 1, index);
  Value row = node.add(node.iota({attention.getRows(), one}, 0, index),
                       getOffset(node, attention, past, lengths));
  Value visible;
  auto restrict = [&](CompareKind kind, Value bound) {
    Value isInside = node.compare(kind, column, bound);
    visible =
        visible ? node.pointwise<graph::AndOp>({visible, isInside}) : isInside;
  };
  if (right >= 0)
    restrict(CompareKind::le,
             node.add(row, node.constant(double(right), index)));
  if (left >= 0)
    restrict(CompareKind::ge,
             node.sub(row, node.constant(double(left), index)));
  if (lengths)
    restrict(CompareKind::lt, lengths);
  return visible;
}

/// The node's mask; what it lacks of the columns sees nothing.
static Value readMask(Node &node, const Attention &attention) {
  Value mask = node.input(3);
  if (!mask || node.rank(mask) == 0)
    return mask;
  int64_t axis = node.rank(mask) - 1;
  AffineExpr extent = graph::getExtent(mask, axis);
  if (graph::isEqual(extent, attention.getColumns()))
    return mask;
  auto present = graph::getConstant(extent),
       wanted = graph::getConstant(attention.getColumns());
  if (present == 1 && node.getVersion() < 24)
    return mask;
  if (!present || !wanted)
    return node.unsupported("a mask of another dynamic length than the keys");
  SmallVector<int64_t> low(axis + 1, 0), high(low);
  high[axis] = *wanted - *present;
  if (high[axis] < 0)
    return node.fail("the mask is longer than the keys");
  bool isBoolean = node.elementType(mask).isInteger(1);
  return node.pad(mask, node.constantLike(isBoolean ? 0 : -kInfinity, mask),
                  low, high);
}

void setBias(Node &node, Attention &attention, Value past) {
  Value visible = emitVisible(node, attention, past);
  attention.isGuarded = node.hasInput(6) ||
                        node.intAttr("left_window_size", -1) >= 0 ||
                        node.hasInput(3);
  Type type = node.elementType(attention.query);
  Value mask = node.hasInput(3) ? readMask(node, attention) : nullptr;
  if (node.hasFailed())
    return;
  if (mask && node.elementType(mask).isInteger(1)) {
    visible = visible ? node.pointwise<graph::AndOp>({visible, mask}) : mask;
    mask = nullptr;
  }
  attention.bias = node.cast(mask, type);
  if (visible)
    attention.bias =
        node.select(visible, mask ? attention.bias : node.constant(0, type),
                    node.constant(-kInfinity, type));
}

} // namespace tcc::onnx_import

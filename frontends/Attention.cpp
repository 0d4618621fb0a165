#include "frontends/Attention.h"

using namespace mlir;

namespace tcc {

bool groupHeads(Emitter &emitter, Attention &attention) {
  if (emitter.hasFailed() || !attention.query || !attention.key ||
      !attention.value)
    return false;
  graph::Extents query = emitter.extents(attention.query),
                 key = emitter.extents(attention.key),
                 value = emitter.extents(attention.value);
  if (query.size() != 4 || key.size() != 4 || value.size() != 4)
    return emitter.fail("query, key and value of one rank, 3 or 4, are "
                        "expected") != nullptr;
  for (int64_t axis = 0; axis < 3; ++axis)
    if (!graph::isEqual(key[axis], value[axis]))
      return emitter.fail("key and value do not fit together") != nullptr;
  if (!graph::isEqual(query[0], key[0]) || !graph::isEqual(query[3], key[3]))
    return emitter.fail("query and key do not fit together") != nullptr;
  attention.heads = query[1];
  if (graph::isEqual(query[1], key[1]))
    return true;
  auto heads = graph::getConstant(query[1]),
       shared = graph::getConstant(key[1]);
  if (!heads || !shared || *shared < 1 || *heads % *shared != 0)
    return emitter.fail(
               "the heads of the query are no multiple of those of the "
               "key") != nullptr;
  attention.group = *heads / *shared;
  return true;
}

Value mergeGroup(Emitter &emitter, Value x, int64_t group) {
  if (!x || group == 1)
    return x;
  graph::Extents extents = emitter.extents(x);
  AffineExpr count = emitter.getSizes().constant(group);
  Size heads = emitter.getSizes().divideProducts(extents[1], count);
  Size rows = emitter.getSizes().product({extents[2], count});
  if (!heads || !rows)
    return emitter.fail("the heads do not divide into groups");
  return emitter.reshape(x, {extents[0], *heads, *rows, extents[3]});
}

Value splitGroup(Emitter &emitter, const Attention &attention, Value x) {
  if (!x || attention.group == 1)
    return x;
  graph::Extents extents = emitter.extents(x);
  return emitter.reshape(
      x, {extents[0], attention.heads, attention.getRows(), extents[3]});
}

Value arrangeBias(Emitter &emitter, const Attention &attention) {
  if (!attention.bias)
    return nullptr;
  graph::Extents extents = emitter.extents(attention.bias);
  graph::Extents scores = {graph::getExtent(attention.query, 0),
                           attention.heads, attention.getRows(),
                           attention.getColumns()};
  auto common = graph::broadcastExtents(extents, scores);
  if (!common || ArrayRef(*common) != ArrayRef(scores))
    return emitter.fail("the mask does not broadcast to the scores");
  extents.insert(extents.begin(), 4 - extents.size(),
                 emitter.getSizes().constant(1));
  Value bias = emitter.reshape(attention.bias, extents);
  extents[2] = scores[2];
  extents[3] = scores[3];
  if (attention.group != 1)
    extents[1] = scores[1];
  return mergeGroup(emitter, emitter.broadcast(bias, extents), attention.group);
}

Value emitAttention(Emitter &emitter, const Attention &attention) {
  Value query = mergeGroup(emitter, attention.query, attention.group);
  SmallVector<Value> operands = {query, attention.key, attention.value};
  if (attention.bias)
    operands.push_back(arrangeBias(emitter, attention));
  SmallVector<NamedAttribute> attributes = {
      emitter.attr("scale", attention.scale)};
  if (attention.isGuarded)
    attributes.push_back(emitter.flag("guard"));
  if (!query || emitter.hasFailed())
    return nullptr;
  Value result = emitter.create<graph::AttentionOp>(
      operands, attributes,
      graph::makeTensorType(
          emitter.withExtent(query, 3, graph::getExtent(attention.value, 3)),
          emitter.elementType(query)));
  return splitGroup(emitter, attention, result);
}

} // namespace tcc

#include "frontends/Recurrent.h"

using namespace mlir;

namespace tcc {

// --- Cells -------------------------------------------------------------------

/// Gate `i` of a tensor whose last axis holds them one after the other.
static Value getGate(Emitter &emitter, Value gates, int64_t i, int64_t hidden) {
  return gates
             ? emitter.slice(gates, emitter.rank(gates) - 1, i * hidden, hidden)
             : nullptr;
}

static int64_t getHidden(Value state) {
  return cast<RankedTensorType>(state.getType()).getShape().back();
}

static Value addIfAny(Emitter &emitter, Value x, Value bias) {
  return bias ? emitter.add(x, bias) : x;
}

SmallVector<Value> stepLstm(Emitter &emitter, const Recurrence &direction,
                            Value product, ArrayRef<Value> states) {
  Value hidden = states[0], memory = states[1];
  int64_t width = getHidden(hidden);
  Value gates = emitter.add(
      product, emitter.matmul(hidden, direction.recurrentWeights, false, true));
  gates = addIfAny(emitter, gates, direction.recurrentBias);
  auto gate = [&](int64_t i) {
    return getGate(emitter, gates, direction.order[i], width);
  };
  // Peepholes are of the input, output and forget gate.
  auto look = [&](Value x, int64_t i, Value cell) {
    Value peepholes = direction.peepholes;
    return peepholes
               ? emitter.add(x, emitter.mul(cell, getGate(emitter, peepholes, i,
                                                          width)))
               : x;
  };
  const auto &f = direction.activations[0], &g = direction.activations[1],
             &h = direction.activations[2];
  Value input = f(look(gate(0), 0, memory));
  Value forget = direction.isCoupled
                     ? emitter.sub(emitter.constantLike(1, input), input)
                     : f(look(gate(1), 2, memory));
  Value nextMemory =
      emitter.add(emitter.mul(forget, memory), emitter.mul(input, g(gate(2))));
  Value output = f(look(gate(3), 1, nextMemory));
  return {emitter.mul(output, h(nextMemory)), nextMemory};
}

SmallVector<Value> stepGru(Emitter &emitter, const Recurrence &direction,
                           Value product, ArrayRef<Value> states) {
  Value hidden = states[0];
  int64_t width = getHidden(hidden);
  auto rows = [&](Value weights, int64_t first, int64_t count) {
    return emitter.slice(weights, 0, first * width, count * width);
  };
  Value bias = direction.recurrentBias;
  Value gates = emitter.matmul(hidden, rows(direction.recurrentWeights, 0, 2),
                               false, true);
  if (bias)
    gates = emitter.add(gates, rows(bias, 0, 2));
  auto gate = [&](int64_t i) {
    int64_t place = direction.order[i];
    return direction.activations[0](
        emitter.add(getGate(emitter, product, place, width),
                    getGate(emitter, gates, place, width)));
  };
  Value update = gate(0), reset = gate(1);
  Value weights = rows(direction.recurrentWeights, 2, 1);
  Value hiddenBias = bias ? rows(bias, 2, 1) : nullptr;
  Value inner;
  if (direction.resetsProduct) {
    inner = emitter.matmul(hidden, weights, false, true);
    inner = emitter.mul(reset, addIfAny(emitter, inner, hiddenBias));
  } else {
    inner = emitter.matmul(emitter.mul(reset, hidden), weights, false, true);
    inner = addIfAny(emitter, inner, hiddenBias);
  }
  Value candidate = direction.activations[1](
      emitter.add(getGate(emitter, product, 2, width), inner));
  Value fresh = emitter.mul(
      emitter.sub(emitter.constantLike(1, update), update), candidate);
  return {emitter.add(fresh, emitter.mul(update, hidden))};
}

SmallVector<Value> stepRnn(Emitter &emitter, const Recurrence &direction,
                           Value product, ArrayRef<Value> states) {
  Value sum =
      emitter.add(product, emitter.matmul(states[0], direction.recurrentWeights,
                                          false, true));
  sum = addIfAny(emitter, sum, direction.recurrentBias);
  return {direction.activations[0](sum)};
}

// --- Sequences ---------------------------------------------------------------

/// Keeps the old states of sequences that have ended by step `time`, and makes
/// their output 0. Returns the output, then the states.
static SmallVector<Value> maskStep(Emitter &emitter, Value lengths, Value time,
                                   ArrayRef<Value> next, ArrayRef<Value> old) {
  SmallVector<Value> result = {next[0]};
  if (!lengths) {
    result.append(next.begin(), next.end());
    return result;
  }
  Value isInside = emitter.unsqueeze(
      emitter.compare(graph::CompareKind::lt, time, lengths), {1});
  result[0] =
      emitter.select(isInside, next[0], emitter.constantLike(0, next[0]));
  for (auto [fresh, kept] : llvm::zip(next, old))
    result.push_back(emitter.select(isInside, fresh, kept));
  return result;
}

SmallVector<Value> emitRecurrence(Emitter &emitter, RecurrentStep &step,
                                  const Recurrence &direction, Value x,
                                  Value lengths) {
  graph::Extents extents = emitter.extents(x);
  const Sizes &sizes = emitter.getSizes();
  Size rows = sizes.product({extents[0], extents[1]});
  if (!rows)
    return {};
  Value flat = emitter.reshape(x, {*rows, extents[2]});
  Value product = emitter.matmul(flat, direction.inputWeights, false, true);
  product = addIfAny(emitter, product, direction.inputBias);
  if (!product)
    return {};
  product = emitter.reshape(
      product, {extents[0], extents[1], emitter.extents(product)[1]});
  Type index = IntegerType::get(emitter.getContext(), 64);
  if (graph::getConstant(extents[0]) == 1) {
    auto next = step(emitter, direction, emitter.squeeze(product, {0}),
                     direction.states);
    if (emitter.hasFailed())
      return {};
    auto masked = maskStep(emitter, lengths, emitter.constant(0, index), next,
                           direction.states);
    masked[0] = emitter.unsqueeze(masked[0], {0});
    return masked;
  }
  Value trips = emitter.size(extents[0]);
  Value lastStep = emitter.sub(trips, emitter.constant(1, index));
  auto results = emitter.loop(
      {.trips = trips, .known = extents[0]}, direction.states,
      [&](Value iteration, ValueRange carried) -> SmallVector<Value> {
        Value time =
            direction.isReverse ? emitter.sub(lastStep, iteration) : iteration;
        SmallVector<Value> old(carried);
        auto next =
            step(emitter, direction, emitter.sliceAt(product, 0, time), old);
        if (emitter.hasFailed())
          return {};
        auto masked = maskStep(emitter, lengths, time, next, old);
        SmallVector<Value> yielded = {
            emitter.constant(1, IntegerType::get(emitter.getContext(), 1))};
        yielded.append(masked.begin() + 1, masked.end());
        yielded.push_back(masked[0]);
        return yielded;
      });
  if (results.empty())
    return {};
  Value outputs = results.pop_back_val();
  if (direction.isReverse)
    outputs = emitter.slice(outputs, 0, extents[0] - 1, extents[0], -1);
  results.insert(results.begin(), outputs);
  return results;
}

} // namespace tcc

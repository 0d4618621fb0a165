//===- Recurrent.cpp - LSTM, GRU and RNN ----------------------------------===//
//
// The product with the input weights is taken for all steps at once; a loop
// carries the states through the rest.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Activations.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

namespace {

/// One direction of a recurrent node. G is the number of gates.
struct Direction {
  Value inputWeights;        // [G * hidden, input]
  Value recurrentWeights;    // [G * hidden, hidden]
  Value inputBias;           // [G * hidden], or null
  Value recurrentBias;       // [G * hidden], or null
  Value peepholes;           // [3 * hidden], or null
  SmallVector<Value> states; // [batch, hidden] each
  SmallVector<Activation> activations;
  bool isReverse;
};

struct Cell {
  int64_t gates;
  int64_t states;
  SmallVector<StringRef> defaults; // activations
  /// The next states from a step's input product [batch, G * hidden].
  SmallVector<Value> (*step)(Node &, const Direction &, Value, ArrayRef<Value>);
};

} // namespace

// --- Cells -------------------------------------------------------------------

/// Gate `i` of a tensor whose last axis holds them one after the other.
static Value getGate(Node &node, Value gates, int64_t i, int64_t hidden) {
  return gates ? node.slice(gates, node.rank(gates) - 1, i * hidden, hidden)
               : nullptr;
}

static int64_t getHidden(Value state) {
  return cast<RankedTensorType>(state.getType()).getShape().back();
}

static Value addIfAny(Node &node, Value x, Value bias) {
  return bias ? node.add(x, bias) : x;
}

static SmallVector<Value> stepLstm(Node &node, const Direction &direction,
                                   Value product, ArrayRef<Value> states) {
  Value hidden = states[0], memory = states[1];
  int64_t width = getHidden(hidden);
  Value gates = node.add(
      product, node.matmul(hidden, direction.recurrentWeights, false, true));
  gates = addIfAny(node, gates, direction.recurrentBias);
  // Gates are ordered input, output, forget, cell; peepholes likewise.
  auto gate = [&](int64_t i, Value cell) {
    Value x = getGate(node, gates, i, width);
    if (!direction.peepholes)
      return x;
    return node.add(
        x, node.mul(cell, getGate(node, direction.peepholes, i, width)));
  };
  const auto &[f, g, h] =
      std::tie(direction.activations[0], direction.activations[1],
               direction.activations[2]);
  Value input = applyActivation(node, f, gate(0, memory));
  Value forget = node.intAttr("input_forget", 0) != 0
                     ? node.sub(node.constantLike(1, input), input)
                     : applyActivation(node, f, gate(2, memory));
  Value candidate = applyActivation(node, g, getGate(node, gates, 3, width));
  Value nextMemory =
      node.add(node.mul(forget, memory), node.mul(input, candidate));
  Value output = applyActivation(node, f, gate(1, nextMemory));
  Value nextHidden = node.mul(output, applyActivation(node, h, nextMemory));
  return {nextHidden, nextMemory};
}

static SmallVector<Value> stepGru(Node &node, const Direction &direction,
                                  Value product, ArrayRef<Value> states) {
  Value hidden = states[0];
  int64_t width = getHidden(hidden);
  auto rows = [&](Value weights, int64_t first, int64_t count) {
    return node.slice(weights, 0, first * width, count * width);
  };
  Value bias = direction.recurrentBias;
  // Gates are ordered update, reset, hidden.
  Value gates =
      node.matmul(hidden, rows(direction.recurrentWeights, 0, 2), false, true);
  if (bias)
    gates = node.add(gates, rows(bias, 0, 2));
  auto gate = [&](int64_t i) {
    Value x = node.add(getGate(node, product, i, width),
                       getGate(node, gates, i, width));
    return applyActivation(node, direction.activations[0], x);
  };
  Value update = gate(0), reset = gate(1);
  Value weights = rows(direction.recurrentWeights, 2, 1);
  Value hiddenBias = bias ? rows(bias, 2, 1) : nullptr;
  Value inner;
  if (node.intAttr("linear_before_reset", 0) != 0) {
    inner = node.matmul(hidden, weights, false, true);
    inner = node.mul(reset, addIfAny(node, inner, hiddenBias));
  } else {
    inner = node.matmul(node.mul(reset, hidden), weights, false, true);
    inner = addIfAny(node, inner, hiddenBias);
  }
  Value candidate =
      applyActivation(node, direction.activations[1],
                      node.add(getGate(node, product, 2, width), inner));
  Value fresh =
      node.mul(node.sub(node.constantLike(1, update), update), candidate);
  return {node.add(fresh, node.mul(update, hidden))};
}

static SmallVector<Value> stepRnn(Node &node, const Direction &direction,
                                  Value product, ArrayRef<Value> states) {
  Value sum = node.add(
      product, node.matmul(states[0], direction.recurrentWeights, false, true));
  sum = addIfAny(node, sum, direction.recurrentBias);
  return {applyActivation(node, direction.activations[0], sum)};
}

// --- Sequences ---------------------------------------------------------------

/// Keeps the old states of sequences that have ended by step `time`, and makes
/// their output 0. Returns the output, then the states.
static SmallVector<Value> maskStep(Node &node, Value lengths, Value time,
                                   ArrayRef<Value> next, ArrayRef<Value> old) {
  SmallVector<Value> result = {next[0]};
  if (!lengths) {
    result.append(next.begin(), next.end());
    return result;
  }
  Value isInside =
      node.unsqueeze(node.compare(graph::CompareKind::lt, time, lengths), {1});
  result[0] = node.select(isInside, next[0], node.constantLike(0, next[0]));
  for (auto [fresh, kept] : llvm::zip(next, old))
    result.push_back(node.select(isInside, fresh, kept));
  return result;
}

/// Runs one direction over x [steps, batch, input]. Returns all outputs [steps,
/// batch, hidden], then the last states.
static SmallVector<Value> runDirection(Node &node, const Cell &cell,
                                       const Direction &direction, Value x,
                                       Value lengths) {
  graph::Extents extents = node.extents(x);
  const Sizes &sizes = node.getSizes();
  Size rows = sizes.product({extents[0], extents[1]});
  if (!rows)
    return {};
  Value flat = node.reshape(x, {*rows, extents[2]});
  Value product = node.matmul(flat, direction.inputWeights, false, true);
  product = addIfAny(node, product, direction.inputBias);
  if (!product)
    return {};
  product =
      node.reshape(product, {extents[0], extents[1], node.extents(product)[1]});
  Type index = IntegerType::get(node.getContext(), 64);
  if (graph::getConstant(extents[0]) == 1) {
    auto next = cell.step(node, direction, node.squeeze(product, {0}),
                          direction.states);
    if (node.hasFailed())
      return {};
    auto step = maskStep(node, lengths, node.constant(0, index), next,
                         direction.states);
    step[0] = node.unsqueeze(step[0], {0});
    return step;
  }
  Value trips = node.size(extents[0]);
  Value lastStep = node.sub(trips, node.constant(1, index));
  auto results = node.loop(
      trips, extents[0], nullptr, direction.states,
      [&](Value iteration, ValueRange carried) -> SmallVector<Value> {
        Value time =
            direction.isReverse ? node.sub(lastStep, iteration) : iteration;
        SmallVector<Value> old(carried);
        auto next =
            cell.step(node, direction, node.sliceAt(product, 0, time), old);
        if (node.hasFailed())
          return {};
        auto step = maskStep(node, lengths, time, next, old);
        SmallVector<Value> yielded = {
            node.constant(1, IntegerType::get(node.getContext(), 1))};
        yielded.append(step.begin() + 1, step.end());
        yielded.push_back(step[0]);
        return yielded;
      });
  if (results.empty())
    return {};
  Value outputs = results.pop_back_val();
  if (direction.isReverse)
    outputs = node.slice(outputs, 0, extents[0] - 1, extents[0], -1);
  results.insert(results.begin(), outputs);
  return results;
}

// --- Reading the node --------------------------------------------------------

/// Entry `i` of the leading axis of an input, which is the direction.
static Value getDirectionInput(Node &node, int64_t input, int64_t i) {
  if (!node.hasInput(input))
    return nullptr;
  Value all = node.input(input);
  if (!all || node.rank(all) < 2 || i >= 2)
    return node.fail("input " + llvm::Twine(input) + " has the wrong rank");
  auto count = graph::getConstant(graph::getExtent(all, 0));
  if (!count || i >= *count)
    return node.fail("input " + llvm::Twine(input) +
                     " has the wrong number of directions");
  return node.squeeze(node.slice(all, 0, i, 1), {0});
}

static std::optional<Direction> readDirection(Node &node, const Cell &cell,
                                              int64_t i, AffineExpr batch,
                                              bool isBatchFirst) {
  Direction direction;
  direction.inputWeights = getDirectionInput(node, 1, i);
  direction.recurrentWeights = getDirectionInput(node, 2, i);
  Value bias = getDirectionInput(node, 3, i);
  if (node.hasFailed() || !direction.inputWeights ||
      !direction.recurrentWeights)
    return std::nullopt;
  Value recurrent = direction.recurrentWeights;
  auto hidden = graph::getConstant(node.extents(recurrent).back());
  auto width = graph::getConstant(node.extents(recurrent).front());
  bool fits = hidden && width && node.rank(recurrent) == 2 &&
              node.rank(direction.inputWeights) == 2 &&
              *width == cell.gates * *hidden;
  if (!fits ||
      (bias && (node.rank(bias) != 1 ||
                graph::getConstant(node.extents(bias)[0]) != 2 * *width))) {
    node.fail("weights do not fit together");
    return std::nullopt;
  }
  if (bias) {
    direction.inputBias = node.slice(bias, 0, 0, *width);
    direction.recurrentBias = node.slice(bias, 0, *width, *width);
  }
  if (cell.states == 2)
    direction.peepholes = getDirectionInput(node, 7, i);
  for (int64_t state = 0; state < cell.states; ++state) {
    Value initial;
    if (node.hasInput(5 + state) && isBatchFirst) {
      Value all = node.input(5 + state);
      if (node.rank(all) != 3)
        node.fail("initial states of rank 3 are expected");
      initial = node.hasFailed() ? nullptr
                                 : node.squeeze(node.slice(all, 1, i, 1), {1});
    } else {
      initial = getDirectionInput(node, 5 + state, i);
    }
    if (!initial)
      initial = node.broadcast(node.constantLike(0, recurrent),
                               {batch, node.getSizes().constant(*hidden)});
    direction.states.push_back(initial);
  }
  if (node.hasFailed())
    return std::nullopt;
  return direction;
}

/// Puts the results of all directions together and sets them.
static void setRecurrentResults(Node &node, const Cell &cell,
                                ArrayRef<SmallVector<Value>> directions,
                                bool isBatchFirst) {
  for (int64_t i = 0; i <= cell.states && i < node.getNumOutputs(); ++i) {
    SmallVector<Value> parts;
    // [steps, direction, batch, hidden] and [direction, batch, hidden]
    for (const SmallVector<Value> &results : directions)
      parts.push_back(node.unsqueeze(results[i], {i == 0 ? 1 : 0}));
    Value joined = node.concat(parts, i == 0 ? 1 : 0);
    if (isBatchFirst && i == 0)
      joined = node.transpose(joined, {2, 0, 1, 3});
    if (isBatchFirst && i > 0)
      joined = node.transpose(joined, {1, 0, 2});
    node.setResult(i, joined);
  }
}

static void importRecurrent(Node &node, const Cell &cell) {
  bool isBatchFirst = node.intAttr("layout", 0) != 0;
  Value x = node.input(0);
  if (!x)
    return;
  if (node.rank(x) != 3)
    return (void)node.fail("an input of rank 3 is expected");
  if (isBatchFirst)
    x = node.transpose(x, {1, 0, 2});
  std::string way = node.stringAttr("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    return (void)node.fail("direction is unknown");
  Value lengths = node.hasInput(4) ? node.input(4) : nullptr;
  if (lengths)
    lengths = node.cast(lengths, IntegerType::get(node.getContext(), 64));
  int64_t count = way == "bidirectional" ? 2 : 1;
  auto activations = readActivations(node, cell.defaults, count);
  SmallVector<SmallVector<Value>> results;
  for (int64_t i = 0; i < count && !node.hasFailed(); ++i) {
    auto direction =
        readDirection(node, cell, i, graph::getExtent(x, 1), isBatchFirst);
    if (!direction)
      return;
    size_t each = cell.defaults.size();
    auto own = ArrayRef(activations).slice(i * each, each);
    direction->activations.assign(own.begin(), own.end());
    direction->isReverse = way == "reverse" || i == 1;
    results.push_back(runDirection(node, cell, *direction, x, lengths));
    if (results.back().empty())
      node.fail("the sequence is too large");
  }
  if (!node.hasFailed())
    setRecurrentResults(node, cell, results, isBatchFirst);
}

static void importLstm(Node &node) {
  importRecurrent(node, {4, 2, {"Sigmoid", "Tanh", "Tanh"}, stepLstm});
}
static void importGru(Node &node) {
  importRecurrent(node, {3, 1, {"Sigmoid", "Tanh"}, stepGru});
}
static void importRnn(Node &node) {
  importRecurrent(node, {1, 1, {"Tanh"}, stepRnn});
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"GRU", 7, last, importGru},
    {"LSTM", 7, last, importLstm},
    {"RNN", 7, last, importRnn},
};

ArrayRef<OpRow> getRecurrentOps() { return rows; }

} // namespace tcc::onnx_import

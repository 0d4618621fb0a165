//===- Recurrent.cpp - LSTM, GRU and RNN ----------------------------------===//

#include "frontends/Recurrent.h"
#include "frontends/onnx/Activations.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

namespace {

struct Cell {
  int64_t gates;
  int64_t states;
  SmallVector<StringRef> defaults; // activations
  SmallVector<int64_t> order;      // of the gates
  RecurrentStep *step;
  bool isQuantized = false; // its weights, which are [width, gates * hidden]
};

} // namespace

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

/// Weights of a direction, [gates * hidden, width].
static Value getWeights(Node &node, const Cell &cell, int64_t input,
                        int64_t i) {
  Value weights = getDirectionInput(node, input, i);
  if (!cell.isQuantized || !weights)
    return weights;
  // Scales and zero points are [directions] or [directions, gates * hidden].
  auto getParameter = [&](int64_t number) -> Value {
    Value all = node.input(number);
    if (!all)
      return nullptr;
    int64_t rank = node.rank(all);
    auto count = rank == 1 || rank == 2
                     ? graph::getConstant(graph::getExtent(all, 0))
                     : std::nullopt;
    if (!count || i >= *count)
      return node.fail("input " + llvm::Twine(number) +
                       " does not fit the directions");
    Value own = node.slice(all, 0, i, 1);
    return rank == 2 ? node.squeeze(own, {0}) : own;
  };
  int64_t scaleInput = input == 1 ? 8 : 10;
  Value scale = getParameter(scaleInput);
  Value zeroPoint = getParameter(scaleInput + 1);
  if (!scale || !zeroPoint)
    return nullptr;
  Type type = node.elementType(scale);
  Value wide = node.sub(node.cast(weights, type), node.cast(zeroPoint, type));
  Value scaled = node.mul(wide, scale);
  if (!scaled || scaled.getType() != wide.getType() || node.rank(scaled) != 2)
    return node.fail("scales and zero points do not fit the weights");
  return node.transpose(scaled, {1, 0});
}

static std::optional<Recurrence> readDirection(Node &node, const Cell &cell,
                                               int64_t i, AffineExpr batch,
                                               bool isBatchFirst) {
  Recurrence direction;
  direction.inputWeights = getWeights(node, cell, 1, i);
  direction.recurrentWeights = getWeights(node, cell, 2, i);
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
  direction.order = cell.order;
  direction.isCoupled = node.intAttr("input_forget", 0) != 0;
  direction.resetsProduct = node.intAttr("linear_before_reset", 0) != 0;
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
    for (const Activation &activation : own)
      direction->activations.push_back([&node, activation](Value x) {
        return applyActivation(node, activation, x);
      });
    direction->isReverse = way == "reverse" || i == 1;
    results.push_back(emitRecurrence(node, *cell.step, *direction, x, lengths));
    if (results.back().empty())
      node.fail("the sequence is too large");
  }
  if (!node.hasFailed())
    setRecurrentResults(node, cell, results, isBatchFirst);
}

static void importLstm(Node &node) {
  importRecurrent(node,
                  {4, 2, {"Sigmoid", "Tanh", "Tanh"}, {0, 2, 3, 1}, stepLstm});
}
/// onnxruntime's, which quantizes its steps' operands by their range to be
/// faster; here they stay as they are.
static void importDynamicQuantizeLstm(Node &node) {
  importRecurrent(node, {4,
                         2,
                         {"Sigmoid", "Tanh", "Tanh"},
                         {0, 2, 3, 1},
                         stepLstm,
                         /*isQuantized=*/true});
}
static void importGru(Node &node) {
  importRecurrent(node, {3, 1, {"Sigmoid", "Tanh"}, {0, 1, 2}, stepGru});
}
static void importRnn(Node &node) {
  importRecurrent(node, {1, 1, {"Tanh"}, {0}, stepRnn});
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"DynamicQuantizeLSTM", 1, 1, importDynamicQuantizeLstm, kOrtDomain},
    {"GRU", 7, last, importGru},
    {"LSTM", 7, last, importLstm},
    {"RNN", 7, last, importRnn},
};

ArrayRef<OpRow> getRecurrentOps() { return rows; }

} // namespace tcc::onnx_import

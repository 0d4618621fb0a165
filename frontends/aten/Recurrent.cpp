#include "frontends/Recurrent.h"
#include "frontends/aten/Call.h"

using namespace mlir;

namespace tcc::aten {

namespace {

struct Cell {
  RecurrentStep *step;
  int64_t gates, states;
  /// As the recurrence asks for them.
  std::array<int64_t, 4> order;
  /// One a letter: sigmoid, tanh, relu.
  StringRef activations;
};

constexpr int64_t kMaxLayers = 1024;

} // namespace

static constexpr Cell lstm = {stepLstm, 4, 2, {0, 1, 2, 3}, "stt"};
static constexpr Cell gru = {stepGru, 3, 1, {1, 0, 2}, "st"};
static constexpr Cell rnnTanh = {stepRnn, 1, 1, {0}, "t"};
static constexpr Cell rnnRelu = {stepRnn, 1, 1, {0}, "r"};

static Value activate(Call &call, char name, Value x) {
  return name == 's'   ? call.create<graph::SigmoidOp>(x)
         : name == 't' ? call.create<graph::TanhOp>(x)
                       : call.max(x, call.constantLike(0, x));
}

/// `weights` are those of the input and of the state, then their biases or
/// nulls.
static std::optional<Recurrence> readRecurrence(Call &call, const Cell &cell,
                                                ArrayRef<Value> weights,
                                                ArrayRef<Value> states) {
  auto fits = [&](Value x, ArrayRef<std::optional<int64_t>> extents) {
    if (!x || call.rank(x) != int64_t(extents.size()))
      return false;
    for (auto [axis, extent] : llvm::enumerate(extents))
      if (extent && graph::getConstant(graph::getExtent(x, axis)) != extent)
        return false;
    return true;
  };
  auto hidden = fits(weights[1], {std::nullopt, std::nullopt})
                    ? graph::getConstant(graph::getExtent(weights[1], 1))
                    : std::nullopt;
  bool areRight = hidden && *hidden > 0 &&
                  fits(weights[1], {cell.gates * *hidden, hidden}) &&
                  fits(weights[0], {cell.gates * *hidden, std::nullopt});
  for (Value bias : weights.drop_front(2))
    areRight &= !bias || (hidden && fits(bias, {cell.gates * *hidden}));
  for (Value state : states)
    areRight &= hidden && fits(state, {std::nullopt, hidden});
  if (!areRight || int64_t(states.size()) != cell.states) {
    call.fail("weights and states do not fit together");
    return std::nullopt;
  }
  Recurrence direction;
  direction.inputWeights = weights[0];
  direction.recurrentWeights = weights[1];
  direction.inputBias = weights[2];
  direction.recurrentBias = weights[3];
  direction.states.assign(states.begin(), states.end());
  direction.order.assign(cell.order.begin(), cell.order.end());
  direction.resetsProduct = true;
  for (char name : cell.activations)
    direction.activations.push_back(
        [&call, name](Value x) { return activate(call, name, x); });
  return direction;
}

static void importLstmCell(Call &call) {
  SmallVector<Value> states = call.tensors("hx");
  Value x = call.tensor("input");
  bool lacksBatch = call.rank(x) == 1;
  if (lacksBatch) {
    x = call.unsqueeze(x, {0});
    for (Value &state : states)
      state = call.unsqueeze(state, {0});
  }
  auto direction =
      readRecurrence(call, lstm,
                     {call.tensor("w_ih"), call.tensor("w_hh"),
                      call.optional("b_ih"), call.optional("b_hh")},
                     states);
  if (!direction || !x)
    return;
  if (call.rank(x) != 2)
    return (void)call.fail("an input of rank 1 or 2 is expected");
  Value product = call.matmul(x, direction->inputWeights, false, true);
  if (direction->inputBias)
    product = call.add(product, direction->inputBias);
  for (Value state : stepLstm(call, *direction, product, states))
    call.give(lacksBatch ? call.squeeze(state, {0}) : state);
}

namespace {

/// Layers and directions of a network: weights and states of one after the
/// other.
struct Network {
  int64_t layers, directions;
  SmallVector<Value> weights; // four each
  SmallVector<Value> states;  // [layers * directions, batch, hidden]
};

} // namespace

static std::optional<Network> readNetwork(Call &call, const Cell &cell) {
  Network network;
  network.layers = call.integer("num_layers");
  network.directions = call.isTrue("bidirectional") ? 2 : 1;
  bool hasBiases = call.isTrue("has_biases");
  SmallVector<Value> given = call.tensors("params");
  network.states = cell.states == 2 ? call.tensors("hx")
                                    : SmallVector<Value>{call.tensor("hx")};
  if (call.isTrue("train") && call.real("dropout") != 0)
    call.unsupported("dropout between layers");
  size_t each = hasBiases ? 4 : 2;
  bool isIn = network.layers > 0 && network.layers <= kMaxLayers;
  size_t count = isIn ? network.layers * network.directions : 0;
  if (!isIn || given.size() < count * each)
    call.fail("weights and states do not fit together");
  else if (given.size() > count * each)
    call.unsupported("a projection of states");
  if (call.hasFailed())
    return std::nullopt;
  for (size_t i = 0; i < given.size(); i += each) {
    network.weights.append({given[i], given[i + 1]});
    network.weights.append({hasBiases ? given[i + 2] : nullptr,
                            hasBiases ? given[i + 3] : nullptr});
  }
  return network;
}

/// One layer over x [steps, batch, input]: what all directions give, side by
/// side. Their last states are added to `last`.
static Value runLayer(Call &call, const Cell &cell, const Network &network,
                      int64_t layer, Value x,
                      MutableArrayRef<SmallVector<Value>> last) {
  SmallVector<Value> outputs;
  for (int64_t i = 0; i < network.directions; ++i) {
    int64_t place = layer * network.directions + i;
    SmallVector<Value> states;
    for (Value all : network.states)
      states.push_back(call.squeeze(call.slice(all, 0, place, 1), {0}));
    auto weights = ArrayRef(network.weights).slice(4 * place, 4);
    auto direction = readRecurrence(call, cell, weights, states);
    if (!direction)
      return nullptr;
    direction->isReverse = i == 1;
    auto results = emitRecurrence(call, *cell.step, *direction, x, nullptr);
    if (results.empty())
      return call.fail("the sequence is too large");
    outputs.push_back(results.front());
    for (auto [state, all] : llvm::zip(ArrayRef(results).drop_front(), last))
      all.push_back(call.unsqueeze(state, {0}));
  }
  return call.concat(outputs, 2);
}

template <const Cell &cell> static void importNetwork(Call &call) {
  Value x = call.tensor("input");
  auto network = readNetwork(call, cell);
  if (!x || !network)
    return;
  bool lacksBatch = call.rank(x) == 2;
  bool isBatchFirst = call.isTrue("batch_first") && !lacksBatch;
  if (lacksBatch)
    for (Value *value : {&x, &network->states.front(), &network->states.back()})
      if (call.rank(*value) == 2)
        *value = call.unsqueeze(*value, {1});
  for (Value value : {x, network->states.front(), network->states.back()})
    if (call.rank(value) != 3)
      return (void)call.fail("an input and states of rank 3 are expected");
  if (isBatchFirst)
    x = call.transpose(x, {1, 0, 2});
  SmallVector<SmallVector<Value>> last(cell.states);
  for (int64_t layer = 0; layer < network->layers && x; ++layer)
    x = runLayer(call, cell, *network, layer, x, last);
  if (!x)
    return;
  SmallVector<Value> results = {isBatchFirst ? call.transpose(x, {1, 0, 2})
                                             : x};
  for (ArrayRef<Value> states : last)
    results.push_back(call.concat(states, 0));
  for (Value result : results)
    call.give(lacksBatch ? call.squeeze(result, {1}) : result);
}

static const OpRow rows[] = {
    {"gru(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "
     "num_layers, float dropout, bool train, bool bidirectional, bool "
     "batch_first) -> (Tensor, Tensor)",
     importNetwork<gru>},
    {"lstm(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int "
     "num_layers, float dropout, bool train, bool bidirectional, bool "
     "batch_first) -> (Tensor, Tensor, Tensor)",
     importNetwork<lstm>},
    {"lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? "
     "b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
     importLstmCell},
    {"rnn_relu(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "
     "num_layers, float dropout, bool train, bool bidirectional, bool "
     "batch_first) -> (Tensor, Tensor)",
     importNetwork<rnnRelu>},
    {"rnn_tanh(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "
     "num_layers, float dropout, bool train, bool bidirectional, bool "
     "batch_first) -> (Tensor, Tensor)",
     importNetwork<rnnTanh>},
};

ArrayRef<OpRow> getRecurrentOps() { return rows; }

} // namespace tcc::aten

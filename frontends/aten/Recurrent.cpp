#include "frontends/aten/Call.h"

using namespace mlir;

namespace tcc::aten {

/// x weight^T + bias
static Value emitGates(Call &call, Value x, Value weight, Value bias) {
  Value y = call.matmul(x, weight, false, true);
  return bias ? call.add(y, bias) : y;
}

/// h and c of an LSTM cell from the sum of its gates [batch, 4 n]: input,
/// forget, cell, output.
static std::pair<Value, Value> emitLstmCell(Call &call, Value gates, Value c) {
  if (!gates || !c)
    return {};
  AffineExpr size = graph::getExtent(c, 1);
  auto gate = [&](int64_t i) { return call.slice(gates, 1, size * i, size); };
  Value input = call.create<graph::SigmoidOp>(gate(0));
  Value forget = call.create<graph::SigmoidOp>(gate(1));
  Value cell = call.create<graph::TanhOp>(gate(2));
  Value output = call.create<graph::SigmoidOp>(gate(3));
  c = call.add(call.mul(forget, c), call.mul(input, cell));
  return {call.mul(output, call.create<graph::TanhOp>(c)), c};
}

static void importLstmCell(Call &call) {
  SmallVector<Value> state = call.tensors("hx");
  if (state.size() != 2)
    return (void)call.fail("hx must be h and c");
  Value x = call.tensor("input");
  bool lacksBatch = call.rank(x) == 1;
  if (lacksBatch)
    for (Value *value : {&x, &state[0], &state[1]})
      *value = call.unsqueeze(*value, {0});
  Value gates = call.add(
      emitGates(call, x, call.tensor("w_ih"), call.optional("b_ih")),
      emitGates(call, state[0], call.tensor("w_hh"), call.optional("b_hh")));
  if (call.rank(gates) != 2 || call.rank(state[1]) != 2)
    return (void)call.fail("h and c must be of the input's rank, 1 or 2");
  auto [h, c] = emitLstmCell(call, gates, state[1]);
  call.give(lacksBatch ? call.squeeze(h, {0}) : h);
  call.give(lacksBatch ? call.squeeze(c, {0}) : c);
}

static const OpRow rows[] = {
    {"lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? "
     "b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
     importLstmCell},
};

ArrayRef<OpRow> getRecurrentOps() { return rows; }

} // namespace tcc::aten

#include "frontends/onnx/Node.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;
using tcc::graph::CompareKind;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

namespace {

/// Target classes [batch, ...]; those to ignore are class 0 and flagged.
struct Targets {
  Value labels, isIgnored; // isIgnored may be null
};

} // namespace

static Targets readTargets(Node &node) {
  Type index = IntegerType::get(node.getContext(), 64);
  Value labels = node.cast(node.input(1), index);
  if (!node.findAttr("ignore_index"))
    return {labels, nullptr};
  Value ignored = node.constant(double(node.intAttr("ignore_index", 0)), index);
  Value isIgnored = node.compare(CompareKind::eq, labels, ignored);
  return {node.select(isIgnored, node.constant(0, index), labels), isIgnored};
}

/// -logs[n, target, ...] times the weight of the target's class, which is 0 for
/// ignored ones; a mean is divided by the weights. logs is [batch, class, ...].
static Value emitLoss(Node &node, Value logs) {
  Targets targets = readTargets(node);
  if (!logs || !targets.labels)
    return nullptr;
  int64_t rank = node.rank(targets.labels);
  if (rank < 1 || node.rank(logs) != rank + 1)
    return node.fail("scores [batch, class, ...] and targets [batch, ...] are "
                     "expected");
  Value picked = node.squeeze(
      node.create<graph::GatherElementsOp>(
          {logs, node.unsqueeze(targets.labels, {1})}, {node.attr("axis", 1L)}),
      {1});
  Value weights = node.hasInput(2)
                      ? node.gather(node.input(2), targets.labels, 0)
                      : node.broadcast(node.constantLike(1, logs),
                                       node.extents(targets.labels));
  Value losses = node.mul(node.create<graph::NegOp>(picked), weights);
  Value zero = node.constantLike(0, logs);
  if (targets.isIgnored) {
    losses = node.select(targets.isIgnored, zero, losses);
    weights = node.select(targets.isIgnored, zero, weights);
  }
  std::string reduction = node.stringAttr("reduction", "mean");
  if (reduction == "none")
    return losses;
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value sum = node.reduce(ReduceKind::sum, losses, axes, false);
  if (reduction == "sum")
    return sum;
  if (reduction != "mean")
    return node.fail("reduction is unknown");
  return node.div(sum, node.reduce(ReduceKind::sum, weights, axes, false));
}

static void importNegativeLogLikelihood(Node &node) {
  node.setResult(0, emitLoss(node, node.input(0)));
}

static void importSoftmaxCrossEntropy(Node &node) {
  Value logs =
      node.create<graph::LogSoftmaxOp>(node.input(0), {node.attr("axis", 1L)});
  node.setResult(0, emitLoss(node, logs));
  node.setResult(1, logs);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"NegativeLogLikelihoodLoss", 12, last, importNegativeLogLikelihood},
    {"SoftmaxCrossEntropyLoss", 12, last, importSoftmaxCrossEntropy},
};

ArrayRef<OpRow> getLossOps() { return rows; }

} // namespace tcc::onnx_import

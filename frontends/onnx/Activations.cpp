#include "frontends/onnx/Activations.h"

using namespace mlir;

namespace tcc::onnx_import {

struct ActivationRow {
  llvm::StringLiteral name;
  int parameters;     // how many of alpha, beta it takes
  double alpha, beta; // unless given
  Value (*emit)(Node &node, Value x, double alpha, double beta);
};

static Value applyClip(Node &node, Value x) {
  if (!node.findAttr("clip") || !x)
    return x;
  double limit = node.floatAttr("clip", 0);
  return node.max(node.min(x, node.constantLike(limit, x)),
                  node.constantLike(-limit, x));
}

template <typename OpTy>
static Value emitPlain(Node &node, Value x, double, double) {
  return node.create<OpTy>(x);
}

template <typename OpTy>
static Value emitWithAlpha(Node &node, Value x, double alpha, double) {
  return node.create<OpTy>(x, {node.attr("alpha", alpha)});
}

static Value emitHardSigmoid(Node &node, Value x, double alpha, double beta) {
  return node.create<graph::HardSigmoidOp>(
      x, {node.attr("alpha", alpha), node.attr("beta", beta)});
}

static Value emitAffine(Node &node, Value x, double alpha, double beta) {
  return node.add(node.mul(x, node.constantLike(alpha, x)),
                  node.constantLike(beta, x));
}

static Value emitScaledTanh(Node &node, Value x, double alpha, double beta) {
  Value scaled = node.mul(x, node.constantLike(beta, x));
  return node.mul(node.create<graph::TanhOp>(scaled),
                  node.constantLike(alpha, x));
}

static Value emitThresholdedRelu(Node &node, Value x, double alpha, double) {
  Value isOn =
      node.compare(graph::CompareKind::ge, x, node.constantLike(alpha, x));
  return node.select(isOn, x, node.constantLike(0, x));
}

static Value emitSoftsign(Node &node, Value x, double, double) {
  Value size = node.create<graph::AbsOp>(x);
  return node.div(x, node.add(size, node.constantLike(1, x)));
}

static const ActivationRow rows[] = {
    {"Affine", 2, 1, 0, emitAffine},
    {"Elu", 1, 1, 0, emitWithAlpha<graph::EluOp>},
    {"HardSigmoid", 2, 0.2, 0.5, emitHardSigmoid},
    {"LeakyRelu", 1, 0.01, 0, emitWithAlpha<graph::LeakyReluOp>},
    {"Relu", 0, 0, 0, emitPlain<graph::ReluOp>},
    {"ScaledTanh", 2, 1, 1, emitScaledTanh},
    {"Sigmoid", 0, 0, 0, emitPlain<graph::SigmoidOp>},
    {"Softplus", 0, 0, 0, emitPlain<graph::SoftplusOp>},
    {"Softsign", 0, 0, 0, emitSoftsign},
    {"Tanh", 0, 0, 0, emitPlain<graph::TanhOp>},
    {"ThresholdedRelu", 1, 1, 0, emitThresholdedRelu},
};

static const ActivationRow *findActivation(StringRef name) {
  auto row = llvm::find_if(rows, [&](const ActivationRow &row) {
    return name.equals_insensitive(row.name);
  });
  return row == std::end(rows) ? nullptr : row;
}

Value applyActivation(Node &node, const Activation &activation, Value x) {
  return activation.row->emit(node, applyClip(node, x), activation.alpha,
                              activation.beta);
}

SmallVector<Activation>
readActivations(Node &node, ArrayRef<StringRef> defaults, int64_t directions) {
  SmallVector<std::string> names = node.stringsAttr("activations");
  size_t expected = defaults.size() * directions;
  for (size_t i = names.size(); names.size() < expected; ++i)
    names.push_back(defaults[i % defaults.size()].str());
  if (names.size() != expected)
    node.fail("activations has the wrong number of entries");
  auto alphas =
      node.floatsAttr("activation_alpha").value_or(SmallVector<double>());
  auto betas =
      node.floatsAttr("activation_beta").value_or(SmallVector<double>());
  size_t nextAlpha = 0, nextBeta = 0;
  SmallVector<Activation> result;
  for (StringRef name : names) {
    const ActivationRow *row = findActivation(name);
    if (!row) {
      node.fail("activation '" + name + "' is unknown");
      return {};
    }
    Activation activation{row, row->alpha, row->beta};
    if (row->parameters >= 1 && nextAlpha < alphas.size())
      activation.alpha = alphas[nextAlpha++];
    if (row->parameters >= 2 && nextBeta < betas.size())
      activation.beta = betas[nextBeta++];
    result.push_back(activation);
  }
  return result;
}

} // namespace tcc::onnx_import

#include "frontends/onnx/Activations.h"

#include <limits>

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

/// min(max(x, low), high)
static Value emitClip(Node &node, Value x, double low, double high) {
  return node.min(node.max(x, node.constantLike(low, x)),
                  node.constantLike(high, x));
}

static Value emitSelu(Node &node, Value x, double alpha, double gamma) {
  return node.mul(emitWithAlpha<graph::EluOp>(node, x, alpha, 0),
                  node.constantLike(gamma, x));
}

/// Functions that are fused but that no recurrent cell has; of Clip the
/// parameters are the limits, of Selu alpha and gamma.
static const ActivationRow fusedRows[] = {
    {"Clip", 2, std::numeric_limits<float>::lowest(),
     std::numeric_limits<float>::max(), emitClip},
    {"Selu", 2, 1.67326319217681884765625, 1.05070102214813232421875, emitSelu},
};

Value applyFusedActivation(Node &node, ArrayRef<double> parameters, Value x) {
  std::string name = node.stringAttr("activation", "");
  if (name.empty() || !x)
    return x;
  const ActivationRow *row = llvm::find_if(
      fusedRows, [&](const ActivationRow &row) { return row.name == name; });
  if (row == std::end(fusedRows))
    row = findActivation(name);
  if (!row)
    return node.unsupported("activation '" + name + "'");
  if (int64_t(parameters.size()) > row->parameters)
    return node.fail("activation '" + name + "' has " +
                     llvm::Twine(parameters.size()) + " parameters, " +
                     llvm::Twine(row->parameters) + " are expected");
  double alpha = parameters.size() > 0 ? parameters[0] : row->alpha;
  double beta = parameters.size() > 1 ? parameters[1] : row->beta;
  return row->emit(node, x, alpha, beta);
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

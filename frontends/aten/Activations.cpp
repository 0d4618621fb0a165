#include "frontends/aten/Call.h"

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::aten {

template <typename OpTy> static void importActivation(Call &call) {
  call.give(call.create<OpTy>(call.toReal(call.tensor("self"))));
}

static void importRelu(Call &call) {
  call.give(call.create<graph::ReluOp>(call.tensor("self")));
}

static void importGelu(Call &call) {
  Value x = call.tensor("self");
  std::string form = call.text("approximate");
  if (form != "tanh" && form != "none")
    return (void)call.fail("approximate must be 'none' or 'tanh'");
  call.give(form == "tanh" ? call.create<graph::GeluTanhOp>(x)
                           : call.create<graph::GeluOp>(x));
}

static void importHardSigmoid(Call &call) {
  call.give(call.create<graph::HardSigmoidOp>(
      call.tensor("self"),
      {call.attr("alpha", 1.0 / 6), call.attr("beta", 0.5)}));
}

static Value clamp(Call &call, Value x, double low, double high) {
  return call.min(call.max(x, call.constantLike(low, x)),
                  call.constantLike(high, x));
}

static void importHardTanh(Call &call) {
  call.give(clamp(call, call.tensor("self"), call.real("min_val"),
                  call.real("max_val")));
}

static void importRelu6(Call &call) {
  call.give(clamp(call, call.tensor("self"), 0, 6));
}

static void importLeakyRelu(Call &call) {
  call.give(call.create<graph::LeakyReluOp>(
      call.tensor("self"), {call.attr("alpha", call.real("negative_slope"))}));
}

static void importElu(Call &call) {
  if (call.real("input_scale") != 1)
    return (void)call.unsupported("input_scale");
  Value y = call.create<graph::EluOp>(call.tensor("self"),
                                      {call.attr("alpha", call.real("alpha"))});
  double scale = call.real("scale");
  call.give(scale == 1 ? y : call.mul(y, call.constantLike(scale, y)));
}

static void importSelu(Call &call) {
  Value y = call.create<graph::EluOp>(
      call.tensor("self"),
      {call.attr("alpha", 1.6732632423543772848170429916717)});
  call.give(
      call.mul(y, call.constantLike(1.0507009873554804934193349852946, y)));
}

/// log(1 + e^(beta x)) / beta, and x itself above the threshold.
static void importSoftplus(Call &call) {
  Value x = call.tensor("self");
  double beta = call.real("beta");
  Value scaled = beta == 1 ? x : call.mul(x, call.constantLike(beta, x));
  Value soft = call.create<graph::SoftplusOp>(scaled);
  if (beta != 1)
    soft = call.div(soft, call.constantLike(beta, x));
  Value isHigh = call.compare(CompareKind::gt, scaled,
                              call.constantLike(call.real("threshold"), x));
  call.give(call.select(isHigh, x, soft));
}

static void importLogSigmoid(Call &call) {
  Value x = call.tensor("self");
  Value soft = call.create<graph::SoftplusOp>(call.create<graph::NegOp>(x));
  call.give(call.create<graph::NegOp>(soft));
}

/// The slope is one for all, or one a channel.
static void importPRelu(Call &call) {
  Value x = call.tensor("self"), slope = call.tensor("weight");
  if (!x || !slope)
    return;
  if (call.rank(x) > 1 && call.rank(slope) == 1)
    slope = call.alongChannels(slope, x);
  Value isPositive = call.compare(CompareKind::gt, x, call.constantLike(0, x));
  call.give(call.select(isPositive, x, call.mul(x, slope)));
}

/// The first half of an axis times the sigmoid of the second.
static void importGlu(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  Size half = call.getSizes().divideProducts(graph::getExtent(x, axis),
                                             call.getSizes().constant(2));
  if (!half)
    return (void)call.fail("the axis cannot be halved");
  Value gate = call.slice(x, axis, *half, *half);
  call.give(call.mul(call.slice(x, axis, call.getSizes().constant(0), *half),
                     call.create<graph::SigmoidOp>(gate)));
}

static const OpRow rows[] = {
    {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) "
     "-> Tensor",
     importElu},
    {"gelu(Tensor self, *, str approximate=none) -> Tensor", importGelu},
    {"glu(Tensor self, int dim=-1) -> Tensor", importGlu},
    {"hardsigmoid(Tensor self) -> Tensor", importHardSigmoid},
    {"hardswish(Tensor self) -> Tensor", importActivation<graph::HardSwishOp>},
    {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
     importHardTanh},
    {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
     importLeakyRelu},
    {"log_sigmoid(Tensor self) -> Tensor", importLogSigmoid},
    {"mish(Tensor self) -> Tensor", importActivation<graph::MishOp>},
    {"prelu(Tensor self, Tensor weight) -> Tensor", importPRelu},
    {"relu(Tensor self) -> Tensor", importRelu},
    {"relu6(Tensor self) -> Tensor", importRelu6},
    {"selu(Tensor self) -> Tensor", importSelu},
    {"sigmoid(Tensor self) -> Tensor", importActivation<graph::SigmoidOp>},
    {"silu(Tensor self) -> Tensor", importActivation<graph::SiluOp>},
    {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
     importSoftplus},
    {"tanh(Tensor self) -> Tensor", importActivation<graph::TanhOp>},
};

ArrayRef<OpRow> getActivationOps() { return rows; }

} // namespace tcc::aten

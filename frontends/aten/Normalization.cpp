#include "frontends/aten/Call.h"

using namespace mlir;

namespace tcc::aten {

// --- Softmax -----------------------------------------------------------------

template <typename OpTy> static void importSoftmax(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  int64_t axis = call.axis("dim", call.rank(x));
  if (call.getSchema().find("dtype"))
    x = call.cast(x, call.type("dtype", call.elementType(x)));
  call.give(call.create<OpTy>(call.toReal(x), {call.attr("axis", axis)}));
}

// --- Over trailing axes ------------------------------------------------------

/// The first of the axes that `normalized_shape` names.
static std::optional<int64_t> getFirstAxis(Call &call, Value x) {
  graph::Extents given = call.sizes("normalized_shape");
  if (!x || call.hasFailed())
    return std::nullopt;
  graph::Extents extents = call.extents(x);
  if (given.empty() || given.size() > extents.size() ||
      ArrayRef(given) != ArrayRef(extents).take_back(given.size())) {
    call.fail("normalized_shape does not fit the input");
    return std::nullopt;
  }
  return int64_t(extents.size() - given.size());
}

static void importLayerNorm(Call &call) {
  Value x = call.tensor("input");
  auto axis = getFirstAxis(call, x);
  if (!axis)
    return;
  Value scale = call.optional("weight"), shift = call.optional("bias");
  Value y = call.layerNorm(x, *axis, call.real("eps"), scale, shift);
  call.give(y);
}

static void importRmsNorm(Call &call) {
  Value x = call.tensor("input");
  auto axis = getFirstAxis(call, x);
  if (!axis)
    return;
  auto type = dyn_cast<FloatType>(call.elementType(x));
  if (!type)
    return (void)call.fail("floats are expected");
  // PyTorch's default is the type's smallest step at 1.
  int digits = llvm::APFloat::semanticsPrecision(type.getFloatSemantics());
  double epsilon =
      call.has("eps") ? call.real("eps") : std::ldexp(1.0, 1 - digits);
  SmallVector<Value> operands = {x};
  if (Value scale = call.optional("weight"))
    operands.push_back(scale);
  call.give(call.create<graph::RmsNormOp>(
      operands, {call.attr("axis", *axis), call.attr("epsilon", epsilon)}));
}

// --- Per channel -------------------------------------------------------------

static Value scaleChannels(Call &call, Value x) {
  if (Value scale = call.optional("weight"))
    x = call.mul(x, call.alongChannels(scale, x));
  if (Value shift = call.optional("bias"))
    x = call.add(x, call.alongChannels(shift, x));
  return x;
}

static void importBatchNorm(Call &call) {
  Value x = call.tensor("input");
  if (call.getSchema().find("training") && call.isTrue("training"))
    return (void)call.unsupported(
        "a batch norm in training mode (export it in eval mode: --train makes "
        "the training form itself)");
  Value mean = call.optional("running_mean");
  Value variance = call.optional("running_var");
  if (!x || !mean || !variance)
    return (void)call.unsupported("a batch norm without running statistics");
  if (call.rank(x) < 2 || call.rank(mean) != 1)
    return (void)call.fail("an input of rank 2 or more is expected");
  auto fill = [&](StringRef name, double value) {
    Value given = call.optional(name);
    return given ? given
                 : call.broadcast(call.constantLike(value, x),
                                  call.extents(mean));
  };
  SmallVector<Value> operands = {x, fill("weight", 1), fill("bias", 0), mean,
                                 variance};
  for (Value &vector : MutableArrayRef(operands).drop_front())
    vector = call.cast(vector, call.elementType(x));
  call.give(call.create<graph::BatchNormOp>(
      operands, {call.attr("epsilon", call.real("eps")),
                 call.attr("momentum", call.real("momentum"))}));
}

static void importGroupNorm(Call &call) {
  Value x = call.tensor("input");
  int64_t groups = call.integer("num_groups");
  if (!x || call.hasFailed())
    return;
  graph::Extents extents = call.extents(x), grouped = extents;
  auto channels =
      extents.size() < 2 ? std::nullopt : graph::getConstant(extents[1]);
  if (!channels || groups < 1 || *channels % groups != 0)
    return (void)call.fail("num_groups does not divide the channels");
  // [batch, group, channel of it, ...]
  grouped[1] = call.getSizes().constant(*channels / groups);
  grouped.insert(grouped.begin() + 1, call.getSizes().constant(groups));
  Value split = call.reshape(x, grouped);
  Value normal = call.layerNorm(split, 2, call.real("eps"));
  call.give(scaleChannels(call, call.reshape(normal, extents)));
}

static void importInstanceNorm(Call &call) {
  Value x = call.tensor("input");
  if (!call.isTrue("use_input_stats"))
    return (void)call.unsupported("an instance norm of running statistics");
  if (!x || call.rank(x) < 3)
    return (void)call.fail("an input of rank 3 or more is expected");
  call.give(scaleChannels(call, call.layerNorm(x, 2, call.real("eps"))));
}

static const OpRow rows[] = {
    {"_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     importSoftmax<graph::SoftmaxOp>},
    {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
     "running_mean, Tensor? running_var, bool training, float momentum, float "
     "eps, bool cudnn_enabled=False) -> Tensor",
     importBatchNorm},
    {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
     "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
     importGroupNorm},
    {"instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
     "running_mean, Tensor? running_var, bool use_input_stats, float momentum, "
     "float eps, bool cudnn_enabled) -> Tensor",
     importInstanceNorm},
    {"layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
     "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
     importLayerNorm},
    {"log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     importSoftmax<graph::LogSoftmaxOp>},
    {"rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
     "float? eps=None) -> Tensor",
     importRmsNorm},
    {"softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     importSoftmax<graph::SoftmaxOp>},
};

ArrayRef<OpRow> getNormalizationOps() { return rows; }

} // namespace tcc::aten

#include "frontends/aten/Random.h"

#include "frontends/aten/Tracer.h"

using namespace mlir;

namespace tcc::aten {

bool dropsIn(Call &call, double p) {
  if (!(p >= 0 && p <= 1))
    call.fail("the probability must be a number from 0 to 1");
  return call.getTracer().trains() && p > 0;
}

Value emitDropout(Call &call, Value x, double p) {
  auto site = StringAttr::get(call.getContext(), call.getTracer().getSite());
  return call.create<graph::DropoutOp>(
      x, {call.attr("p", p), call.attr("site", site),
          call.attr("key", call.getTracer().numberDropout())});
}

/// Whether the exporter meant training or not, the recipe decides; inference
/// drops nothing.
static void importDropout(Call &call) {
  double p = call.real("p");
  if (call.getTracer().trains()) {
    if (dropsIn(call, p))
      return call.give(emitDropout(call, call.tensor("input"), p));
  } else if (call.isTrue("train") && p > 0) {
    return (void)call.unsupported("dropout in training mode");
  }
  if (!call.hasFailed())
    call.giveSame("input");
}

/// One that drops whole channels, or keeps mean and variance.
static void importOtherDropout(Call &call) {
  if (call.isTrue("train") && call.real("p") > 0)
    return (void)call.unsupported("a dropout of whole channels or of alpha");
  call.giveSame("input");
}

static const OpRow rows[] = {
    {"alpha_dropout(Tensor input, float p, bool train) -> Tensor(a)",
     importOtherDropout},
    {"dropout(Tensor input, float p, bool train) -> Tensor(a)", importDropout},
    {"feature_dropout(Tensor input, float p, bool train) -> Tensor(a)",
     importOtherDropout},
};

ArrayRef<OpRow> getRandomOps() { return rows; }

} // namespace tcc::aten

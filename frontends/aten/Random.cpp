#include "frontends/aten/Random.h"

#include "frontends/Random.h"
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
          call.attr("key", call.getTracer().numberRandom())});
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

template <graph::RandomKind kind>
static void giveNumbers(Call &call, ArrayRef<AffineExpr> extents, Type type) {
  if (!isa_and_nonnull<FloatType>(type))
    call.fail("random numbers are floats");
  if (!call.hasFailed())
    call.give(drawNumbers(call, kind, extents, type,
                          call.getTracer().numberRandom()));
}

template <graph::RandomKind kind> static void importRandom(Call &call) {
  giveNumbers<kind>(call, call.sizes("size"),
                    call.type("dtype", call.getRealType()));
}

template <graph::RandomKind kind> static void importRandomLike(Call &call) {
  if (Value x = call.tensor("self"))
    giveNumbers<kind>(call, call.extents(x),
                      call.type("dtype", call.elementType(x)));
}

/// Ones with the probabilities of the input, or p for all of them.
static void importBernoulli(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  Value p = x;
  if (call.getSchema().find("p"))
    p = call.broadcast(
        call.constant(call.real("p"), Float32Type::get(call.getContext())),
        call.extents(x));
  Value isOne = drawBernoulli(call, p, call.getTracer().numberRandom());
  call.give(call.cast(isOne, call.elementType(x)));
}

static void importMultinomial(Call &call) {
  Value p = call.tensor("self");
  int64_t count = call.integer("num_samples");
  bool areMany = count > 1 && !call.isTrue("replacement");
  if (areMany)
    return (void)call.unsupported("samples without replacement");
  if (!p || count < 1)
    return (void)call.fail("num_samples is less than 1");
  bool isVector = call.rank(p) == 1;
  Value scores =
      call.create<graph::LogOp>(call.cast(isVector ? call.unsqueeze(p, {0}) : p,
                                          Float32Type::get(call.getContext())));
  Value places = drawClasses(call, scores, call.getSizes().constant(count),
                             call.getTracer().numberRandom());
  call.give(isVector ? call.squeeze(places, {0}) : places);
}

static constexpr auto normal = graph::RandomKind::normal;
static constexpr auto uniform = graph::RandomKind::uniform;
static const OpRow rows[] = {
    {"alpha_dropout(Tensor input, float p, bool train) -> Tensor(a)",
     importOtherDropout},
    {"bernoulli(Tensor self) -> Tensor", importBernoulli},
    {"bernoulli.p(Tensor self, float p=0.5) -> Tensor", importBernoulli},
    {"dropout(Tensor input, float p, bool train) -> Tensor(a)", importDropout},
    {"feature_dropout(Tensor input, float p, bool train) -> Tensor(a)",
     importOtherDropout},
    {"multinomial(Tensor self, int num_samples, bool replacement=False) -> "
     "Tensor",
     importMultinomial},
    {"rand(int[] size, *, ScalarType? dtype=None) -> Tensor",
     importRandom<uniform>},
    {"rand_like(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importRandomLike<uniform>},
    {"randn(int[] size, *, ScalarType? dtype=None) -> Tensor",
     importRandom<normal>},
    {"randn_like(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importRandomLike<normal>},
};

ArrayRef<OpRow> getRandomOps() { return rows; }

} // namespace tcc::aten

#include "frontends/aten/Call.h"

using namespace mlir;
using tcc::graph::CompareKind;
using tcc::graph::ReduceKind;

namespace tcc::aten {

/// The axes of a reduction: those of `dim` if the schema has it, or all.
static SmallVector<int64_t> getAxes(Call &call, Value x) {
  int64_t rank = call.rank(x);
  if (call.getSchema().find("dim"))
    return call.axes("dim", rank);
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

static bool keepsAxes(Call &call) {
  return call.getSchema().find("keepdim") && call.isTrue("keepdim");
}

/// x in the type that sums are taken in: integers and booleans as i64.
static Value toSum(Call &call, Value x) {
  if (!x)
    return nullptr;
  Type type = call.elementType(x);
  Type wide = isa<FloatType>(type) ? type : call.getIndexType();
  if (call.getSchema().find("dtype"))
    wide = call.type("dtype", wide);
  return call.cast(x, wide);
}

template <ReduceKind kind> static void importSum(Call &call) {
  Value x = toSum(call, call.tensor("self"));
  call.give(call.reduce(kind, x, getAxes(call, x), keepsAxes(call)));
}

template <ReduceKind kind> static void importExtreme(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  // Booleans are combined as numbers.
  Type type = call.elementType(x);
  Type byte = IntegerType::get(call.getContext(), 8, IntegerType::Unsigned);
  Value wide = type.isInteger(1) ? call.cast(x, byte) : x;
  call.give(call.cast(
      call.reduce(kind, wide, getAxes(call, x), keepsAxes(call)), type));
}

/// Whether any or all are not 0.
template <ReduceKind kind> static void importTruth(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  if (!call.elementType(x).isInteger(1))
    x = call.compare(CompareKind::ne, x, call.constantLike(0, x));
  Type byte = IntegerType::get(call.getContext(), 8, IntegerType::Unsigned);
  Value wide = call.cast(x, byte);
  call.give(
      call.cast(call.reduce(kind, wide, getAxes(call, x), keepsAxes(call)),
                call.getBoolType()));
}

static void importMean(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  x = call.cast(x, call.type("dtype", call.elementType(x)));
  SmallVector<int64_t> axes = getAxes(call, x);
  Value mean = call.mean(x, axes);
  call.give(keepsAxes(call) ? mean : call.squeeze(mean, axes));
}

/// Sum of squared deviations over the count less the correction.
static Value emitVariance(Call &call, double correction) {
  Value x = call.tensor("self");
  if (!x)
    return nullptr;
  SmallVector<int64_t> axes = getAxes(call, x);
  Value centered = call.sub(x, call.mean(x, axes));
  Value sum = call.reduce(ReduceKind::sum, call.mul(centered, centered), axes,
                          keepsAxes(call));
  graph::Extents reduced;
  for (int64_t axis : axes)
    reduced.push_back(graph::getExtent(x, axis));
  Value count = call.countLike(reduced, x);
  return call.div(sum, call.sub(count, call.constantLike(correction, x)));
}

static double getCorrection(Call &call) {
  if (call.getSchema().find("unbiased"))
    return call.isTrue("unbiased") ? 1 : 0;
  return call.has("correction") ? call.real("correction") : 1;
}

static void importVariance(Call &call) {
  call.give(emitVariance(call, getCorrection(call)));
}

static void importDeviation(Call &call) {
  call.give(
      call.create<graph::SqrtOp>(emitVariance(call, getCorrection(call))));
}

template <ReduceKind kind>
static Value emitIndex(Call &call, Value x, int64_t axis) {
  auto kindAttr = graph::ReduceKindAttr::get(call.getContext(), kind);
  return call.create<graph::ArgReduceOp>(
      x, {call.attr("kind", kindAttr), call.attr("axis", axis)});
}

/// The extreme elements along an axis, and where they are.
template <ReduceKind kind> static void importExtremeAt(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  bool keeps = call.isTrue("keepdim");
  call.give(call.reduce(kind, x, {axis}, keeps));
  Value index = emitIndex<kind>(call, x, axis);
  call.give(keeps ? call.unsqueeze(index, {axis}) : index);
}

template <ReduceKind kind> static void importArg(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  if (call.has("dim")) {
    int64_t axis = call.axis("dim", call.rank(x));
    if (call.hasFailed())
      return;
    Value index = emitIndex<kind>(call, x, axis);
    return call.give(call.isTrue("keepdim") ? call.unsqueeze(index, {axis})
                                            : index);
  }
  Size count = call.getSizes().product(call.extents(x));
  if (!count)
    return (void)call.fail("the input is too large");
  call.give(emitIndex<kind>(call, call.reshape(x, {*count}), 0));
}

template <ReduceKind kind> static void importCumulative(Call &call) {
  Value x = toSum(call, call.tensor("self"));
  int64_t axis = call.axis("dim", call.rank(x));
  auto kindAttr = graph::ReduceKindAttr::get(call.getContext(), kind);
  call.give(call.create<graph::CumulativeOp>(
      x, {call.attr("kind", kindAttr), call.attr("axis", axis)}));
}

/// Differences of neighbours along an axis.
static void importDiff(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x)), count = call.integer("n");
  if (!x || call.hasFailed())
    return;
  if (count < 0 || count > 16)
    return (void)call.unsupported("n > 16");
  SmallVector<Value> parts;
  if (Value before = call.optional("prepend"))
    parts.push_back(before);
  parts.push_back(x);
  if (Value after = call.optional("append"))
    parts.push_back(after);
  x = call.concat(parts, axis);
  for (; count > 0 && x; --count) {
    AffineExpr rest = graph::getExtent(x, axis) - 1;
    const Sizes &sizes = call.getSizes();
    Value next = call.slice(x, axis, sizes.constant(1), rest);
    Value previous = call.slice(x, axis, sizes.constant(0), rest);
    bool isBool = call.elementType(x).isInteger(1);
    x = isBool ? call.pointwise<graph::XorOp>({next, previous})
               : call.sub(next, previous);
  }
  call.give(x);
}

/// m + log(sum(e^(x - m))) with m = max(x); an infinite m is left out.
static void importLogSumExp(Call &call) {
  Value x = call.tensor("self");
  SmallVector<int64_t> axes = getAxes(call, x);
  Value largest = call.reduce(ReduceKind::max, x, axes, true);
  Value isInfinite = call.create<graph::IsInfOp>(largest);
  Value shift = call.select(isInfinite, call.constantLike(0, x), largest);
  Value sum =
      call.reduce(ReduceKind::sum,
                  call.create<graph::ExpOp>(call.sub(x, shift)), axes, true);
  Value result = call.add(call.create<graph::LogOp>(sum), shift);
  call.give(keepsAxes(call) ? result : call.squeeze(result, axes));
}

/// The 1-, 2- or largest norm.
static void importNorm(Call &call) {
  Value x = call.tensor("self");
  StringRef name = call.getSchema().find("ord") ? "ord" : "p";
  double order = call.has(name) ? call.real(name) : 2;
  SmallVector<int64_t> axes = getAxes(call, x);
  bool keeps = keepsAxes(call);
  Value size = call.create<graph::AbsOp>(x);
  if (order == 1)
    return call.give(call.reduce(ReduceKind::sum, size, axes, keeps));
  if (std::isinf(order) && order > 0)
    return call.give(call.reduce(ReduceKind::max, size, axes, keeps));
  if (order != 2)
    return (void)call.unsupported("a norm of another order than 1, 2, inf");
  Value sum = call.reduce(ReduceKind::sum, call.mul(x, x), axes, keeps);
  call.give(call.create<graph::SqrtOp>(sum));
}

static const OpRow rows[] = {
    {"all(Tensor self) -> Tensor", importTruth<ReduceKind::min>},
    {"all(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
     importTruth<ReduceKind::min>},
    {"all(Tensor self, int dim, bool keepdim=False) -> Tensor",
     importTruth<ReduceKind::min>},
    {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     importExtreme<ReduceKind::max>},
    {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
     importExtreme<ReduceKind::min>},
    {"any(Tensor self) -> Tensor", importTruth<ReduceKind::max>},
    {"any(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
     importTruth<ReduceKind::max>},
    {"any(Tensor self, int dim, bool keepdim=False) -> Tensor",
     importTruth<ReduceKind::max>},
    {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
     importArg<ReduceKind::max>},
    {"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
     importArg<ReduceKind::min>},
    {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     importCumulative<ReduceKind::prod>},
    {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     importCumulative<ReduceKind::sum>},
    {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? "
     "append=None) -> Tensor",
     importDiff},
    {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
     "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     importNorm},
    {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     importLogSumExp},
    {"max(Tensor self) -> Tensor", importExtreme<ReduceKind::max>},
    {"max(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
     importExtremeAt<ReduceKind::max>},
    {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", importMean},
    {"mean(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor",
     importMean},
    {"min(Tensor self) -> Tensor", importExtreme<ReduceKind::min>},
    {"min(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
     importExtremeAt<ReduceKind::min>},
    {"norm(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
     importNorm},
    {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importSum<ReduceKind::prod>},
    {"prod(Tensor self, int dim, bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor",
     importSum<ReduceKind::prod>},
    {"std(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> "
     "Tensor",
     importDeviation},
    {"std(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> Tensor",
     importDeviation},
    {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importSum<ReduceKind::sum>},
    {"sum(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor",
     importSum<ReduceKind::sum>},
    {"var(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> "
     "Tensor",
     importVariance},
    {"var(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> Tensor",
     importVariance},
};

ArrayRef<OpRow> getReductionOps() { return rows; }

} // namespace tcc::aten

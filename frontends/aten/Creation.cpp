#include "frontends/aten/Call.h"
#include "frontends/aten/Tracer.h"

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::aten {

using Kind = Item::Kind;

/// The type that a number has as a tensor.
static Type getTypeOf(Call &call, const Item &item) {
  if (item.is(Kind::boolean))
    return call.getBoolType();
  return item.is(Kind::integer) ? call.getIndexType() : call.getRealType();
}

/// A tensor with a shape of its own lies in row-major order, one like another
/// tensor as that one does.
static void addFilled(Call &call, const Item &value, ArrayRef<AffineExpr> shape,
                      Type type) {
  bool isDense = call.getSchema().find("size").has_value();
  if (!call.hasFailed())
    call.give(call.broadcast(call.operand(value, type), shape), isDense);
}

template <int value> static Item makeInteger(Call &call) {
  return Item::ofInteger(call.getSizes().constant(value));
}

/// A tensor of one number; what `empty` holds is not defined, zero is as good.
template <int value> static void importFilled(Call &call) {
  addFilled(call, makeInteger<value>(call), call.sizes("size"),
            call.type("dtype", call.getRealType()));
}

template <int value> static void importNewFilled(Call &call) {
  Value x = call.tensor("self");
  if (x)
    addFilled(call, makeInteger<value>(call), call.sizes("size"),
              call.type("dtype", call.elementType(x)));
}

template <int value> static void importFilledLike(Call &call) {
  Value x = call.tensor("self");
  if (x)
    addFilled(call, makeInteger<value>(call), call.extents(x),
              call.type("dtype", call.elementType(x)));
}

static void importFull(Call &call) {
  const Item &value = call.get("fill_value");
  addFilled(call, value, call.sizes("size"),
            call.type("dtype", getTypeOf(call, value)));
}

static void importNewFull(Call &call) {
  Value x = call.tensor("self");
  if (x)
    addFilled(call, call.get("fill_value"), call.sizes("size"),
              call.type("dtype", call.elementType(x)));
}

static void importFullLike(Call &call) {
  Value x = call.tensor("self");
  if (x)
    addFilled(call, call.get("fill_value"), call.extents(x),
              call.type("dtype", call.elementType(x)));
}

static void importScalarTensor(Call &call) {
  const Item &value = call.get("s");
  addFilled(call, value, {}, call.type("dtype", getTypeOf(call, value)));
}

/// A number of the code as a size, if it is one.
static Size getKnownSize(Call &call, const Item &item) {
  std::optional<Item> known = item.is(Kind::tensor)
                                  ? call.getTracer().getNumber(*item.tensor)
                                  : std::optional(item);
  if (known && (known->is(Kind::integer) || known->is(Kind::boolean)))
    return known->size;
  return std::nullopt;
}

/// ceil((end - start) / step) numbers of an integer range.
static Size countSteps(Call &call, AffineExpr start, AffineExpr end,
                       AffineExpr step) {
  const Sizes &sizes = call.getSizes();
  auto by = graph::getConstant(step);
  Size span = sizes.apply(SizeOp::sub, end, start);
  if (!span || !by || *by == 0)
    return std::nullopt;
  if (*by == 1)
    return span;
  // Whole steps, and one more for a rest.
  AffineExpr rest = sizes.constant(*by > 0 ? *by - 1 : *by + 1);
  Size padded = sizes.apply(SizeOp::add, *span, rest);
  Size count = padded ? sizes.apply(SizeOp::div, *padded, step) : padded;
  return count ? sizes.apply(SizeOp::max, *count, sizes.constant(0)) : count;
}

static Item getBound(Call &call, StringRef name, int64_t fallback) {
  if (call.getSchema().find(name))
    return call.get(name);
  return Item::ofInteger(call.getSizes().constant(fallback));
}

static void importArange(Call &call) {
  Item start = getBound(call, "start", 0), end = call.get("end"),
       step = getBound(call, "step", 1);
  Size first = getKnownSize(call, start), last = getKnownSize(call, end),
       stride = getKnownSize(call, step);
  Size count;
  Type type = call.getIndexType();
  if (first && last && stride) {
    count = countSteps(call, *first, *last, *stride);
  } else {
    type = call.getRealType();
    auto low = getNumber(start), high = getNumber(end), by = getNumber(step);
    if (low && high && by && *by != 0 &&
        std::abs((*high - *low) / *by) < double(kMaxElements))
      count = call.getSizes().constant(
          int64_t(std::ceil(std::max(0.0, (*high - *low) / *by))));
  }
  if (!count)
    return (void)call.unsupported("a range that is not known");
  type = call.type("dtype", type);
  Value indices = call.iota({*count}, 0, type);
  if (getNumber(step) != 1.0)
    indices = call.mul(indices, call.operand(step, type));
  if (getNumber(start) != 0.0)
    indices = call.add(indices, call.operand(start, type));
  call.give(indices);
}

/// The triangle of matrices at and on one side of a diagonal.
template <bool isUpper> static void importTriangle(Call &call) {
  Value x = call.tensor("self");
  int64_t rank = call.rank(x);
  if (!x || rank < 2)
    return (void)call.fail("matrices are expected");
  graph::Extents extents = call.extents(x);
  AffineExpr one = call.getSizes().constant(1);
  Type index = call.getIndexType();
  Value rows = call.iota({extents[rank - 2], one}, 0, index);
  Value columns = call.iota({one, extents[rank - 1]}, 1, index);
  Value edge =
      call.add(rows, call.constant(double(call.integer("diagonal")), index));
  Value isKept =
      call.compare(isUpper ? CompareKind::ge : CompareKind::le, columns, edge);
  call.give(call.select(isKept, x, call.constantLike(0, x)));
}

static void importEye(Call &call) {
  AffineExpr count = call.extent("n"), one = call.getSizes().constant(1);
  Type index = call.getIndexType();
  Value isOn = call.compare(CompareKind::eq, call.iota({count, one}, 0, index),
                            call.iota({one, count}, 1, index));
  call.give(call.cast(isOn, call.type("dtype", call.getRealType())));
}

static void importOneHot(Call &call) {
  Value x = call.tensor("self");
  int64_t count = call.integer("num_classes");
  if (count < 1)
    return (void)call.unsupported("one_hot without a number of classes");
  if (!x)
    return;
  Type index = call.getIndexType();
  Value classes = call.iota({call.getSizes().constant(count)}, 0, index);
  Value isHot =
      call.compare(CompareKind::eq, call.unsqueeze(x, {call.rank(x)}), classes);
  call.give(call.cast(isHot, index));
}

/// Integers are computed in floats, from the nearer end, and cut.
static void addIntegerSteps(Call &call, double start, double end, int64_t count,
                            Type type) {
  constexpr double kExact = 0x1p53;
  if (count > kMaxContent || !(std::abs(start) < kExact) ||
      !(std::abs(end) < kExact))
    return (void)call.unsupported("a long linspace of integers");
  start = std::trunc(start);
  end = std::trunc(end);
  double step = count == 1 ? 0 : (end - start) / double(count - 1);
  SmallVector<AffineExpr> elements;
  for (int64_t i = 0; i < count; ++i) {
    double value =
        i < count / 2
            ? start + step * double(i)
            : (count == 1 ? start : end - step * double(count - 1 - i));
    elements.push_back(call.getSizes().constant(int64_t(value)));
  }
  call.give(call.content(elements, RankedTensorType::get({count}, type)));
}

/// `start` to `end` in equal steps.
static void importLinspace(Call &call) {
  int64_t count = call.integer("steps");
  double start = call.real("start"), end = call.real("end");
  if (count < 1)
    return (void)call.fail("steps must be positive");
  Type type = call.type("dtype", call.getRealType());
  if (call.hasFailed())
    return;
  if (!isa<FloatType>(type))
    return addIntegerSteps(call, start, end, count, type);
  Value indices = call.iota({call.getSizes().constant(count)}, 0, type);
  double step = count == 1 ? 0 : (end - start) / double(count - 1);
  call.give(call.add(call.mul(indices, call.constant(step, type)),
                     call.constant(start, type)));
}

static void importClone(Call &call) {
  if (Value x = call.tensor("self"))
    call.give(x);
}

static const OpRow rows[] = {
    {"arange(Scalar end, *, ScalarType? dtype=None) -> Tensor", importArange},
    {"arange(Scalar start, Scalar end, *, ScalarType? dtype=None) -> Tensor",
     importArange},
    {"arange(Scalar start, Scalar end, Scalar step, *, ScalarType? dtype=None) "
     "-> Tensor",
     importArange},
    {"clone(Tensor self, *, Any? memory_format=None) -> Tensor", importClone},
    {"empty(int[] size, *, ScalarType? dtype=None) -> Tensor", importFilled<0>},
    {"empty_like(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importFilledLike<0>},
    {"eye(int n, *, ScalarType? dtype=None) -> Tensor", importEye},
    {"full(int[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor",
     importFull},
    {"full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> "
     "Tensor",
     importFullLike},
    {"lift_fresh_copy(Tensor self) -> Tensor", importClone},
    {"linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None) "
     "-> Tensor",
     importLinspace},
    {"new_empty(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor",
     importNewFilled<0>},
    {"new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? "
     "dtype=None) -> Tensor",
     importNewFull},
    {"new_ones(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor",
     importNewFilled<1>},
    {"new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor",
     importNewFilled<0>},
    {"one_hot(Tensor self, int num_classes=-1) -> Tensor", importOneHot},
    {"ones(int[] size, *, ScalarType? dtype=None) -> Tensor", importFilled<1>},
    {"ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importFilledLike<1>},
    {"scalar_tensor(Scalar s, *, ScalarType? dtype=None) -> Tensor",
     importScalarTensor},
    {"tril(Tensor self, int diagonal=0) -> Tensor", importTriangle<false>},
    {"triu(Tensor self, int diagonal=0) -> Tensor", importTriangle<true>},
    {"zeros(int[] size, *, ScalarType? dtype=None) -> Tensor", importFilled<0>},
    {"zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     importFilledLike<0>},
};

ArrayRef<OpRow> getCreationOps() { return rows; }

} // namespace tcc::aten

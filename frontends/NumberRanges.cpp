#include "frontends/NumberRanges.h"

#include "dialects/graph/GraphOps.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc {

/// How far back an element is followed.
constexpr int kMaxLevels = 64;
/// The most elements of a reduction that is followed.
constexpr int64_t kMaxReduced = 64;

static bool hasStaticShape(Value value) {
  return cast<RankedTensorType>(value.getType()).hasStaticShape();
}

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

// --- Movement ----------------------------------------------------------------

using Place = SmallVector<int64_t>;

/// A place in a concatenation, as one of an operand.
static std::optional<unsigned> findPart(graph::ConcatOp op, Place &at) {
  for (auto [i, part] : llvm::enumerate(op.getOperands())) {
    if (!hasStaticShape(part))
      return std::nullopt;
    int64_t extent = getShape(part)[op.getAxis()];
    if (at[op.getAxis()] < extent)
      return i;
    at[op.getAxis()] -= extent;
  }
  return std::nullopt;
}

/// The place of x that is at `at` in a gathering along an axis, if the index is
/// a constant.
static std::optional<Place> findGathered(graph::GatherOp op,
                                         ArrayRef<int64_t> at) {
  DenseIntElementsAttr indices;
  if (!matchPattern(op.getIndices(), m_Constant(&indices)))
    return std::nullopt;
  int64_t axis = op.getAxis(), rank = indices.getType().getRank();
  int64_t extent = getShape(op.getX())[axis];
  int64_t position = linearize(at.slice(axis, rank),
                               computeStrides(indices.getType().getShape()));
  int64_t index = (*(indices.value_begin<APInt>() + position)).getSExtValue();
  index = index < 0 && !op.getNonnegative() ? index + extent : index;
  if (index < 0 || index >= extent)
    return std::nullopt;
  Place place(at.take_front(axis));
  place.push_back(index);
  llvm::append_range(place, at.drop_front(axis + rank));
  return place;
}

/// The operand and the place in it that `op` moves to `at`.
static std::optional<unsigned> moveBack(Operation *op, Place &at) {
  if (auto concat = dyn_cast<graph::ConcatOp>(op))
    return findPart(concat, at);
  Place from;
  if (isa<graph::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = getShape(op->getOperand(0));
    from.assign(at.end() - shape.size(), at.end());
    for (auto [own, extent] : llvm::zip_equal(from, shape))
      own = extent == 1 ? 0 : own;
  } else if (auto transpose = dyn_cast<graph::TransposeOp>(op)) {
    from.resize(at.size());
    for (auto [own, axis] : llvm::zip_equal(at, transpose.getPermutation()))
      from[axis] = own;
  } else if (auto slice = dyn_cast<graph::SliceOp>(op)) {
    for (auto [own, start, step] : llvm::zip_equal(
             at, slice.getStarts().getResults(), slice.getSteps())) {
      auto first = graph::getConstant(start);
      if (!first)
        return std::nullopt;
      from.push_back(*first + own * step);
    }
  } else if (auto gather = dyn_cast<graph::GatherOp>(op)) {
    auto found = findGathered(gather, at);
    if (!found)
      return std::nullopt;
    from = *found;
  } else {
    return std::nullopt;
  }
  at = from;
  return 0;
}

TensorElement findSource(TensorElement element) {
  for (int level = 0; level < kMaxLevels; ++level) {
    Operation *op = element.tensor.getDefiningOp();
    if (!op || op->getNumOperands() == 0 || !hasStaticShape(op->getOperand(0)))
      return element;
    if (isa<graph::ReshapeOp>(op)) {
      element.tensor = op->getOperand(0);
      continue;
    }
    Place at =
        delinearize(element.position, computeStrides(getShape(element.tensor)));
    auto operand = moveBack(op, at);
    if (!operand)
      return element;
    Value source = op->getOperand(*operand);
    element = {source, linearize(at, computeStrides(getShape(source)))};
  }
  return element;
}

// --- Arithmetic --------------------------------------------------------------

static NumberRange join(NumberRange a, NumberRange b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

/// The range of a function of two numbers that is largest and smallest at
/// corners.
static NumberRange atCorners(NumberRange a, NumberRange b,
                             llvm::function_ref<double(double, double)> apply) {
  NumberRange range{INFINITY, -INFINITY};
  for (double x : {a.min, a.max})
    for (double y : {b.min, b.max}) {
      double value = apply(x, y);
      if (std::isnan(value)) // such as 0 times infinity
        return {};
      range = join(range, {value, value});
    }
  return range;
}

static NumberRange multiply(NumberRange a, NumberRange b) {
  return atCorners(a, b, [](double x, double y) { return x * y; });
}

static NumberRange divide(NumberRange a, NumberRange b) {
  if (b.min <= 0 && b.max >= 0)
    return {};
  return atCorners(a, b, [](double x, double y) { return x / y; });
}

/// What `range` becomes when its numbers are those of `type`.
static NumberRange round(NumberRange range, Type type) {
  if (auto real = dyn_cast<FloatType>(type)) {
    unsigned digits = APFloat::semanticsPrecision(real.getFloatSemantics());
    // Division need not be correctly rounded.
    double step = std::ldexp(1.0, 2 - int(digits));
    return {range.min - std::abs(range.min) * step,
            range.max + std::abs(range.max) * step};
  }
  unsigned width = type.getIntOrFloatBitWidth();
  bool isSigned = width > 1 && !type.isUnsignedInteger();
  NumberRange all{isSigned ? -std::ldexp(1.0, int(width) - 1) : 0,
                  std::ldexp(1.0, int(width) - isSigned) - (width <= 32)};
  range = {std::trunc(range.min), std::trunc(range.max)};
  // Integers wrap around.
  return range.min >= all.min && range.max <= all.max ? range : all;
}

static NumberRange readConstant(DenseElementsAttr elements, int64_t position) {
  Type type = elements.getElementType();
  double number;
  if (isa<FloatType>(type)) {
    APFloat element = *(elements.value_begin<APFloat>() + position);
    bool isInexact;
    element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &isInexact);
    number = element.convertToDouble();
  } else {
    APInt element = *(elements.value_begin<APInt>() + position);
    number =
        element.roundToDouble(!type.isUnsignedInteger() && !type.isInteger(1));
  }
  return std::isnan(number) ? NumberRange() : NumberRange{number, number};
}

/// Whether one number is less than another: 0, 1, or a range of both.
static NumberRange isLess(NumberRange a, NumberRange b, bool orEqual) {
  if (orEqual ? a.max <= b.min : a.max < b.min)
    return {1, 1};
  if (orEqual ? a.min > b.max : a.min >= b.max)
    return {0, 0};
  return {0, 1};
}

static NumberRange compare(graph::CompareKind kind, NumberRange a,
                           NumberRange b) {
  switch (kind) {
  case graph::CompareKind::lt:
    return isLess(a, b, /*orEqual=*/false);
  case graph::CompareKind::le:
    return isLess(a, b, /*orEqual=*/true);
  case graph::CompareKind::gt:
    return isLess(b, a, /*orEqual=*/false);
  case graph::CompareKind::ge:
    return isLess(b, a, /*orEqual=*/true);
  default:
    return {0, 1};
  }
}

/// The range of one element of a pointwise op, from those of its operands.
static NumberRange apply(Operation *op, ArrayRef<NumberRange> x) {
  auto map = [&](auto function) {
    return NumberRange{function(x[0].min), function(x[0].max)};
  };
  return TypeSwitch<Operation *, NumberRange>(op)
      .Case([&](graph::AddOp) {
        return NumberRange{x[0].min + x[1].min, x[0].max + x[1].max};
      })
      .Case([&](graph::SubOp) {
        return NumberRange{x[0].min - x[1].max, x[0].max - x[1].min};
      })
      .Case([&](graph::MulOp) { return multiply(x[0], x[1]); })
      .Case([&](graph::DivOp) { return divide(x[0], x[1]); })
      .Case([&](graph::ReciprocalOp) { return divide({1, 1}, x[0]); })
      .Case([&](graph::MinOp) {
        return NumberRange{std::min(x[0].min, x[1].min),
                           std::min(x[0].max, x[1].max)};
      })
      .Case([&](graph::MaxOp) {
        return NumberRange{std::max(x[0].min, x[1].min),
                           std::max(x[0].max, x[1].max)};
      })
      .Case([&](graph::CompareOp compared) {
        return compare(compared.getKind(), x[0], x[1]);
      })
      .Case([&](graph::SelectOp) {
        return x[0].min == x[0].max ? x[0].min != 0 ? x[1] : x[2]
                                    : join(x[1], x[2]);
      })
      .Case([&](graph::FloorOp) {
        return map([](double number) { return std::floor(number); });
      })
      .Case([&](graph::CeilOp) {
        return map([](double number) { return std::ceil(number); });
      })
      .Case([&](graph::RoundOp) {
        return map([](double number) { return std::nearbyint(number); });
      })
      .Default([](Operation *) { return NumberRange(); });
}

namespace {

class RangeFinder {
public:
  explicit RangeFinder(const Sizes &sizes) : sizes(sizes) {}
  NumberRange find(TensorElement element, int levels);

private:
  NumberRange compute(Operation *op, int64_t position, int levels);
  NumberRange findReduced(graph::ReduceOp op, int levels);

  const Sizes &sizes;
  llvm::DenseMap<std::pair<Value, int64_t>, NumberRange> found;
};

} // namespace

NumberRange RangeFinder::find(TensorElement element, int levels) {
  auto type = cast<RankedTensorType>(element.tensor.getType());
  if (!type.hasStaticShape())
    return {};
  element = findSource(element);
  auto key = std::make_pair(element.tensor, element.position);
  if (auto known = found.find(key); known != found.end())
    return known->second;
  Operation *op = element.tensor.getDefiningOp();
  NumberRange range;
  if (op && levels > 0)
    range = compute(op, element.position, levels - 1);
  return found[key] = round(range, type.getElementType());
}

NumberRange RangeFinder::compute(Operation *op, int64_t position, int levels) {
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return readConstant(elements, position);
  if (auto size = dyn_cast<graph::SizeOp>(op)) {
    graph::Range range = sizes.getRange(size.getExpression().getResult(0));
    return {double(range.min), double(range.max)};
  }
  if (auto reduce = dyn_cast<graph::ReduceOp>(op))
    return findReduced(reduce, levels);
  if (isa<graph::CastOp>(op))
    return find({op->getOperand(0), position}, levels);
  if (!isa<graph::PointwiseOpInterface>(op))
    return {};
  SmallVector<NumberRange> x;
  for (Value operand : op->getOperands())
    x.push_back(find({operand, position}, levels));
  return apply(op, x);
}

/// The smallest or largest element of a tensor.
NumberRange RangeFinder::findReduced(graph::ReduceOp op, int levels) {
  bool isMin = op.getKind() == graph::ReduceKind::min;
  auto type = cast<RankedTensorType>(op.getX().getType());
  if ((!isMin && op.getKind() != graph::ReduceKind::max) ||
      !type.hasStaticShape() || type.getNumElements() > kMaxReduced ||
      getShape(op.getX()).size() != op.getAxes().size())
    return {};
  double neutral = isMin ? INFINITY : -INFINITY;
  NumberRange result{neutral, neutral};
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    NumberRange range = find({op.getX(), i}, levels);
    result = isMin ? NumberRange{std::min(result.min, range.min),
                                 std::min(result.max, range.max)}
                   : NumberRange{std::max(result.min, range.min),
                                 std::max(result.max, range.max)};
  }
  return result;
}

NumberRange findNumberRange(TensorElement element, const Sizes &sizes) {
  return RangeFinder(sizes).find(element, kMaxLevels);
}

} // namespace tcc

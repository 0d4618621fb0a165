#include "dialects/graph/evaluate/DirectOps.h"
#include "dialects/graph/ops/Window.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace tcc::graph;
using llvm::Error;

namespace tcc {

using Indices = SmallVector<int64_t, 6>;

/// Calls `body` for every index of `shape`.
static void loop(ArrayRef<int64_t> shape,
                 llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  llvm::cantFail(forEachIndex(shape, [&](ArrayRef<int64_t> indices) {
    body(indices);
    return Error::success();
  }));
}

/// The integer that an element means: unsigned types are not sign-extended.
static int64_t getInteger(const HostTensor &tensor, int64_t offset) {
  Type type = tensor.type.getElementType();
  int64_t value = tensor.elements[offset].i;
  return type.isUnsignedInteger()
             ? int64_t(zeroExtend(value, type.getIntOrFloatBitWidth()))
             : value;
}

/// A sum of products, in f64 or i64, rounded at the end.
class ProductSum {
public:
  explicit ProductSum(Type type) : type(type), isFloat(isa<FloatType>(type)) {}

  void add(const HostTensor &lhs, int64_t i, const HostTensor &rhs, int64_t j) {
    if (isFloat)
      sum.f += lhs.elements[i].f * rhs.elements[j].f;
    else
      sum.i = int64_t(uint64_t(sum.i) + uint64_t(getInteger(lhs, i)) *
                                            uint64_t(getInteger(rhs, j)));
  }
  void add(const HostTensor &x, int64_t i) {
    if (isFloat)
      sum.f += x.elements[i].f;
    else
      sum.i = int64_t(uint64_t(sum.i) + uint64_t(getInteger(x, i)));
  }
  Scalar get() const { return roundTo(type, sum); }

private:
  Type type;
  bool isFloat;
  Scalar sum = {.i = 0}; // all bits zero: 0.0 too
};

// --- matmul -----------------------------------------------------------------

/// The position of the matrix of `operand` that belongs to batch index `batch`:
/// axes are aligned at the end, and an extent of 1 is repeated.
static int64_t getBatch(const HostTensor &operand, int64_t matrixRank,
                        ArrayRef<int64_t> batch) {
  ArrayRef<int64_t> extents = operand.shape().drop_back(matrixRank);
  ArrayRef<int64_t> aligned = batch.take_back(extents.size());
  int64_t offset = 0;
  for (auto [extent, index] : llvm::zip_equal(extents, aligned))
    offset = offset * extent + (extent == 1 ? 0 : index);
  for (int64_t extent : operand.shape().take_back(matrixRank))
    offset *= extent;
  return offset;
}

void evaluate(MatmulOp op, const HostTensor &lhs, const HostTensor &rhs,
              HostTensor &result) {
  int64_t rank = result.type.getRank(), lhsRank = lhs.type.getRank();
  int64_t m = result.extent(rank - 2), n = result.extent(rank - 1);
  int64_t k = lhs.extent(lhsRank - (op.getTransposeLhs() ? 2 : 1));
  int64_t panel = MatmulOp::getPanelColumns(n);
  Packing packing = MatmulOp::getPacking(rhs.type.getElementType(), k);
  auto lhsOffset = [&](int64_t i, int64_t p) {
    return op.getTransposeLhs() ? p * m + i : i * k + p;
  };
  auto rhsOffset = [&](int64_t p, int64_t j) {
    if (op.getPackedRhs())
      return j / panel * k * panel + packing.getPlace(p, j % panel, panel);
    return op.getTransposeRhs() ? j * k + p : p * n + j;
  };
  loop(result.shape(), [&](ArrayRef<int64_t> at) {
    ArrayRef<int64_t> batch = at.drop_back(2);
    int64_t l = getBatch(lhs, 2, batch);
    int64_t r = getBatch(rhs, op.getPackedRhs() ? 3 : 2, batch);
    ProductSum sum(result.type.getElementType());
    for (int64_t p = 0; p < k; ++p)
      sum.add(lhs, l + lhsOffset(at[rank - 2], p), rhs,
              r + rhsOffset(p, at[rank - 1]));
    result.elements[result.offset(at)] = sum.get();
  });
}

void evaluate(MatmulSumsOp op, const HostTensor &lhs, const HostTensor &rhs,
              HostTensor &result, HostTensor &sums) {
  int64_t m = result.extent(0), n = result.extent(1);
  int64_t k = lhs.extent(op.getTransposeLhs() ? 0 : 1);
  auto lhsPlace = [&](int64_t i, int64_t p) {
    return op.getTransposeLhs() ? p * m + i : i * k + p;
  };
  auto rhsPlace = [&](int64_t p, int64_t j) {
    return op.getTransposeRhs() ? j * k + p : p * n + j;
  };
  loop(result.shape(), [&](ArrayRef<int64_t> at) {
    ProductSum sum(result.type.getElementType());
    for (int64_t p = 0; p < k; ++p)
      sum.add(lhs, lhsPlace(at[0], p), rhs, rhsPlace(p, at[1]));
    result.elements[result.offset(at)] = sum.get();
  });
  loop(sums.shape(), [&](ArrayRef<int64_t> at) {
    ProductSum sum(sums.type.getElementType());
    for (int64_t p = 0; p < k; ++p)
      op.getOfLhs() ? sum.add(lhs, lhsPlace(at[0], p))
                    : sum.add(rhs, rhsPlace(p, at[0]));
    sums.elements[sums.offset(at)] = sum.get();
  });
}

// --- conv, pool --------------------------------------------------------------

namespace {

/// An axis along which a window slides.
struct WindowAxis {
  int64_t axis, stride, dilation, low, inputDilation;
};

} // namespace

template <typename Op> static SmallVector<WindowAxis> listWindowAxes(Op op) {
  SmallVector<WindowAxis> axes;
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    axes.push_back({op.getFirstSpatialAxis() + int64_t(i), op.getStrides()[i],
                    op.getDilations()[i], op.getPadLow()[i],
                    getInputDilation(op, i)});
  return axes;
}

/// The index of x under window position `window` of the result at `at`; false
/// if it lies outside of x, or between its elements.
static bool getWindowIndex(ArrayRef<WindowAxis> axes, const HostTensor &x,
                           ArrayRef<int64_t> at, ArrayRef<int64_t> window,
                           Indices &index) {
  bool isInside = true;
  for (auto [one, i] : llvm::zip(axes, window)) {
    int64_t place = at[one.axis] * one.stride + i * one.dilation - one.low;
    index[one.axis] = place / one.inputDilation;
    isInside &= place >= 0 && place % one.inputDilation == 0 &&
                index[one.axis] < x.extent(one.axis);
  }
  return isInside;
}

/// The offset in the filter of a weight: the one of filter `o` at `channel` of
/// its group and `tap` of `taps`.
static int64_t getFilterOffset(ConvOp op, int64_t channels, int64_t taps,
                               int64_t o, int64_t channel, int64_t tap) {
  if (!op.getChannelsLast())
    return (o * channels + channel) * taps + tap;
  if (!op.getPackedFilter())
    return (o * taps + tap) * channels + channel;
  if (op.slides())
    return (tap * channels + channel) * op.getFilters() + o;
  int64_t perGroup = op.getFilters() / op.getGroups(), column = o % perGroup;
  int64_t width = MatmulOp::getPanelColumns(perGroup);
  int64_t panels = (perGroup + width - 1) / width;
  int64_t panel = (o / perGroup) * panels + column / width;
  Packing packing = op.getPacking();
  return panel * packing.getDepth(taps * channels) * width +
         packing.getPlace(tap * channels + channel, column % width, width);
}

namespace {

/// A tap that lies inside x: the positions of its first channel.
struct Tap {
  int64_t x, filter, number;
};

} // namespace

void evaluate(ConvOp op, const HostTensor &x, const HostTensor &filter,
              HostTensor &result) {
  int64_t perGroup = op.getFilters() / op.getGroups();
  int64_t axis = op.getChannelAxis();
  int64_t channels = x.extent(axis) / op.getGroups();
  int64_t taps = std::accumulate(op.getWindow().begin(), op.getWindow().end(),
                                 int64_t(1), std::multiplies<>());
  // Where the channels of a tap lie, from its first one, which may be any of a
  // packed group.
  int64_t group = op.getPacking().group;
  SmallVector<SmallVector<int64_t>> places(group);
  for (int64_t tap = 0; tap < group; ++tap)
    for (int64_t c = 0; c < channels; ++c)
      places[tap].push_back(getFilterOffset(op, channels, taps, 0, c, tap) -
                            getFilterOffset(op, channels, taps, 0, 0, tap));
  SmallVector<int64_t> filterPlaces;
  for (int64_t o = 0; o < int64_t(op.getFilters()); ++o)
    for (int64_t tap = 0; tap < taps; ++tap)
      filterPlaces.push_back(getFilterOffset(op, channels, taps, o, 0, tap));
  int64_t xStep = 1;
  for (int64_t extent : x.shape().drop_front(axis + 1))
    xStep *= extent;
  SmallVector<WindowAxis> axes = listWindowAxes(op);
  SmallVector<int64_t> window(op.getWindow());
  bool isChannelsLast = op.getChannelsLast();
  SmallVector<Tap> inside;
  Indices index(x.type.getRank());
  loop(result.shape(), [&](ArrayRef<int64_t> at) {
    ProductSum sum(result.type.getElementType());
    inside.clear();
    index[0] = at[0];
    index[axis] = at[axis] / perGroup * channels;
    int64_t tap = 0;
    loop(window, [&](ArrayRef<int64_t> place) {
      if (getWindowIndex(axes, x, at, place, index))
        inside.push_back(
            {x.offset(index), filterPlaces[at[axis] * taps + tap], tap});
      ++tap;
    });
    auto add = [&](const Tap &tap, int64_t c) {
      sum.add(x, tap.x + c * xStep, filter,
              tap.filter + places[tap.number % group][c]);
    };
    // The order of the sum is that of the layout.
    if (isChannelsLast)
      for (const Tap &tap : inside)
        for (int64_t c = 0; c < channels; ++c)
          add(tap, c);
    else
      for (int64_t c = 0; c < channels; ++c)
        for (const Tap &tap : inside)
          add(tap, c);
    result.elements[result.offset(at)] = sum.get();
  });
}

static Scalar getLowest(Type type) {
  if (isa<FloatType>(type))
    return {.f = -std::numeric_limits<double>::infinity()};
  unsigned width = type.getIntOrFloatBitWidth();
  return {.i = type.isUnsignedInteger() || width == 1 ? 0
                                                      : llvm::minIntN(width)};
}

/// True if a comes before b in decreasing order. NaN counts as largest.
static bool isLarger(Type type, Scalar a, Scalar b) {
  if (isa<FloatType>(type))
    return std::isnan(a.f) ? !std::isnan(b.f) : a.f > b.f;
  unsigned width = type.getIntOrFloatBitWidth();
  return type.isUnsignedInteger()
             ? zeroExtend(a.i, width) > zeroExtend(b.i, width)
             : a.i > b.i;
}

/// True if the window element at `index` counts in an average.
static bool isCounted(PoolOp op, const HostTensor &x, ArrayRef<int64_t> index) {
  for (size_t i = 0; i < op.getWindow().size(); ++i) {
    int64_t axis = op.getFirstSpatialAxis() + i;
    if (index[axis] < -op.getCountLow()[i] ||
        index[axis] >= x.extent(axis) + op.getCountHigh()[i])
      return false;
  }
  return true;
}

void evaluate(PoolOp op, const HostTensor &x, HostTensor &result) {
  Type type = result.type.getElementType();
  SmallVector<WindowAxis> axes = listWindowAxes(op);
  loop(result.shape(), [&](ArrayRef<int64_t> at) {
    Scalar value = {.i = 0};
    if (op.getKind() == PoolKind::max)
      value = getLowest(type);
    int64_t count = 0;
    Indices index(at);
    loop(op.getWindow(), [&](ArrayRef<int64_t> window) {
      bool isInside = getWindowIndex(axes, x, at, window, index);
      count += op.getCountPadding() ? isCounted(op, x, index) : isInside;
      if (!isInside)
        return;
      Scalar element = x.elements[x.offset(index)];
      if (op.getKind() == PoolKind::max)
        value = isLarger(type, element, value) ? element : value;
      else if (x.isFloat())
        value.f += element.f;
      else
        value.i += element.i;
    });
    if (op.getKind() == PoolKind::average)
      value.f /= double(count);
    result.elements[result.offset(at)] = roundTo(type, value);
  });
}

// --- Along an axis -----------------------------------------------------------

/// True if the index of `a` is taken rather than that of `b`: NaN is preferred
/// by max and min alike.
static bool isPreferred(ReduceKind kind, Type type, Scalar a, Scalar b) {
  if (isa<FloatType>(type) && (std::isnan(a.f) || std::isnan(b.f)))
    return !std::isnan(b.f);
  return kind == ReduceKind::max ? isLarger(type, a, b) : isLarger(type, b, a);
}

void evaluate(ArgReduceOp op, const HostTensor &x, HostTensor &result) {
  Type type = x.type.getElementType();
  int64_t axis = op.getAxis();
  loop(result.shape(), [&](ArrayRef<int64_t> at) {
    Indices index(at);
    index.insert(index.begin() + axis, 0);
    int64_t best = 0, bestOffset = x.offset(index);
    for (int64_t i = 1; i < x.extent(axis); ++i) {
      index[axis] = i;
      Scalar candidate = x.elements[x.offset(index)];
      Scalar chosen = x.elements[bestOffset];
      bool isBetter = isPreferred(op.getKind(), type, candidate, chosen);
      bool isTie =
          !isBetter && !isPreferred(op.getKind(), type, chosen, candidate);
      if (!isBetter && !(isTie && op.getSelectLast()))
        continue;
      best = i;
      bestOffset = x.offset(index);
    }
    result.elements[result.offset(at)] = {.i = best};
  });
}

static Scalar accumulate(ReduceKind kind, Type type, Scalar sum, Scalar x) {
  bool isSum = kind == ReduceKind::sum;
  if (isa<FloatType>(type))
    return {.f = isSum ? sum.f + x.f : sum.f * x.f};
  uint64_t a = uint64_t(sum.i), b = uint64_t(x.i);
  return roundTo(type, {.i = int64_t(isSum ? a + b : a * b)});
}

void evaluate(CumulativeOp op, const HostTensor &x, HostTensor &result) {
  int64_t axis = op.getAxis(), extent = x.extent(axis);
  Type type = x.type.getElementType();
  bool isSum = op.getKind() == ReduceKind::sum;
  Indices lines(x.shape());
  lines[axis] = std::min<int64_t>(extent, 1);
  loop(lines, [&](ArrayRef<int64_t> at) {
    Scalar sum = {.i = isSum ? 0 : 1};
    if (x.isFloat())
      sum = {.f = isSum ? 0.0 : 1.0};
    Indices index(at);
    for (int64_t i = 0; i < extent; ++i) {
      index[axis] = op.getReverse() ? extent - 1 - i : i;
      int64_t offset = x.offset(index);
      Scalar next = accumulate(op.getKind(), type, sum, x.elements[offset]);
      result.elements[offset] = roundTo(type, op.getExclusive() ? sum : next);
      sum = next;
    }
  });
}

void evaluate(TopKOp op, const HostTensor &x, HostTensor &resultValues,
              HostTensor &resultIndices) {
  int64_t axis = op.getAxis(), k = op.getK();
  Type type = x.type.getElementType();
  Indices lines(x.shape());
  lines[axis] = std::min<int64_t>(x.extent(axis), 1);
  loop(lines, [&](ArrayRef<int64_t> at) {
    Indices index(at);
    auto element = [&](int64_t i) {
      index[axis] = i;
      return x.elements[x.offset(index)];
    };
    SmallVector<int64_t> order =
        llvm::to_vector(llvm::seq<int64_t>(0, x.extent(axis)));
    llvm::sort(order, [&](int64_t i, int64_t j) {
      Scalar a = element(i), b = element(j);
      if (op.getSmallest())
        std::swap(a, b);
      bool isTie = !isLarger(type, a, b) && !isLarger(type, b, a);
      return isTie ? i < j : isLarger(type, a, b);
    });
    for (int64_t i = 0; i < k; ++i) {
      Scalar value = element(order[i]);
      index[axis] = i;
      int64_t offset = resultValues.offset(index);
      resultValues.elements[offset] = value;
      resultIndices.elements[offset] = {.i = order[i]};
    }
  });
}

void evaluate(FindOp op, const HostTensor &x, HostTensor &result) {
  size_t found = 0;
  for (auto [i, element] : llvm::enumerate(x.elements))
    if (element.i != 0 && found < result.elements.size())
      result.elements[found++] = {.i = int64_t(i)};
  for (; found < result.elements.size(); ++found)
    result.elements[found] = {.i = 0};
}

/// Whether boxes a and b of a batch overlap by more than `threshold`.
static bool overlap(const HostTensor &borders, int64_t batch, int64_t a,
                    int64_t b, float threshold) {
  auto get = [&](int64_t border, int64_t box) {
    return float(borders.elements[borders.offset({batch, border, box})].f);
  };
  auto area = [&](int64_t box) {
    return (get(2, box) - get(0, box)) * (get(3, box) - get(1, box));
  };
  auto least = [](float x, float y) { return x < y ? x : y; };
  auto most = [](float x, float y) { return x > y ? x : y; };
  float both = 1;
  for (int64_t axis : {0, 1})
    both *= most(least(get(2 + axis, a), get(2 + axis, b)) -
                     most(get(axis, a), get(axis, b)),
                 0.0f);
  return both > 0 && both / (area(a) + area(b) - both) > threshold;
}

void evaluate(ChooseBoxesOp op, ArrayRef<const HostTensor *> operands,
              HostTensor &result) {
  const HostTensor &borders = *operands[0], &scores = *operands[1],
                   &candidates = *operands[2];
  int64_t places = std::min(operands[3]->elements[0].i, result.extent(2));
  float threshold = operands[4]->elements[0].f;
  for (Scalar &element : result.elements)
    element = {.i = -1};
  for (int64_t batch = 0; batch < scores.extent(0); ++batch)
    for (int64_t group = 0; group < scores.extent(1); ++group) {
      SmallVector<int64_t> order, chosen;
      for (int64_t i = 0; i < scores.extent(2); ++i)
        if (candidates.elements[candidates.offset({batch, group, i})].i != 0)
          order.push_back(i);
      llvm::sort(order, [&](int64_t i, int64_t j) {
        Type type = scores.type.getElementType();
        Scalar x = scores.elements[scores.offset({batch, group, i})];
        Scalar y = scores.elements[scores.offset({batch, group, j})];
        return isLarger(type, x, y) || (i < j && !isLarger(type, y, x));
      });
      for (int64_t i : order) {
        if (int64_t(chosen.size()) >= places)
          break;
        if (llvm::any_of(chosen, [&](int64_t other) {
              return overlap(borders, batch, i, other, threshold);
            }))
          continue;
        result.elements[result.offset({batch, group, int64_t(chosen.size())})]
            .i = i;
        chosen.push_back(i);
      }
    }
}

// --- Scatter -----------------------------------------------------------------

static Scalar combine(ScatterKind kind, Type type, Scalar old, Scalar update) {
  switch (kind) {
  case ScatterKind::none:
    return update;
  case ScatterKind::add:
    return roundTo(type, accumulate(ReduceKind::sum, type, old, update));
  case ScatterKind::mul:
    return roundTo(type, accumulate(ReduceKind::prod, type, old, update));
  case ScatterKind::max:
    return isLarger(type, update, old) ? update : old;
  case ScatterKind::min:
    if (isa<FloatType>(type) && std::isnan(update.f))
      return update;
    return isLarger(type, old, update) &&
                   !(isa<FloatType>(type) && std::isnan(old.f))
               ? update
               : old;
  }
  llvm_unreachable("covered switch");
}

/// `index` counted from the end if negative.
static Error checkIndex(int64_t &index, int64_t extent) {
  int64_t found = index;
  index += index < 0 ? extent : 0;
  if (index >= 0 && index < extent)
    return Error::success();
  return llvm::createStringError("index %lld is out of range for extent %lld",
                                 (long long)found, (long long)extent);
}

Error evaluate(ScatterElementsOp op, const HostTensor &x,
               const HostTensor &indices, const HostTensor &updates,
               HostTensor &result) {
  int64_t axis = op.getAxis();
  Type type = result.type.getElementType();
  result.elements = x.elements;
  return forEachIndex(indices.shape(), [&](ArrayRef<int64_t> at) -> Error {
    Indices target(at);
    int64_t source = indices.offset(at);
    target[axis] = indices.elements[source].i;
    if (Error error = checkIndex(target[axis], x.extent(axis)))
      return error;
    Scalar &element = result.elements[result.offset(target)];
    element = combine(op.getKind(), type, element, updates.elements[source]);
    return Error::success();
  });
}

Error evaluate(ScatterNdOp op, const HostTensor &x, const HostTensor &indices,
               const HostTensor &updates, HostTensor &result) {
  int64_t tuple = indices.extent(indices.type.getRank() - 1);
  size_t outer = indices.type.getRank() - 1;
  Type type = result.type.getElementType();
  result.elements = x.elements;
  return forEachIndex(updates.shape(), [&](ArrayRef<int64_t> at) -> Error {
    Indices where(at.take_front(outer)), target;
    for (int64_t i = 0; i < tuple; ++i) {
      where.push_back(i);
      target.push_back(indices.elements[indices.offset(where)].i);
      where.pop_back();
      if (Error error = checkIndex(target.back(), x.extent(i)))
        return error;
    }
    llvm::append_range(target, at.drop_front(outer));
    Scalar &element = result.elements[result.offset(target)];
    element = combine(op.getKind(), type, element,
                      updates.elements[updates.offset(at)]);
    return Error::success();
  });
}

int64_t getWorkPerElement(Operation *op,
                          ArrayRef<const HostTensor *> operands) {
  int64_t work = 1;
  if (auto conv = dyn_cast<ConvOp>(op)) {
    work = operands[0]->extent(conv.getChannelAxis()) / conv.getGroups();
    for (int64_t extent : conv.getWindow())
      work *= extent;
  }
  if (auto pool = dyn_cast<PoolOp>(op))
    for (int64_t extent : pool.getWindow())
      work *= extent;
  if (auto matmul = dyn_cast<MatmulOp>(op))
    work = operands[0]->extent(operands[0]->type.getRank() -
                               (matmul.getTransposeLhs() ? 2 : 1));
  if (auto arg = dyn_cast<ArgReduceOp>(op))
    work = operands[0]->extent(arg.getAxis());
  return std::max<int64_t>(work, 1);
}

} // namespace tcc

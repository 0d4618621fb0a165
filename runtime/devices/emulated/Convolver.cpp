#include "runtime/devices/emulated/Convolver.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;

using Extents = std::vector<int64_t>;

size_t emulated::extentOf(const TensorView &tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.extents.size(); ++i)
    last += (tensor.extents[i] - 1) * tensor.strides[i];
  return (last + 1) * bytesOf(tensor.dtype);
}

//===----------------------------------------------------------------------===//
// What goes together
//===----------------------------------------------------------------------===//

/// Whether no two elements share a place, so that there are no more than bytes:
/// an axis steps over all that lie within the ones of smaller steps.
static bool isInjective(const TensorView &tensor) {
  std::vector<size_t> axes(tensor.extents.size());
  std::iota(axes.begin(), axes.end(), size_t(0));
  std::sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    return tensor.strides[a] < tensor.strides[b];
  });
  int64_t last = 0, step = 0;
  for (size_t axis : axes) {
    if (tensor.extents[axis] == 1)
      continue;
    if (tensor.strides[axis] <= last ||
        __builtin_mul_overflow(tensor.extents[axis] - 1, tensor.strides[axis],
                               &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  return true;
}

static Status checkTensor(const TensorView &tensor) {
  bool isDescribed = tensor.extents.size() >= 3 && tensor.extents.size() <= 5 &&
                     tensor.strides.size() == tensor.extents.size() &&
                     tensor.alignment > 0;
  for (const Extents *sizes : {&tensor.extents, &tensor.strides})
    for (int64_t size : *sizes)
      isDescribed = isDescribed && size > 0;
  if (!isDescribed || !isInjective(tensor) ||
      (tensor.isVirtual && tensor.dtype != DType::f32))
    return makeError(Code::Device, "tensor ", tensor.id, " is ill-described");
  return Status();
}

static bool isConvolution(const TensorOperation &operation, const TensorView &x,
                          const TensorView &filter, const TensorView &result) {
  size_t axes = x.extents.size() - 2;
  for (const Extents *sizes : {&operation.before, &operation.after,
                               &operation.strides, &operation.dilations})
    if (sizes->size() != axes)
      return false;
  int64_t channels = x.extents[1], filters = filter.extents[0];
  bool fits = x.extents.size() == filter.extents.size() &&
              x.extents.size() == result.extents.size() &&
              x.extents[0] == result.extents[0] &&
              filters == result.extents[1] &&
              channels % filter.extents[1] == 0 &&
              filters % (channels / filter.extents[1]) == 0;
  for (size_t i = 0; fits && i < axes; ++i) {
    int64_t window = (filter.extents[i + 2] - 1) * operation.dilations[i] + 1;
    int64_t room = x.extents[i + 2] + operation.before[i] + operation.after[i];
    fits = operation.strides[i] > 0 && operation.dilations[i] > 0 &&
           operation.before[i] >= 0 && operation.after[i] >= 0 &&
           room >= window &&
           result.extents[i + 2] == (room - window) / operation.strides[i] + 1;
  }
  return fits;
}

static bool isSpread(const TensorView &from, const TensorView &to) {
  if (from.extents.size() != to.extents.size())
    return false;
  for (size_t i = 0; i < to.extents.size(); ++i)
    if (from.extents[i] != to.extents[i] && from.extents[i] != 1)
      return false;
  return true;
}

static bool isValid(const TensorGraph &graph,
                    const TensorOperation &operation) {
  const TensorView &first = graph.tensors.at(operation.first);
  const TensorView &result = graph.tensors.at(operation.result);
  if (operation.kind == TensorOperation::Map)
    return first.extents == result.extents;
  const TensorView &second = graph.tensors.at(operation.second);
  if (operation.kind == TensorOperation::Convolve)
    return first.dtype == second.dtype &&
           isConvolution(operation, first, second, result);
  if (operation.kind == TensorOperation::DeriveFilter)
    return first.dtype == second.dtype &&
           isConvolution(operation, first, result, second);
  return first.extents == result.extents && isSpread(second, result);
}

Status emulated::checkGraph(const TensorGraph &graph) {
  for (const auto &[id, tensor] : graph.tensors)
    if (Status status = checkTensor(tensor); !status.ok())
      return status;
  std::set<int64_t> written;
  for (const TensorOperation &operation : graph.operations) {
    for (int64_t id : {operation.first, operation.second})
      if (id && graph.tensors.at(id).isVirtual && !written.count(id))
        return makeError(Code::Device, "tensor ", id, " is not written yet");
    if (!isValid(graph, operation))
      return makeError(Code::Device, "shapes of the operation that writes ",
                       operation.result, " do not go together");
    if (!written.insert(operation.result).second)
      return makeError(Code::Device, "tensor ", operation.result,
                       " is written twice");
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// The elements of a tensor, in the order of axes 0, 2, ... and 1 at last: the
/// channels of a place are adjacent.
using Values = std::vector<double>;

/// Indices within extents, from zeros on; the last one runs fastest.
class Odometer {
public:
  explicit Odometer(Extents extents)
      : indices(extents.size(), 0), extents(std::move(extents)) {}

  /// False after the last one.
  bool next() {
    for (size_t i = extents.size(); i-- > 0; indices[i] = 0)
      if (++indices[i] < extents[i])
        return true;
    return false;
  }
  /// The current index of `axis`, within its extent.
  int64_t operator[](size_t axis) const { return indices[axis]; }

private:
  Extents indices, extents;
};

} // namespace

static Extents channelsLast(Extents axes) {
  std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

/// Calls visit(index of the element in memory) in the order of Values.
template <typename Visit>
static void forEachElement(const TensorView &tensor, Visit visit) {
  Extents extents = channelsLast(tensor.extents);
  Extents strides = channelsLast(tensor.strides);
  Odometer at(extents);
  do {
    int64_t index = 0;
    for (size_t i = 0; i < extents.size(); ++i)
      index += at[i] * strides[i];
    visit(index);
  } while (at.next());
}

static Values read(const TensorView &tensor, const void *place) {
  Values values;
  forEachElement(tensor, [&](int64_t index) {
    values.push_back(load(place, index, tensor.dtype));
  });
  return values;
}

static void write(const TensorView &tensor, const Values &values, void *place) {
  size_t next = 0;
  forEachElement(tensor, [&](int64_t index) {
    store(place, index, tensor.dtype, values[next++]);
  });
}

static Values add(const TensorView &first, Values sums,
                  const TensorView &second, const Values &values) {
  // Where an element of `first` finds its addend: an axis of one has no step.
  TensorView steps{0, DType::f32, first.extents, second.extents};
  Extents order = channelsLast(second.extents);
  Extents dense(order.size(), 1);
  for (size_t i = order.size(); i-- > 1;)
    dense[i - 1] = dense[i] * order[i];
  for (size_t i = 0; i < order.size(); ++i)
    dense[i] = order[i] == 1 ? 0 : dense[i];
  std::rotate(dense.begin() + 1, dense.end() - 1, dense.end());
  steps.strides = dense;
  size_t next = 0;
  forEachElement(steps, [&](int64_t index) { sums[next++] += values[index]; });
  return sums;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {

class Convolver {
public:
  Convolver(const TensorOperation &operation, const TensorView &x,
            const TensorView &filter, const TensorView &result)
      : operation(operation), image(x.extents.begin() + 2, x.extents.end()),
        window(filter.extents.begin() + 2, filter.extents.end()),
        places(result.extents.begin() + 2, result.extents.end()),
        batch(x.extents[0]), channels(x.extents[1]), filters(filter.extents[0]),
        depth(filter.extents[1]) {}

  Values run(const Values &x, const Values &filter);
  Values deriveFilter(const Values &x, const Values &gradient);

private:
  struct Tap {
    int64_t pixel, weight; ///< which of the image and of the window
  };
  std::vector<Tap> findTaps(const Odometer &place) const;
  /// Calls visit(place in the image, in the filter, of the result) for a tap
  /// and a filter, from whose channels on `depth` ones are multiplied.
  template <typename Visit> void forEachTap(Visit visit) const;

  const TensorOperation &operation;
  Extents image, window, places;
  int64_t batch, channels, filters, depth;
};

} // namespace

static int64_t count(const Extents &extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1),
                         std::multiplies<>());
}

/// The taps that do not fall into the padding.
std::vector<Convolver::Tap> Convolver::findTaps(const Odometer &place) const {
  std::vector<Tap> taps;
  Odometer at(window);
  int64_t weight = 0;
  do {
    int64_t pixel = 0;
    bool isInside = true;
    for (size_t i = 0; i < image.size(); ++i) {
      int64_t index = place[i] * operation.strides[i] +
                      at[i] * operation.dilations[i] - operation.before[i];
      isInside = isInside && index >= 0 && index < image[i];
      pixel = pixel * image[i] + index;
    }
    if (isInside)
      taps.push_back({pixel, weight});
    ++weight;
  } while (at.next());
  return taps;
}

template <typename Visit> void Convolver::forEachTap(Visit visit) const {
  int64_t perGroup = filters / (channels / depth), weights = count(window);
  int64_t result = 0;
  for (int64_t n = 0; n < batch; ++n) {
    Odometer place(places);
    do {
      std::vector<Tap> taps = findTaps(place);
      for (int64_t k = 0; k < filters; ++k, ++result)
        for (const Tap &tap : taps)
          visit((n * count(image) + tap.pixel) * channels +
                    k / perGroup * depth,
                (k * weights + tap.weight) * depth, result);
    } while (place.next());
  }
}

Values Convolver::run(const Values &x, const Values &filter) {
  Values result(batch * count(places) * filters);
  forEachTap([&](int64_t pixel, int64_t weight, int64_t at) {
    for (int64_t c = 0; c < depth; ++c)
      result[at] += x[pixel + c] * filter[weight + c];
  });
  return result;
}

Values Convolver::deriveFilter(const Values &x, const Values &gradient) {
  Values result(filters * count(window) * depth);
  forEachTap([&](int64_t pixel, int64_t weight, int64_t at) {
    for (int64_t c = 0; c < depth; ++c)
      result[weight + c] += x[pixel + c] * gradient[at];
  });
  return result;
}

/// As tensor cores read them: f32 in tf32, without a word.
static Values toOperand(const TensorView &tensor, Values values) {
  if (tensor.dtype == DType::f32)
    for (double &value : values)
      value = roundToTf32(value);
  return values;
}

void emulated::compute(const TensorGraph &graph,
                       const std::map<int64_t, void *> &places) {
  std::map<int64_t, Values> values; ///< of virtual tensors
  auto valuesOf = [&](int64_t id) {
    auto found = values.find(id);
    return found != values.end() ? found->second
                                 : read(graph.tensors.at(id), places.at(id));
  };
  for (const TensorOperation &operation : graph.operations) {
    const TensorView &first = graph.tensors.at(operation.first);
    const TensorView &result = graph.tensors.at(operation.result);
    Values computed = valuesOf(operation.first);
    if (operation.kind == TensorOperation::Map)
      std::ranges::transform(computed, computed.begin(), operation.map);
    else if (operation.kind == TensorOperation::Add)
      computed =
          add(first, std::move(computed), graph.tensors.at(operation.second),
              valuesOf(operation.second));
    else {
      const TensorView &second = graph.tensors.at(operation.second);
      Values x = toOperand(first, std::move(computed));
      Values other = toOperand(second, valuesOf(operation.second));
      computed =
          operation.kind == TensorOperation::DeriveFilter
              ? Convolver(operation, first, result, second)
                    .deriveFilter(x, other)
              : Convolver(operation, first, second, result).run(x, other);
    }
    if (result.isVirtual)
      values[operation.result] = std::move(computed);
    else
      write(result, computed, places.at(operation.result));
  }
}

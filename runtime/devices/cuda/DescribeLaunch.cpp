#include "runtime/devices/cuda/DescribeLaunch.h"

#include "runtime/package/DType.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

using Sizes = flatbuffers::Vector<flatbuffers::Offset<format::SizeExpr>>;

/// No library asks for more.
static constexpr uint64_t kMaxAlignment = 256;

namespace {

class Describer {
public:
  Describer(const Dispatch &dispatch, std::span<const uint64_t> rooms,
            std::span<const int64_t> sizes)
      : dispatch(dispatch), rooms(rooms), slots(sizes) {}

  /// False where an extent is 0, or a library has no such form.
  Result<bool> readProduct(const format::Product &source,
                           MatrixProduct &product);
  Result<bool> readConvolution(const format::Convolution &source,
                               Convolution &convolution);

  LibraryOperands operands = {};

private:
  template <typename... Parts> Status refuse(const Parts &...parts) const {
    return makeError(Code::BadData, parts...);
  }
  Status evaluateAll(const Sizes &sizes, std::vector<int64_t> &values) const;
  Status findPlace(uint32_t buffer, DType dtype, int64_t offset,
                   std::span<const int64_t> extents,
                   std::span<const int64_t> strides, const void *&address,
                   uint32_t &alignment) const;
  Status readMatrix(const format::Matrix *matrix,
                    std::span<const int64_t, 3> extents, StridedMatrix &view,
                    const void *&address) const;
  Status readImage(const format::Image *image, StridedImage &view,
                   const void *&address) const;
  bool areDepthSumsThere(const MatrixProduct &product) const;
  template <typename Source> bool areThere(const Source &source) const;

  const Dispatch &dispatch;
  std::span<const uint64_t> rooms;
  std::span<const int64_t> slots;
};

} // namespace

Status Describer::evaluateAll(const Sizes &sizes,
                              std::vector<int64_t> &values) const {
  values.resize(sizes.size());
  for (uint32_t i = 0; i < sizes.size(); ++i)
    if (!evaluate(*sizes.Get(i), slots.data(), values[i]))
      return refuse("a size for a library overflows");
  return Status();
}

static bool areNegative(std::span<const int64_t> values) {
  return std::ranges::any_of(values, [](int64_t value) { return value < 0; });
}

/// Whether elements differ along one axis alone, where they are neighbours.
static bool isVector(std::span<const int64_t> extents,
                     std::span<const int64_t> strides, size_t axis) {
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1 && strides[i] != (i == axis ? 1 : 0))
      return false;
  return true;
}

/// The position of the last of at least one element; nothing if it overflows.
static std::optional<uint64_t> lastElement(int64_t offset,
                                           std::span<const int64_t> extents,
                                           std::span<const int64_t> strides) {
  int64_t last = offset;
  for (size_t i = 0; i < extents.size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(strides[i], extents[i] - 1, &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return static_cast<uint64_t>(last);
}

Status Describer::findPlace(uint32_t buffer, DType dtype, int64_t offset,
                            std::span<const int64_t> extents,
                            std::span<const int64_t> strides,
                            const void *&address, uint32_t &alignment) const {
  uint64_t bytes = traitsOf(dtype).bytes;
  uint64_t room = rooms[buffer] / bytes;
  auto last = lastElement(offset, extents, strides);
  if (!last || *last >= room)
    return refuse("what a library would read does not fit its buffer");
  auto *base = static_cast<const std::byte *>(dispatch.buffers[buffer]);
  address = base + offset * bytes;
  uint64_t bits = reinterpret_cast<uint64_t>(address) | kMaxAlignment;
  alignment = static_cast<uint32_t>(bits & (~bits + 1));
  return Status();
}

/// No address of a matrix that is not there, or is walked backwards.
Status Describer::readMatrix(const format::Matrix *matrix,
                             std::span<const int64_t, 3> extents,
                             StridedMatrix &view, const void *&address) const {
  if (!matrix)
    return Status();
  std::vector<int64_t> place;
  if (Status status = evaluateAll(*matrix->place(), place); !status.ok())
    return status;
  view = {matrix->dtype(), place[1], place[2], place[3], 0};
  if (areNegative(place))
    return Status();
  return findPlace(matrix->buffer(), matrix->dtype(), place[0], extents,
                   std::span(place).subspan(1), address, view.alignment);
}

/// Whether all have an address. What is repeated is not the result's own place,
/// which is written meanwhile.
template <typename Source>
bool Describer::areThere(const Source &source) const {
  return operands.lhs && operands.rhs && operands.result &&
         (!source.addend() || operands.addend) &&
         (!source.bias() ||
          (operands.bias && operands.bias != operands.result));
}

/// The sums of `product` that are along its rows or columns, if they are
/// wanted.
bool Describer::areDepthSumsThere(const MatrixProduct &product) const {
  if (!product.depthSums)
    return true;
  const StridedMatrix &sums = *product.depthSums;
  int64_t extents[] = {product.batch, product.m, product.n};
  int64_t strides[] = {sums.batch, sums.row, sums.column};
  return operands.depthSums &&
         isVector(extents, strides, product.sumsLhs ? 1 : 2);
}

Result<bool> Describer::readProduct(const format::Product &source,
                                    MatrixProduct &product) {
  std::vector<int64_t> extents;
  if (Status status = evaluateAll(*source.extents(), extents); !status.ok())
    return status;
  if (std::ranges::min(extents) < 1)
    return false;
  int64_t batch = extents[0], m = extents[1], n = extents[2], k = extents[3];
  int64_t left[] = {batch, m, k}, right[] = {batch, k, n},
          own[] = {batch, m, n};
  StridedMatrix addend, bias, sum, depthSums;
  const void *result = nullptr, *second = nullptr, *third = nullptr;
  Status status = readMatrix(source.lhs(), left, product.lhs, operands.lhs);
  if (status.ok())
    status = readMatrix(source.rhs(), right, product.rhs, operands.rhs);
  if (status.ok())
    status = readMatrix(source.result(), own, product.result, result);
  if (status.ok())
    status = readMatrix(source.addend(), own, addend, operands.addend);
  if (status.ok())
    status = readMatrix(source.bias(), own, bias, operands.bias);
  if (status.ok())
    status = readMatrix(source.sum(), own, sum, second);
  if (status.ok())
    status = readMatrix(source.depth_sums(), own, depthSums, third);
  if (!status.ok())
    return status;
  operands.result = const_cast<void *>(result);
  operands.sum = const_cast<void *>(second);
  operands.depthSums = const_cast<void *>(third);
  product.batch = batch, product.m = m, product.n = n, product.k = k;
  if (source.addend())
    product.addend = addend;
  if (source.sum())
    product.sum = sum;
  if (source.depth_sums())
    product.depthSums = depthSums;
  product.sumsLhs = source.sums_lhs();
  product.hasBias = source.bias() != nullptr;
  product.scale = source.scale();
  product.activation = source.activation();
  product.tf32 = source.tf32();
  if (source.sum() && (!operands.sum || operands.sum == operands.result))
    return false;
  if (!areDepthSumsThere(product))
    return false;
  if (!product.hasBias)
    return areThere(source);
  // The library reads it as vectors, as it stores the result.
  product.result.alignment = std::min(product.result.alignment, bias.alignment);
  int64_t strides[] = {bias.batch, bias.row, bias.column};
  return areThere(source) && isVector(own, strides, 2);
}

/// No address of an image that is not there, is empty or is walked backwards.
Status Describer::readImage(const format::Image *image, StridedImage &view,
                            const void *&address) const {
  if (!image)
    return Status();
  std::vector<int64_t> place;
  if (Status status = evaluateAll(*image->place(), place); !status.ok())
    return status;
  auto middle = place.begin() + 1 + (place.size() - 1) / 2;
  view.dtype = image->dtype();
  view.extents.assign(place.begin() + 1, middle);
  view.strides.assign(middle, place.end());
  if (areNegative(place) || std::ranges::min(view.extents) < 1)
    return Status();
  return findPlace(image->buffer(), image->dtype(), place[0], view.extents,
                   view.strides, address, view.alignment);
}

static std::vector<int64_t> listOf(const flatbuffers::Vector<int64_t> &values) {
  return {values.begin(), values.end()};
}

Result<bool> Describer::readConvolution(const format::Convolution &source,
                                        Convolution &convolution) {
  StridedImage addend, bias;
  const void *result = nullptr;
  Status status = readImage(source.x(), convolution.x, operands.lhs);
  if (status.ok())
    status = readImage(source.filter(), convolution.filter, operands.rhs);
  if (status.ok())
    status = readImage(source.result(), convolution.result, result);
  if (status.ok())
    status = readImage(source.addend(), addend, operands.addend);
  if (status.ok())
    status = readImage(source.bias(), bias, operands.bias);
  if (!status.ok())
    return status;
  operands.result = const_cast<void *>(result);
  if (source.addend())
    convolution.addend = std::move(addend);
  convolution.hasBias = source.bias() != nullptr;
  convolution.padLow = listOf(*source.pad_low());
  convolution.padHigh = listOf(*source.pad_high());
  convolution.strides = listOf(*source.strides());
  convolution.dilations = listOf(*source.dilations());
  convolution.activation = source.activation();
  convolution.tf32 = source.tf32();
  convolution.kind = source.kind();
  bool hasWholeBias =
      !source.bias() || (bias.extents == convolution.result.extents &&
                         isVector(bias.extents, bias.strides, 1));
  return areThere(source) && hasWholeBias;
}

Result<std::optional<LaunchDescription>>
cuda::describeLaunch(const Dispatch &dispatch, std::span<const uint64_t> rooms,
                     std::span<const int64_t> sizes,
                     const format::Kernel &kernel) {
  Describer describer(dispatch, rooms, sizes);
  LaunchDescription description = {};
  Result<bool> isThere = false;
  if (kernel.product())
    isThere = describer.readProduct(*kernel.product(),
                                    description.work.emplace<MatrixProduct>());
  else if (kernel.convolution())
    isThere = describer.readConvolution(
        *kernel.convolution(), description.work.emplace<Convolution>());
  if (!isThere.ok())
    return isThere.takeStatus();
  if (!*isThere)
    return std::optional<LaunchDescription>();
  description.operands = describer.operands;
  return std::optional(std::move(description));
}

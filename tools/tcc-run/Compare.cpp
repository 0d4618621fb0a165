#include "tools/tcc-run/Compare.h"

#include "tools/tcc-run/Elements.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// "[2, 0, 5]" of a flat position.
static std::string formatIndex(size_t position,
                               std::span<const int64_t> shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    text = concat(position % shape[axis], text.empty() ? "" : ", ", text);
    position /= shape[axis];
  }
  return concat("[", text, "]");
}

static double differenceOf(double found, double expected) {
  if (found == expected || (std::isnan(found) && std::isnan(expected)))
    return 0;
  double difference = std::fabs(found - expected);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : difference;
}

static double largestFinite(const Tensor &tensor) {
  double largest = 0;
  size_t count = elementCount(tensor.shape);
  for (size_t i = 0; i < count; ++i) {
    double value = loadElement(tensor.dtype, tensor.data.data(), i);
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

/// The element that exceeds its bound by the largest factor.
static void compareElements(const TensorView &found, const Tensor &expected,
                            const Tolerance &tolerance, Comparison &result) {
  bool isExact = traitsOf(expected.dtype).kind != DTypeKind::Float;
  size_t bytes = traitsOf(expected.dtype).bytes;
  double floor = tolerance.atol * largestFinite(expected);
  double worst = 0;
  size_t count = elementCount(expected.shape);
  for (size_t i = 0; i < count; ++i) {
    double a = loadElement(found.dtype, found.data, i);
    double b = loadElement(expected.dtype, expected.data.data(), i);
    double difference = differenceOf(a, b);
    result.maxDifference = std::max(result.maxDifference, difference);
    double bound = floor + tolerance.rtol * std::fabs(b);
    bool differs =
        isExact ? std::memcmp(static_cast<const char *>(found.data) + i * bytes,
                              expected.data.data() + i * bytes, bytes)
                : difference != 0 &&
                      (!(difference <= bound) || std::isinf(difference));
    double excess = bound > 0 ? difference / bound
                              : std::numeric_limits<double>::infinity();
    if (!differs || (!result.ok && excess <= worst))
      continue;
    result.ok = false;
    worst = excess;
    result.problem =
        concat("element ", formatIndex(i, expected.shape), " is ",
               formatElement(found.dtype, found.data, i), ", expected ",
               formatElement(expected.dtype, expected.data.data(), i));
  }
}

/// A .npy file has f32 for the elements of bf16, which NumPy has not.
static bool canCompare(DType found, DType expected) {
  return found == expected || (found == DType::bf16 && expected == DType::f32);
}

Comparison tools::compare(const TensorView &found, const Tensor &expected,
                          const Tolerance &tolerance) {
  Comparison result;
  bool sameShape = std::equal(found.shape.begin(), found.shape.end(),
                              expected.shape.begin(), expected.shape.end());
  if (!canCompare(found.dtype, expected.dtype) || !sameShape) {
    result.ok = false;
    result.maxDifference = std::numeric_limits<double>::infinity();
    result.problem =
        concat("is ", traitsOf(found.dtype).name, " ", formatShape(found.shape),
               ", expected ", traitsOf(expected.dtype).name, " ",
               formatShape(expected.shape));
    return result;
  }
  compareElements(found, expected, tolerance, result);
  return result;
}

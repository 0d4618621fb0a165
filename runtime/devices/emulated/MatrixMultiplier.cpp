#include "runtime/devices/emulated/MatrixMultiplier.h"

#include "runtime/devices/emulated/Elements.h"

#include <cmath>
#include <optional>
#include <vector>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static std::optional<DType> dtypeOf(uint32_t blasType) {
  switch (blasType) {
  case kF32:
    return DType::f32;
  case kF64:
    return DType::f64;
  case kF16:
    return DType::f16;
  case kBF16:
    return DType::bf16;
  default:
    return std::nullopt;
  }
}

size_t emulated::bytesOf(uint32_t blasType) {
  auto dtype = dtypeOf(blasType);
  return dtype ? bytesOf(*dtype) : 0;
}

size_t emulated::extentOf(const BlasMatrix &matrix) {
  return ((matrix.batch - 1) * matrix.batchStride +
          (matrix.columns - 1) * matrix.leading + matrix.rows) *
         bytesOf(matrix.type);
}

static Status checkMatrix(const char *name, const BlasMatrix &matrix,
                          uint64_t rows, uint64_t columns, int32_t batch) {
  if (matrix.rows == rows && matrix.columns == columns && rows > 0 &&
      columns > 0 && matrix.leading >= static_cast<int64_t>(rows) &&
      matrix.batch == batch && matrix.batchStride >= 0 && bytesOf(matrix.type))
    return Status();
  return makeError(Code::Device, "matrix ", name, " is ", matrix.rows, " x ",
                   matrix.columns, " with leading dimension ", matrix.leading,
                   ", expected ", rows, " x ", columns);
}

/// Neither is there a gradient without it, nor one with a bias.
static bool isSumPossible(const BlasProduct &p) {
  bool isGradient = p.epilogue & kEpilogueGeluGradient;
  if (!(p.epilogue & kEpilogueSum))
    return !isGradient;
  bool isKnown = isGradient ? p.epilogue == kEpilogueGeluGradient + kEpilogueSum
                            : (p.epilogue & kEpilogueGelu) != 0;
  return isKnown && p.d.batch == 1 && p.sumLeading % 8 == 0 &&
         p.sumLeading >= static_cast<int64_t>(p.d.rows);
}

/// Sums over k have an epilogue of their own, and are of operands that lie with
/// k outermost.
static bool areSumsPossible(const BlasProduct &p) {
  if (!(p.epilogue & (kEpilogueSumsOfA | kEpilogueSumsOfB)))
    return true;
  return p.d.batch == 1 && ((p.epilogue == kEpilogueSumsOfA && !p.transposeA) ||
                            (p.epilogue == kEpilogueSumsOfB && p.transposeB));
}

size_t emulated::countBias(const BlasProduct &p) {
  if (p.epilogue & kEpilogueSumsOfB)
    return p.d.columns;
  return p.epilogue & (kEpilogueBias | kEpilogueSumsOfA) ? p.d.rows : 0;
}

Status emulated::checkProduct(const BlasProduct &p) {
  uint64_t m = p.d.rows, n = p.d.columns;
  uint64_t k = p.transposeA ? p.a.rows : p.a.columns;
  Status status = checkMatrix("a", p.a, p.transposeA ? k : m,
                              p.transposeA ? m : k, p.d.batch);
  if (status.ok())
    status = checkMatrix("b", p.b, p.transposeB ? n : k, p.transposeB ? k : n,
                         p.d.batch);
  if (status.ok())
    status = checkMatrix("c", p.c, m, n, p.d.batch);
  if (status.ok())
    status = checkMatrix("d", p.d, m, n, p.d.batch);
  if (!status.ok())
    return status;
  bool isNarrow = p.a.type == kF16 || p.a.type == kBF16;
  bool areTypesKnown = p.a.type == p.b.type && p.c.type == p.d.type &&
                       (p.d.type == p.a.type || (isNarrow && p.d.type == kF32));
  bool isComputed =
      p.compute == (p.d.type == kF64 ? kCompute64F : kCompute32F) ||
      (p.compute == kCompute32FFastTF32 && p.a.type == kF32);
  if (!isSumPossible(p))
    return Status(Code::Device, "nothing that gelu is of in this form");
  if (!areSumsPossible(p))
    return Status(Code::Device, "no sums over k beside another epilogue");
  return areTypesKnown && isComputed
             ? Status()
             : Status(Code::Device, "a product of unknown types");
}

BlasMatrix emulated::sumOf(const BlasProduct &product) {
  BlasMatrix sum = product.d;
  sum.leading = product.sumLeading;
  return sum;
}

/// The derivative of gelu's tanh form.
static double deriveGelu(double x) {
  double scale = std::sqrt(2 / M_PI), square = x * x;
  double gate = std::tanh(scale * (x + 0.044715 * x * square));
  double slope = scale * (1 + 3 * 0.044715 * square);
  return 0.5 * (1 + gate) + 0.5 * x * (1 - gate * gate) * slope;
}

static double applyEpilogue(const BlasProduct &p, double sum, uint64_t row,
                            uint64_t column) {
  DType dtype = *dtypeOf(p.d.type);
  int64_t place = int64_t(column) * p.sumLeading + int64_t(row);
  if (p.epilogue & kEpilogueGeluGradient)
    return sum * deriveGelu(load(p.sum, place, dtype));
  if (p.epilogue & kEpilogueBias)
    sum += load(p.bias, static_cast<int64_t>(row), dtype);
  if (p.epilogue & kEpilogueSum)
    store(p.sum, place, dtype, sum);
  if (p.epilogue & kEpilogueRelu)
    return sum < 0 ? 0 : sum;
  if (!(p.epilogue & kEpilogueGelu))
    return sum;
  double inner = std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum);
  return 0.5 * sum * (1 + std::tanh(inner));
}

/// The elements of op(matrix) as products read them, row-major.
static std::vector<double> read(const BlasMatrix &matrix, const void *base,
                                bool isTransposed, int32_t batch, bool isTf32) {
  std::vector<double> elements;
  elements.reserve(matrix.rows * matrix.columns);
  uint64_t rows = isTransposed ? matrix.columns : matrix.rows;
  uint64_t columns = isTransposed ? matrix.rows : matrix.columns;
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j) {
      uint64_t row = isTransposed ? j : i, column = isTransposed ? i : j;
      int64_t index = batch * matrix.batchStride +
                      int64_t(column) * matrix.leading + int64_t(row);
      double element = load(base, index, *dtypeOf(matrix.type));
      elements.push_back(isTf32 ? roundToTf32(element) : element);
    }
  return elements;
}

/// Stores the sums of `lanes`, each of `k` elements.
static void storeSums(const BlasProduct &p, const std::vector<double> &lanes,
                      uint64_t k) {
  for (uint64_t lane = 0; lane * k < lanes.size(); ++lane) {
    double sum = 0;
    for (uint64_t step = 0; step < k; ++step)
      sum += lanes[lane * k + step];
    store(p.bias, int64_t(lane), *dtypeOf(p.d.type), sum);
  }
}

void emulated::multiply(const BlasProduct &p, const BlasPlaces &places) {
  uint64_t k = p.transposeA ? p.a.rows : p.a.columns;
  bool isTf32 = p.compute == kCompute32FFastTF32;
  for (int32_t batch = 0; batch < p.d.batch; ++batch) {
    std::vector<double> a = read(p.a, places.a, p.transposeA, batch, isTf32);
    std::vector<double> b = read(p.b, places.b, !p.transposeB, batch, isTf32);
    if (p.epilogue & (kEpilogueSumsOfA | kEpilogueSumsOfB))
      storeSums(p, p.epilogue & kEpilogueSumsOfA ? a : b, k);
    for (uint64_t column = 0; column < p.d.columns; ++column)
      for (uint64_t row = 0; row < p.d.rows; ++row) {
        const double *left = &a[row * k], *right = &b[column * k];
        double sum = 0;
        for (uint64_t step = 0; step < k; ++step)
          sum += left[step] * right[step];
        int64_t at = int64_t(column) * p.c.leading + int64_t(row);
        sum *= p.alpha;
        if (p.beta != 0)
          sum += p.beta * load(places.c, batch * p.c.batchStride + at,
                               *dtypeOf(p.c.type));
        at = int64_t(column) * p.d.leading + int64_t(row);
        store(places.d, batch * p.d.batchStride + at, *dtypeOf(p.d.type),
              applyEpilogue(p, sum, row, column));
      }
  }
}

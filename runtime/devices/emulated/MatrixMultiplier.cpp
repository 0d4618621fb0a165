#include "runtime/devices/emulated/MatrixMultiplier.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

size_t emulated::bytesOf(uint32_t type) {
  switch (type) {
  case kF32:
    return 4;
  case kF64:
    return 8;
  case kF16:
  case kBF16:
    return 2;
  default:
    return 0;
  }
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

template <typename T> static T loadAs(const void *place) {
  T value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

static double load(const void *base, int64_t index, uint32_t type) {
  const char *place = static_cast<const char *>(base) + index * bytesOf(type);
  switch (type) {
  case kF32:
    return loadAs<float>(place);
  case kF64:
    return loadAs<double>(place);
  case kF16:
    return static_cast<float>(loadAs<_Float16>(place));
  default:
    return std::bit_cast<float>(uint32_t(loadAs<uint16_t>(place)) << 16);
  }
}

/// Rounds to nearest, ties to even.
static uint16_t toBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void store(void *base, int64_t index, uint32_t type, double value) {
  char *place = static_cast<char *>(base) + index * bytesOf(type);
  float narrow = static_cast<float>(value);
  auto half = static_cast<_Float16>(narrow);
  uint16_t bits = toBF16(narrow);
  const void *from = type == kF64   ? static_cast<const void *>(&value)
                     : type == kF32 ? static_cast<const void *>(&narrow)
                     : type == kF16 ? static_cast<const void *>(&half)
                                    : &bits;
  std::memcpy(place, from, bytesOf(type));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

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
  return areTypesKnown ? Status()
                       : Status(Code::Device, "a product of unknown types");
}

static double applyEpilogue(const BlasProduct &p, double sum, uint64_t row) {
  if (p.epilogue & kEpilogueBias)
    sum += load(p.bias, static_cast<int64_t>(row), p.d.type);
  if (p.epilogue & kEpilogueRelu)
    return sum < 0 ? 0 : sum;
  if (!(p.epilogue & kEpilogueGelu))
    return sum;
  double inner = std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum);
  return 0.5 * sum * (1 + std::tanh(inner));
}

/// The elements of op(matrix), row-major.
static std::vector<double> read(const BlasMatrix &matrix, const void *base,
                                bool isTransposed, int32_t batch) {
  std::vector<double> elements;
  elements.reserve(matrix.rows * matrix.columns);
  uint64_t rows = isTransposed ? matrix.columns : matrix.rows;
  uint64_t columns = isTransposed ? matrix.rows : matrix.columns;
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j) {
      uint64_t row = isTransposed ? j : i, column = isTransposed ? i : j;
      int64_t index = batch * matrix.batchStride +
                      int64_t(column) * matrix.leading + int64_t(row);
      elements.push_back(load(base, index, matrix.type));
    }
  return elements;
}

void emulated::multiply(const BlasProduct &p, const BlasPlaces &places) {
  uint64_t k = p.transposeA ? p.a.rows : p.a.columns;
  for (int32_t batch = 0; batch < p.d.batch; ++batch) {
    std::vector<double> a = read(p.a, places.a, p.transposeA, batch);
    std::vector<double> b = read(p.b, places.b, !p.transposeB, batch);
    for (uint64_t column = 0; column < p.d.columns; ++column)
      for (uint64_t row = 0; row < p.d.rows; ++row) {
        const double *left = &a[row * k], *right = &b[column * k];
        double sum = 0;
        for (uint64_t step = 0; step < k; ++step)
          sum += left[step] * right[step];
        int64_t at = int64_t(column) * p.c.leading + int64_t(row);
        sum *= p.alpha;
        if (p.beta != 0)
          sum +=
              p.beta * load(places.c, batch * p.c.batchStride + at, p.c.type);
        at = int64_t(column) * p.d.leading + int64_t(row);
        store(places.d, batch * p.d.batchStride + at, p.d.type,
              applyEpilogue(p, sum, row));
      }
  }
}

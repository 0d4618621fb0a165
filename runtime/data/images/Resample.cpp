#include "runtime/data/images/Resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TCC_WIDEST // its clones are chosen before the sanitizer is ready
#endif
#endif
// A product of 32 bits, of which there are four for each pixel and weight, is
// one instruction from AVX2 on only.
#if defined(__x86_64__) && !defined(TCC_WIDEST)
#define TCC_WIDEST __attribute__((target_clones("avx2", "default")))
#elif !defined(TCC_WIDEST)
#define TCC_WIDEST
#endif

static double triangle(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

static int32_t toFixed(double weight) {
  return int32_t((weight < 0 ? -0.5 : 0.5) +
                 weight * (1 << LineWeights::kShift));
}

LineWeights::LineWeights(Span span, Pixels pixels, int to, int first,
                         int count) {
  double scale = span.length / to;
  double support = std::max(scale, 1.0);
  stride = size_t(std::ceil(support)) * 2 + 1;
  allBounds.reserve(size_t(count));
  allWeights.resize(stride * size_t(count));
  std::vector<double> exact(stride);
  for (int i = 0; i < count; ++i) {
    double center = span.begin + (first + i + 0.5) * scale;
    int begin = std::max(int(center - support + 0.5), pixels.begin);
    int taps = std::min(int(center + support + 0.5), pixels.end) - begin;
    double sum = 0;
    for (int k = 0; k < taps; ++k)
      sum += exact[size_t(k)] =
          triangle((k + begin - center + 0.5) * (1 / support));
    for (int k = 0; k < taps; ++k)
      allWeights[size_t(i) * stride + size_t(k)] =
          toFixed(exact[size_t(k)] / sum);
    allBounds.push_back({begin, taps});
  }
}

static uint8_t clip(int32_t sum) {
  return uint8_t(std::clamp(sum >> LineWeights::kShift, 0, 255));
}

static constexpr int32_t kHalf = 1 << (LineWeights::kShift - 1);

/// The channels of two pixels.
using Pair = int32_t __attribute__((vector_size(32)));
using PairBytes = uint8_t __attribute__((vector_size(8)));
static constexpr int kPixels = 2;

namespace {

/// Weights of columns, each four times, as many as the channels of a pixel are.
/// All columns are made of the same number of pixels, some with weights of
/// zero: a loop whose length is foreseen.
class PairWeights {
public:
  explicit PairWeights(const LineWeights &columns) {
    int width = columns.end() - columns.begin(), most = 0;
    for (int x = 0; x < columns.count(); ++x)
      most = std::max(most, columns.bounds(x).count);
    stride = size_t((most + kPixels - 1) / kPixels);
    pairs.resize(stride * size_t(columns.count()));
    for (int x = 0; x < columns.count(); ++x) {
      auto [begin, count] = columns.bounds(x);
      int first = begin - columns.begin();
      // At most one pixel beyond the end is read.
      firsts.push_back(
          std::max(std::min(first, width - int(stride) * kPixels), 0));
      for (int k = 0; k < count; ++k)
        set(x, first - firsts.back() + k, columns.weights(x)[k]);
    }
  }
  int first(int x) const { return firsts[size_t(x)]; }
  const Pair *of(int x) const { return pairs.data() + size_t(x) * stride; }
  size_t pairCount() const { return stride; }

private:
  void set(int x, int pixel, int32_t weight) {
    Pair &pair = pairs[size_t(x) * stride + size_t(pixel / kPixels)];
    for (int c = 0; c < Image::kPixelBytes; ++c)
      pair[pixel % kPixels * Image::kPixelBytes + c] = weight;
  }

  size_t stride = 0; ///< pairs of a column
  std::vector<Pair> pairs;
  std::vector<int> firsts; ///< pixels of a row that it begins with
};

} // namespace

/// `from` may be read a pixel beyond its end.
TCC_WIDEST static void resampleColumns(const uint8_t *from,
                                       const PairWeights &weights, int count,
                                       uint8_t *to) {
  for (int x = 0; x < count; ++x) {
    const uint8_t *pixels =
        from + size_t(weights.first(x)) * Image::kPixelBytes;
    Pair sum = {kHalf, kHalf, kHalf, kHalf};
    const Pair *weight = weights.of(x);
    for (size_t k = 0; k < weights.pairCount(); ++k) {
      PairBytes bytes;
      std::memcpy(&bytes, pixels, sizeof(bytes));
      sum += __builtin_convertvector(bytes, Pair) * weight[k];
      pixels += sizeof(bytes);
    }
    for (int c = 0; c < Image::kPixelBytes; ++c)
      *to++ = clip(sum[c] + sum[c + Image::kPixelBytes]);
  }
}

/// One new row of `taps` old ones, `stride` bytes apart.
TCC_WIDEST static void resampleRow(const uint8_t *from, size_t stride,
                                   const int32_t *weights, int taps,
                                   size_t bytes, uint8_t *to) {
  constexpr size_t kBlock = 64; // sums that stay in registers
  for (size_t begin = 0; begin < bytes; begin += kBlock) {
    size_t count = std::min(kBlock, bytes - begin);
    int32_t sums[kBlock];
    std::fill_n(sums, kBlock, kHalf);
    for (int k = 0; k < taps; ++k) {
      const uint8_t *row = from + size_t(k) * stride + begin;
      for (size_t i = 0; i < count; ++i)
        sums[i] += row[i] * weights[k];
    }
    for (size_t i = 0; i < count; ++i)
      to[begin + i] = clip(sums[i]);
  }
}

bool images::hasRowsFirst(Size from, Size to) {
  return from.height > to.height &&
         from.height - to.height > 2 * (from.width - to.width);
}

static void resampleAllColumns(const Image &from, const LineWeights &columns,
                               Image &to) {
  PairWeights weights(columns);
  to.resize({columns.count(), from.size.height});
  for (int y = 0; y < from.size.height; ++y)
    resampleColumns(from.row(y), weights, columns.count(), to.row(y));
}

static void resampleAllRows(const Image &from, const LineWeights &rows,
                            Image &to) {
  to.resize({from.size.width, rows.count()});
  for (int y = 0; y < rows.count(); ++y) {
    auto [first, taps] = rows.bounds(y);
    resampleRow(from.row(first - rows.begin()), from.rowBytes(),
                rows.weights(y), taps, from.rowBytes(), to.row(y));
  }
}

void images::resample(const Image &from, const LineWeights &columns,
                      const LineWeights &rows, bool rowsFirst, Image &between,
                      Image &to) {
  if (rowsFirst) {
    resampleAllRows(from, rows, between);
    return resampleAllColumns(between, columns, to);
  }
  resampleAllColumns(from, columns, between);
  resampleAllRows(between, rows, to);
}

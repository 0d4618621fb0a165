#include "runtime/data/BatchMixer.h"

#include "runtime/data/ImageAxes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>

using namespace tcc;
using namespace tcc::runtime;

using Kind = MixingLine::Kind;

Result<MixingLine> MixingLine::read(const std::string &line) {
  size_t blank = line.find(' ');
  std::string_view name = std::string_view(line).substr(0, blank);
  std::string_view number =
      blank == line.npos ? "" : std::string_view(line).substr(blank + 1);
  MixingLine read = {name == "mixup" ? Kind::mixup : Kind::cutmix, 0};
  const char *last = number.data() + number.size();
  auto [end, error] = std::from_chars(number.data(), last, read.alpha);
  bool isKnown = name == "mixup" || name == "cutmix";
  if (isKnown && error == std::errc() && end == last && read.alpha > 0 &&
      std::isfinite(read.alpha))
    return read;
  return makeError(Code::Usage, "'", line.substr(0, 64),
                   "' mixes nothing, expected mixup A or cutmix A, A above 0");
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//

/// Box, Muller: A note on the generation of random normal deviates, 1958.
static double drawNormal(SplitMix64 &draws) {
  double radius = std::sqrt(-2 * std::log(1 - draws.uniform()));
  return radius * std::cos(2 * std::numbers::pi * draws.uniform());
}

/// Marsaglia, Tsang: A simple method for generating gamma variables, 2000. The
/// logarithm, as of a small alpha numbers are smaller than a double can be.
static double drawLogGamma(SplitMix64 &draws, double alpha) {
  double small = 0;
  if (alpha < 1) {
    small = std::log(1 - draws.uniform()) / alpha;
    alpha += 1;
  }
  double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = drawNormal(draws), v = 1 + c * x;
    v = v * v * v;
    double u = 1 - draws.uniform();
    if (v > 0 && std::log(u) < x * x / 2 + d * (1 - v + std::log(v)))
      return std::log(d * v) + small;
  }
}

double runtime::drawBeta(SplitMix64 &draws, double alpha) {
  double a = drawLogGamma(draws, alpha), b = drawLogGamma(draws, alpha);
  return 1 / (1 + std::exp(b - a));
}

//===----------------------------------------------------------------------===//
// Mixing
//===----------------------------------------------------------------------===//

Result<BatchMixer> BatchMixer::make(std::span<const MixingLine> lines,
                                    std::span<const BatchTensor> tensors,
                                    uint64_t seed) {
  BatchMixer mixer;
  mixer.lines.assign(lines.begin(), lines.end());
  mixer.seed = seed;
  auto target = std::ranges::find_if(tensors, &BatchTensor::isTarget);
  if (target == tensors.end() ||
      (target->dtype != DType::f32 && target->dtype != DType::f64))
    return Status(Code::Usage, "data.mix needs a target of floats, a share for "
                               "each class: loss.kind = 'soft_cross_entropy'");
  mixer.target = size_t(target - tensors.begin());
  bool hasMixup =
      std::ranges::find(lines, Kind::mixup, &MixingLine::kind) != lines.end();
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto axes = findImageAxes(tensors[i]);
    if (!axes || i == mixer.target)
      continue;
    if (hasMixup && tensors[i].dtype != DType::f32)
      return makeError(Code::Usage, "data.mix: mixup needs f32, and '",
                       tensors[i].name, "' has bytes");
    mixer.images.push_back({i, axes->height, axes->width});
  }
  if (mixer.images.empty())
    return Status(Code::Usage, "data.mix: no input is an image");
  return mixer;
}

namespace {

/// The samples of a tensor, as bytes.
struct Rows {
  std::byte *data;
  size_t count, bytes;

  explicit Rows(const TensorView &view)
      : data(static_cast<std::byte *>(view.data)), count(view.shape[0]),
        bytes(bytesOf(view.dtype, view.shape).value_or(0) / count) {}
  std::byte *at(size_t row) const { return data + row * bytes; }
};

/// Rows and columns [top, bottom) and [left, right).
struct Box {
  int64_t top, bottom, left, right;
};

} // namespace

/// Calls `mix` with each sample and the one before it, as it was.
template <typename Mix>
static void mixWithPrevious(const TensorView &view, Mix mix) {
  Rows rows(view);
  thread_local std::vector<std::byte> last;
  last.assign(rows.at(rows.count - 1), rows.at(rows.count));
  for (size_t i = rows.count; --i > 0;)
    mix(rows.at(i), rows.at(i - 1));
  mix(rows.at(0), last.data());
}

/// As PyTorch computes it: products, then their sum.
template <typename T>
static void blendAs(const TensorView &view, double lambda) {
  auto own = T(lambda), other = T(1 - lambda);
  size_t count = Rows(view).bytes / sizeof(T);
  mixWithPrevious(view, [&](std::byte *to, const std::byte *before) {
    auto *x = reinterpret_cast<T *>(to);
    auto *y = reinterpret_cast<const T *>(before);
    for (size_t i = 0; i < count; ++i)
      x[i] = y[i] * other + x[i] * own;
  });
}

static void blend(const TensorView &view, double lambda) {
  if (view.dtype == DType::f64)
    blendAs<double>(view, lambda);
  else
    blendAs<float>(view, lambda);
}

/// About (x, y), from 0 to 1 of the axes, with 1 - lambda of the area, as far
/// as it is inside.
static Box makeBox(int64_t height, int64_t width, double x, double y,
                   double lambda) {
  double half = 0.5 * std::sqrt(1 - lambda);
  auto column = int64_t(x * double(width)), row = int64_t(y * double(height));
  auto columns = int64_t(half * double(width)),
       rows = int64_t(half * double(height));
  return {std::max<int64_t>(row - rows, 0), std::min(row + rows, height),
          std::max<int64_t>(column - columns, 0),
          std::min(column + columns, width)};
}

/// Axes `height` and `width` follow one another.
static void cut(const TensorView &view, size_t height, size_t width,
                const Box &box) {
  size_t element = traitsOf(view.dtype).bytes, planes = 1, pixel = element;
  for (size_t axis = 1; axis < height; ++axis)
    planes *= size_t(view.shape[axis]);
  for (size_t axis = width + 1; axis < view.shape.size(); ++axis)
    pixel *= size_t(view.shape[axis]);
  size_t line = pixel * size_t(view.shape[width]);
  size_t plane = line * size_t(view.shape[height]);
  size_t length = pixel * size_t(box.right - box.left);
  mixWithPrevious(view, [&](std::byte *to, const std::byte *before) {
    for (size_t i = 0; i < planes; ++i)
      for (int64_t row = box.top; row < box.bottom; ++row) {
        size_t at = i * plane + size_t(row) * line + size_t(box.left) * pixel;
        std::memcpy(to + at, before + at, length);
      }
  });
}

void BatchMixer::mix(int64_t number, std::span<const TensorView> batch) const {
  constexpr uint64_t kMixing = 0x6d69786564; // no epoch of a sample's draws
  auto draws = SplitMix64::of(seed, kMixing, uint64_t(number));
  const MixingLine &line = lines[size_t(draws.below(int(lines.size())))];
  double lambda = drawBeta(draws, line.alpha);
  if (line.kind == Kind::mixup) {
    for (const Image &image : images)
      blend(batch[image.tensor], lambda);
    return blend(batch[target], lambda);
  }
  double x = draws.uniform(), y = draws.uniform();
  double left = 1;
  for (const Image &image : images) {
    const TensorView &view = batch[image.tensor];
    int64_t height = view.shape[image.height], width = view.shape[image.width];
    Box box = makeBox(height, width, x, y, lambda);
    cut(view, image.height, image.width, box);
    left = 1 - double((box.bottom - box.top) * (box.right - box.left)) /
                   double(height * width);
  }
  blend(batch[target], left);
}

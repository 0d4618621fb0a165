#include "runtime/data/images/Transforms.h"

#include "runtime/data/images/Colors.h"
#include "runtime/data/images/Geometry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

namespace {

using Step = Transforms::Step;
using Numbers = std::vector<double>;
using KnownSize = std::optional<Size>;

/// The words of a line after the first one.
struct Words {
  Numbers numbers;
  std::vector<Numbers> options; ///< by the kind's table; empty: not given
};

struct Option {
  const char *name;
  std::vector<size_t> counts; ///< how many numbers it may have
};

struct Kind {
  const char *name;
  std::vector<size_t> counts; ///< how many numbers may follow the name
  const char *expected;       ///< for errors: what follows the name
  std::vector<Option> options;
  /// Nothing where the numbers are not what is expected.
  std::optional<Step> (*make)(const Words &words);
  bool isRandom = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The longest side of an image: more is no use, and would overflow.
static constexpr double kLongestSide = 1 << 15;

static bool areWhole(const Numbers &numbers, double least) {
  return std::ranges::all_of(numbers, [=](double number) {
    return number >= least && number <= kLongestSide &&
           number == std::floor(number);
  });
}

/// A square of one length, or height and width.
static Size sizeOf(const Numbers &numbers) {
  return {int(numbers.back()), int(numbers.front())};
}

static KnownSize keepSize(KnownSize before) { return before; }

/// The longer side is rounded towards zero.
static Size resizeShorter(Size size, int shorter) {
  bool isTall = size.width <= size.height;
  int from = isTall ? size.width : size.height;
  int other = isTall ? size.height : size.width;
  auto longer =
      int(std::min(double(int64_t(shorter) * other) / from, kLongestSide));
  return isTall ? Size{shorter, longer} : Size{longer, shorter};
}

static std::optional<Step> makeResize(const Words &words) {
  if (!areWhole(words.numbers, 1))
    return std::nullopt;
  Size size = sizeOf(words.numbers);
  bool isShorter = words.numbers.size() == 1;
  auto sizeAfter = [=](KnownSize before) {
    if (!isShorter)
      return KnownSize(size);
    return before ? KnownSize(resizeShorter(*before, size.width)) : before;
  };
  return Step{[=](Canvas &canvas, SplitMix64 &) {
                return canvas.resize(*sizeAfter(canvas.size()));
              },
              sizeAfter};
}

//===----------------------------------------------------------------------===//
// Parts of images
//===----------------------------------------------------------------------===//

static Size sizeWith(const Border &border, Size size) {
  return {size.width + border.left + border.right,
          size.height + border.top + border.bottom};
}

static Status padBy(Canvas &canvas, const Border &border) {
  if (Status status =
          checkSize(sizeWith(border, canvas.size()), "with its border it has");
      !status.ok())
    return status;
  return canvas.change([&](Image &image) { pad(image, border); });
}

static Status cropCenter(Canvas &canvas, Size size) {
  int missingX = std::max(size.width - canvas.size().width, 0);
  int missingY = std::max(size.height - canvas.size().height, 0);
  if (missingX || missingY)
    if (Status status = padBy(canvas, {missingX / 2, missingY / 2,
                                       (missingX + 1) / 2, (missingY + 1) / 2});
        !status.ok())
      return status;
  // Halves are rounded to even numbers.
  auto half = [](int rest) { return int(std::nearbyint(rest / 2.0)); };
  canvas.crop({half(canvas.size().width - size.width),
               half(canvas.size().height - size.height), size});
  return Status();
}

static Status cropRandomly(Canvas &canvas, Size size, SplitMix64 &draws) {
  Size own = canvas.size();
  if (own.width < size.width || own.height < size.height)
    return makeError(Code::BadData, "its image has ", own.height, " rows of ",
                     own.width, " pixels, random_crop takes ", size.height,
                     " of ", size.width);
  int top = draws.below(own.height - size.height + 1);
  int left = draws.below(own.width - size.width + 1);
  canvas.crop({left, top, size});
  return Status();
}

static std::optional<Step> makeCrop(const Words &words,
                                    Status (*crop)(Canvas &canvas, Size size,
                                                   SplitMix64 &draws)) {
  if (!areWhole(words.numbers, 1))
    return std::nullopt;
  Size size = sizeOf(words.numbers);
  return Step{[=](Canvas &canvas, SplitMix64 &draws) {
                return crop(canvas, size, draws);
              },
              [=](KnownSize) { return KnownSize(size); }};
}

static std::optional<Step> makeCenterCrop(const Words &words) {
  return makeCrop(words, [](Canvas &canvas, Size size, SplitMix64 &) {
    return cropCenter(canvas, size);
  });
}

static std::optional<Step> makeRandomCrop(const Words &words) {
  return makeCrop(words, cropRandomly);
}

namespace {

struct Range {
  double low, high;

  bool isPositive() const { return low > 0 && high >= low && high <= 1e6; }
};

} // namespace

static Range rangeOf(const Numbers &numbers, Range otherwise) {
  return numbers.empty() ? otherwise : Range{numbers[0], numbers[1]};
}

/// Ten tries, then the middle, as much as the ratios allow.
static Region drawRegion(Size own, Range scale, Range ratio,
                         SplitMix64 &draws) {
  constexpr int kTries = 10;
  double area = double(own.width) * own.height;
  for (int i = 0; i < kTries; ++i) {
    double part = area * draws.uniform(scale.low, scale.high);
    double aspect =
        std::exp(draws.uniform(std::log(ratio.low), std::log(ratio.high)));
    double width = std::nearbyint(std::sqrt(part * aspect));
    double height = std::nearbyint(std::sqrt(part / aspect));
    if (width < 1 || width > own.width || height < 1 || height > own.height)
      continue;
    int top = draws.below(own.height - int(height) + 1);
    int left = draws.below(own.width - int(width) + 1);
    return {left, top, {int(width), int(height)}};
  }
  Size size = own;
  double aspect = double(own.width) / own.height;
  if (aspect < ratio.low)
    size.height = int(std::nearbyint(own.width / ratio.low));
  else if (aspect > ratio.high)
    size.width = int(std::nearbyint(own.height * ratio.high));
  size = {std::max(size.width, 1), std::max(size.height, 1)};
  return {(own.width - size.width) / 2, (own.height - size.height) / 2, size};
}

static std::optional<Step> makeRandomResizedCrop(const Words &words) {
  Range scale = rangeOf(words.options[0], {0.08, 1});
  Range ratio = rangeOf(words.options[1], {3.0 / 4, 4.0 / 3});
  if (!areWhole(words.numbers, 1) || !scale.isPositive() || !ratio.isPositive())
    return std::nullopt;
  Size size = sizeOf(words.numbers);
  return Step{[=](Canvas &canvas, SplitMix64 &draws) {
                canvas.crop(drawRegion(canvas.size(), scale, ratio, draws));
                return canvas.resize(size);
              },
              [=](KnownSize) { return KnownSize(size); }};
}

static std::optional<Step> makePad(const Words &words) {
  const Numbers &numbers = words.numbers;
  if (!areWhole(numbers, 0))
    return std::nullopt;
  int left = int(numbers[0]), top = int(numbers[numbers.size() > 1]);
  Border border = {left, top, left, top};
  if (numbers.size() == 4) {
    border.right = int(numbers[2]);
    border.bottom = int(numbers[3]);
  }
  return Step{
      [=](Canvas &canvas, SplitMix64 &) { return padBy(canvas, border); },
      [=](KnownSize before) {
        return before ? KnownSize(sizeWith(border, *before)) : before;
      }};
}

//===----------------------------------------------------------------------===//
// Pixels
//===----------------------------------------------------------------------===//

static std::optional<Step> makeFlip(const Words &words,
                                    Status (*flip)(Canvas &canvas)) {
  double probability = words.numbers.empty() ? 0.5 : words.numbers[0];
  if (!(probability >= 0 && probability <= 1))
    return std::nullopt;
  return Step{[=](Canvas &canvas, SplitMix64 &draws) {
                return draws.uniform() < probability ? flip(canvas) : Status();
              },
              keepSize};
}

static std::optional<Step> makeHorizontalFlip(const Words &words) {
  return makeFlip(words, [](Canvas &canvas) {
    canvas.flip();
    return Status();
  });
}

static std::optional<Step> makeVerticalFlip(const Words &words) {
  return makeFlip(words,
                  [](Canvas &canvas) { return canvas.change(flipVertically); });
}

static std::optional<Step> makeRotate(const Words &words) {
  double last = words.numbers.back();
  Range range = {words.numbers.size() == 1 ? -last : words.numbers[0], last};
  if (!(range.low <= range.high && std::abs(range.low) <= 360 &&
        std::abs(range.high) <= 360))
    return std::nullopt;
  return Step{[=](Canvas &canvas, SplitMix64 &draws) {
                double angle = draws.uniform(range.low, range.high);
                return canvas.change(
                    [=](Image &image) { rotate(image, angle); });
              },
              keepSize};
}

/// The four changes come in an order that is drawn, after their factors are.
static void jitter(Image &image, const std::array<double, 4> &strengths,
                   SplitMix64 &draws) {
  enum Change { kBrightness, kContrast, kSaturation, kHue };
  std::array<double, 4> factors;
  for (int i = 0; i < 4; ++i)
    factors[i] = i == kHue ? draws.uniform(-strengths[i], strengths[i])
                           : draws.uniform(std::max(0.0, 1 - strengths[i]),
                                           1 + strengths[i]);
  std::array<int, 4> order;
  std::iota(order.begin(), order.end(), 0);
  for (int left = 4; left > 1; --left)
    std::swap(order[left - 1], order[draws.below(left)]);
  for (int change : order) {
    auto factor = float(factors[change]);
    if (strengths[change] == 0)
      continue;
    if (change == kBrightness)
      changeBrightness(image, factor);
    else if (change == kContrast)
      changeContrast(image, factor);
    else if (change == kSaturation)
      changeSaturation(image, factor);
    else
      changeHue(image, factors[change]);
  }
}

static std::optional<Step> makeColorJitter(const Words &words) {
  constexpr double kMost = 100, kMostHue = 0.5;
  std::array<double, 4> strengths = {};
  std::ranges::copy(words.numbers, strengths.begin());
  if (!std::ranges::all_of(
          strengths,
          [](double strength) { return strength >= 0 && strength <= kMost; }) ||
      strengths.back() > kMostHue)
    return std::nullopt;
  return Step{[=](Canvas &canvas, SplitMix64 &draws) {
                return canvas.change(
                    [&](Image &image) { jitter(image, strengths, draws); });
              },
              keepSize};
}

/// The option has no number: whether it is there `add` says.
static Step makeDecode(bool isScaled) {
  return Step{[=](Canvas &canvas, SplitMix64 &) {
                if (isScaled)
                  canvas.allowScaling();
                return Status();
              },
              keepSize};
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

static std::span<const Kind> listKinds() {
  static const Kind kKinds[] = {
      {"resize",
       {1, 2},
       "the shorter side, or height and width",
       {},
       makeResize},
      {"center_crop",
       {1, 2},
       "a side, or height and width",
       {},
       makeCenterCrop},
      {"random_crop",
       {1, 2},
       "a side, or height and width",
       {},
       makeRandomCrop,
       true},
      {"random_resized_crop",
       {1, 2},
       "a side, or height and width; scale LOW HIGH; ratio LOW HIGH",
       {{"scale", {2}}, {"ratio", {2}}},
       makeRandomResizedCrop,
       true},
      {"flip", {0, 1}, "a probability", {}, makeHorizontalFlip, true},
      {"vertical_flip", {0, 1}, "a probability", {}, makeVerticalFlip, true},
      {"rotate",
       {1, 2},
       "up to 360 degrees, or the least and the most",
       {},
       makeRotate,
       true},
      {"color_jitter",
       {1, 2, 3, 4},
       "brightness, contrast, saturation, 0 to 100, and hue, 0 to 0.5",
       {},
       makeColorJitter,
       true},
      {"pad",
       {1, 2, 4},
       "pixels: all, left and top, or left top right bottom",
       {},
       makePad},
  };
  return kKinds;
}

static std::vector<std::string_view> splitWords(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = 0;
       (begin = line.find_first_not_of(' ', begin)) != line.npos;) {
    size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

static std::optional<double> readNumber(std::string_view word) {
  double value = 0;
  auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), value);
  bool isNumber = error == std::errc() && end == word.data() + word.size() &&
                  std::isfinite(value);
  return isNumber ? std::optional(value) : std::nullopt;
}

/// Nothing where the words are not what the kind takes.
static std::optional<Words> readWords(std::span<const std::string_view> from,
                                      const std::vector<size_t> &counts,
                                      const std::vector<Option> &options) {
  Words words;
  words.options.resize(options.size());
  Numbers *to = &words.numbers;
  for (std::string_view word : from) {
    if (auto number = readNumber(word)) {
      to->push_back(*number);
      continue;
    }
    auto option = std::ranges::find(options, word, &Option::name);
    if (option == options.end())
      return std::nullopt;
    to = &words.options[size_t(option - options.begin())];
    if (!to->empty())
      return std::nullopt;
  }
  auto areRight = [](const std::vector<size_t> &counts, size_t count) {
    return std::ranges::find(counts, count) != counts.end();
  };
  bool isRight = areRight(counts, words.numbers.size());
  for (size_t i = 0; i < options.size(); ++i)
    isRight &= words.options[i].empty() ||
               areRight(options[i].counts, words.options[i].size());
  return isRight ? std::optional(std::move(words)) : std::nullopt;
}

static const std::vector<Option> kNormalizeOptions = {{"mean", {1, 3}},
                                                      {"std", {1, 3}}};

static std::optional<Transforms::Normalization>
makeNormalization(const Words &words) {
  Transforms::Normalization made;
  for (size_t c = 0; c < made.mean.size(); ++c) {
    const Numbers &mean = words.options[0], &deviation = words.options[1];
    if (!mean.empty())
      made.mean[c] = float(mean[mean.size() > 1 ? c : 0]);
    if (!deviation.empty())
      made.deviation[c] = float(deviation[deviation.size() > 1 ? c : 0]);
    if (!(made.deviation[c] > 0))
      return std::nullopt;
  }
  return made;
}

static Status refuse(const std::string &line, const char *expected) {
  return makeError(Code::Usage, "transform '", line, "': expected ", expected);
}

Status Transforms::add(const std::string &line) {
  auto words = splitWords(line);
  if (normalized)
    return refuse(line, "nothing after normalize");
  std::string_view name = words.empty() ? std::string_view() : words[0];
  auto rest = std::span(words).subspan(words.empty() ? 0 : 1);
  if (name == "normalize") {
    auto read = readWords(rest, {0}, kNormalizeOptions);
    normalized = read ? makeNormalization(*read) : std::nullopt;
    return normalized
               ? Status()
               : refuse(line, "mean M or R G B; std S or R G B, above 0");
  }
  std::string known = "decode, ";
  if (name == "decode") {
    bool isScaled = rest.size() == 1 && rest[0] == "scaled";
    if (!steps.empty() || !(rest.empty() || isScaled))
      return refuse(line, "decode or decode scaled, and it to come first");
    steps.push_back(makeDecode(isScaled));
    fixedCount = 1;
    return Status();
  }
  for (const Kind &kind : listKinds()) {
    known += concat(kind.name, ", ");
    if (name != kind.name)
      continue;
    auto read = readWords(rest, kind.counts, kind.options);
    auto step = read ? kind.make(*read) : std::nullopt;
    if (!step)
      return refuse(line, kind.expected);
    if (fixedCount == steps.size() && !kind.isRandom)
      ++fixedCount;
    steps.push_back(std::move(*step));
    return Status();
  }
  return refuse(line, (known + "normalize").c_str());
}

Result<Transforms> Transforms::read(std::span<const std::string> lines) {
  Transforms transforms;
  for (const std::string &line : lines)
    if (Status status = transforms.add(line); !status.ok())
      return status;
  return transforms;
}

std::optional<Size> Transforms::finalSize() const {
  KnownSize size;
  for (const Step &step : steps)
    size = step.sizeAfter(size);
  return size;
}

/// What comes first draws nothing.
Status Transforms::applyFixed(Canvas &canvas) const {
  SplitMix64 none(0);
  for (const Step &step : std::span(steps).first(fixedCount))
    if (Status status = step.apply(canvas, none); !status.ok())
      return status;
  return Status();
}

Status Transforms::applyRest(Canvas &canvas, SplitMix64 &draws) const {
  for (const Step &step : std::span(steps).subspan(fixedCount))
    if (Status status = step.apply(canvas, draws); !status.ok())
      return status;
  return Status();
}

#include "runtime/data/images/Colors.h"

#include <algorithm>
#include <cmath>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

template <typename Change>
static void forEachPixel(Image &image, Change change) {
  uint8_t *end = image.row(image.size.height);
  for (uint8_t *pixel = image.bytes.data(); pixel != end;
       pixel += Image::kPixelBytes)
    change(pixel);
}

static uint8_t mix(int other, int own, float factor) {
  float mixed = float(other) + factor * float(own - other);
  return uint8_t(std::clamp(mixed, 0.0f, 255.0f));
}

void images::changeBrightness(Image &image, float factor) {
  forEachPixel(image, [=](uint8_t *pixel) {
    for (int c = 0; c < 3; ++c)
      pixel[c] = mix(0, pixel[c], factor);
  });
}

void images::changeContrast(Image &image, float factor) {
  int64_t sum = 0;
  forEachPixel(image, [&](const uint8_t *pixel) { sum += toGrey(pixel); });
  int mean = int(double(sum) / double(image.pixelCount()) + 0.5);
  forEachPixel(image, [=](uint8_t *pixel) {
    for (int c = 0; c < 3; ++c)
      pixel[c] = mix(mean, pixel[c], factor);
  });
}

void images::changeSaturation(Image &image, float factor) {
  forEachPixel(image, [=](uint8_t *pixel) {
    int grey = toGrey(pixel);
    for (int c = 0; c < 3; ++c)
      pixel[c] = mix(grey, pixel[c], factor);
  });
}

namespace {

/// Hue, saturation and value, of 255 steps each.
struct Hsv {
  uint8_t hue, saturation, value;
};

} // namespace

static Hsv toHsv(const uint8_t *pixel) {
  int red = pixel[0], green = pixel[1], blue = pixel[2];
  int most = std::max({red, green, blue}), least = std::min({red, green, blue});
  if (most == least)
    return {0, 0, uint8_t(most)};
  float range = float(most - least);
  float fromRed = float(most - red) / range;
  float fromGreen = float(most - green) / range;
  float fromBlue = float(most - blue) / range;
  float sixths = 0;
  if (red == most)
    sixths = fromBlue - fromGreen;
  else if (green == most)
    sixths = float(2.0 + fromRed - fromBlue);
  else
    sixths = float(4.0 + fromGreen - fromRed);
  float hue = float(std::fmod(sixths / 6.0 + 1.0, 1.0));
  float saturation = range / float(most);
  return {uint8_t(hue * 255.0), uint8_t(saturation * 255.0), uint8_t(most)};
}

static void fromHsv(const Hsv &color, uint8_t *pixel) {
  float value = float(color.value),
        saturation = float(color.saturation / 255.0);
  int sixth = int(color.hue * 6.0 / 255.0);
  float rest = float(color.hue * 6.0 / 255.0 - sixth);
  auto less = [&](double share) {
    return uint8_t(std::round(value * (1.0 - share)));
  };
  uint8_t high = color.value, low = less(saturation),
          falling = less(saturation * rest),
          rising = less(saturation * (1.0 - rest));
  const uint8_t kinds[6][3] = {{high, rising, low}, {falling, high, low},
                               {low, high, rising}, {low, falling, high},
                               {rising, low, high}, {high, low, falling}};
  std::copy_n(kinds[sixth % 6], 3, pixel);
}

void images::changeHue(Image &image, double share) {
  // A conversion to a byte wraps around, as hues do.
  auto turn = uint8_t(int(share * 255));
  forEachPixel(image, [=](uint8_t *pixel) {
    Hsv color = toHsv(pixel);
    color.hue = uint8_t(color.hue + turn);
    fromHsv(color, pixel);
  });
}

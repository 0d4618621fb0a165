#include "runtime/data/images/Geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

static Image makeBlack(Size size) {
  Image image;
  image.resize(size);
  std::ranges::fill(image.bytes, uint8_t(0));
  return image;
}

void images::pad(Image &image, const Border &border) {
  Image padded = makeBlack({image.size.width + border.left + border.right,
                            image.size.height + border.top + border.bottom});
  for (int y = 0; y < image.size.height; ++y)
    std::copy_n(image.row(y), image.rowBytes(),
                padded.row(y + border.top) +
                    size_t(border.left) * Image::kPixelBytes);
  std::swap(image, padded);
}

void images::flipVertically(Image &image) {
  for (int y = 0; y < image.size.height / 2; ++y)
    std::swap_ranges(image.row(y), image.row(y) + image.rowBytes(),
                     image.row(image.size.height - 1 - y));
}

static int64_t toFixed(double value) {
  return int64_t(std::floor(value * 65536 + 0.5));
}

void images::rotate(Image &image, double degrees) {
  double angle = -degrees * std::numbers::pi / 180;
  double cosine = std::cos(angle), sine = std::sin(angle);
  double middleX = image.size.width / 2.0, middleY = image.size.height / 2.0;
  // The place in the image of a pixel's middle.
  double left = middleX - cosine * middleX - sine * middleY;
  double top = middleY + sine * middleX - cosine * middleY;
  int64_t firstX = toFixed(left + (cosine + sine) / 2);
  int64_t firstY = toFixed(top + (cosine - sine) / 2);
  int64_t across = toFixed(cosine), down = toFixed(sine), up = toFixed(-sine);
  Image turned = makeBlack(image.size);
  for (int y = 0; y < image.size.height; ++y) {
    int64_t x16 = firstX, y16 = firstY;
    for (int x = 0; x < image.size.width; ++x) {
      int64_t fromX = x16 >> 16, fromY = y16 >> 16;
      if (fromX >= 0 && fromX < image.size.width && fromY >= 0 &&
          fromY < image.size.height)
        std::copy_n(image.row(int(fromY)) + fromX * Image::kPixelBytes,
                    Image::kPixelBytes, turned.row(y) + x * Image::kPixelBytes);
      x16 += across;
      y16 += up;
    }
    firstX += down;
    firstY += across;
  }
  std::swap(image, turned);
}

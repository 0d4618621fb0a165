//===- Colors.h - Changes of pixels' colours --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_COLORS_H
#define TCC_RUNTIME_DATA_IMAGES_COLORS_H

#include "runtime/data/images/Image.h"

namespace tcc::runtime::images {

/// 0.299 R + 0.587 G + 0.114 B, rounded, as ITU-R BT.601 has it.
inline uint8_t toGrey(const uint8_t *pixel) {
  return uint8_t(
      (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

// Each mixes an image with another one, of which it keeps `factor`: 0 gives the
// other one, 1 the image, more than 1 goes beyond it. Pixels are those of
// Pillow's ImageEnhance to the bit.

/// With black.
void changeBrightness(Image &image, float factor);
/// With the mean of its greys.
void changeContrast(Image &image, float factor);
/// With its greys.
void changeSaturation(Image &image, float factor);

/// Turns hues by a share of the circle, -0.5 to 0.5, as torchvision's
/// adjust_hue does to images of Pillow, to the bit: of 255 steps, in HSV of
/// bytes.
void changeHue(Image &image, double share);

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_COLORS_H

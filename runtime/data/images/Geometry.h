//===- Geometry.h - Images moved about --------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_GEOMETRY_H
#define TCC_RUNTIME_DATA_IMAGES_GEOMETRY_H

#include "runtime/data/images/Image.h"

namespace tcc::runtime::images {

/// Pixels on each side of an image.
struct Border {
  int left = 0, top = 0, right = 0, bottom = 0;
};

/// Adds black on each side.
void pad(Image &image, const Border &border);

/// The upper rows below the lower ones.
void flipVertically(Image &image);

/// Turns an image about its middle, degrees against the clock; it keeps its
/// size, and is black where it was not before. Each pixel is the nearest one,
/// as Pillow finds it, to the bit: in steps of 2^-16 of a pixel.
void rotate(Image &image, double degrees);

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_GEOMETRY_H

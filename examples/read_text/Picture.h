//===- Picture.h - Lines of text in a picture -------------------*- C++ -*-===//
#ifndef TCC_EXAMPLES_READ_TEXT_PICTURE_H
#define TCC_EXAMPLES_READ_TEXT_PICTURE_H

#include <cstdint>
#include <string>
#include <vector>

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> pixels; ///< [height, width, 3], blue first

  const uint8_t *at(int x, int y) const {
    return &pixels[(size_t(y) * width + x) * 3];
  }
};

/// Reads a PNG file; throws std::runtime_error.
Picture readPng(const std::string &path);

/// The lines of dark text on a bright ground, top to bottom, each cropped with
/// a small margin.
std::vector<Picture> splitLines(const Picture &picture);

/// The picture as a [1, 3, height, width] tensor with values in [-1, 1]: scaled
/// to the height, keeping its proportions, and filled up with zero on the
/// right.
std::vector<float> toTensor(const Picture &picture, int height, int width);

#endif // TCC_EXAMPLES_READ_TEXT_PICTURE_H

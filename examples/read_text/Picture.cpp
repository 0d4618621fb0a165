//===- Picture.cpp - Lines of text in a picture ---------------------------===//
#include "Picture.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

Picture readPng(const std::string &path) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&image, path.c_str()))
    throw std::runtime_error(path + ": " + image.message);
  image.format = PNG_FORMAT_BGR;
  Picture picture;
  picture.width = int(image.width);
  picture.height = int(image.height);
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color white = {255, 255, 255};
  if (!png_image_finish_read(&image, &white, picture.pixels.data(), 0, nullptr))
    throw std::runtime_error(path + ": " + image.message);
  return picture;
}

static bool isInk(const Picture &picture, int x, int y) {
  const uint8_t *p = picture.at(x, y);
  return p[0] + p[1] + p[2] < 3 * 160;
}

static Picture crop(const Picture &picture, int left, int top, int right,
                    int bottom) {
  Picture part;
  part.width = right - left;
  part.height = bottom - top;
  for (int y = top; y < bottom; ++y)
    part.pixels.insert(part.pixels.end(), picture.at(left, y),
                       picture.at(left, y) + part.width * 3);
  return part;
}

/// The line between rows `top` and `bottom`, as wide as its ink.
static Picture cropLine(const Picture &picture, int top, int bottom) {
  int left = picture.width, right = 0;
  for (int y = top; y < bottom; ++y)
    for (int x = 0; x < picture.width; ++x)
      if (isInk(picture, x, y)) {
        left = std::min(left, x);
        right = std::max(right, x + 1);
      }
  const int margin = (bottom - top) / 6 + 1;
  return crop(picture, std::max(left - margin, 0), std::max(top - margin, 0),
              std::min(right + margin, picture.width),
              std::min(bottom + margin, picture.height));
}

std::vector<Picture> splitLines(const Picture &picture) {
  std::vector<Picture> lines;
  int top = -1; // of the line that is being read; -1 between lines
  for (int y = 0; y <= picture.height; ++y) {
    bool hasInk = false;
    for (int x = 0; y < picture.height && x < picture.width; ++x)
      hasInk |= isInk(picture, x, y);
    if (hasInk && top < 0)
      top = y;
    if (hasInk || top < 0)
      continue;
    lines.push_back(cropLine(picture, top, y));
    top = -1;
  }
  return lines;
}

/// Bilinear sample of one channel at a position between pixels.
static float sample(const Picture &picture, float x, float y, int channel) {
  x = std::clamp(x, 0.0f, float(picture.width - 1));
  y = std::clamp(y, 0.0f, float(picture.height - 1));
  const int x0 = int(x), y0 = int(y);
  const int x1 = std::min(x0 + 1, picture.width - 1);
  const int y1 = std::min(y0 + 1, picture.height - 1);
  auto mix = [](float a, float b, float t) { return a + (b - a) * t; };
  auto value = [&](int column, int row) {
    return float(picture.at(column, row)[channel]);
  };
  return mix(mix(value(x0, y0), value(x1, y0), x - float(x0)),
             mix(value(x0, y1), value(x1, y1), x - float(x0)), y - float(y0));
}

std::vector<float> toTensor(const Picture &picture, int height, int width) {
  const float scale = float(picture.height) / float(height);
  const int used =
      std::min(width, int(std::ceil(float(picture.width) / scale)));
  const float step = float(picture.width) / float(used);
  std::vector<float> tensor(size_t(3) * height * width, 0.0f);
  for (int channel = 0; channel < 3; ++channel)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < used; ++x) {
        const float value = sample(picture, (float(x) + 0.5f) * step - 0.5f,
                                   (float(y) + 0.5f) * scale - 0.5f, channel);
        tensor[(size_t(channel) * height + y) * width + x] =
            value / 127.5f - 1.0f;
      }
  return tensor;
}

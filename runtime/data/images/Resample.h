//===- Resample.h - Images of other sizes -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_RESAMPLE_H
#define TCC_RUNTIME_DATA_IMAGES_RESAMPLE_H

#include "runtime/data/images/Image.h"

namespace tcc::runtime::images {

/// What the pixels of a line are made of when it gets another length: bilinear
/// where it grows, and where it shrinks a triangle as wide as two of the new
/// pixels ("antialias"). Weights, rounded to whole numbers, and bounds are
/// those of Pillow's resize, so that the pixels have its bits.
class LineWeights {
public:
  /// The weights of the new pixels [first, first + count) of `to`.
  LineWeights(int from, int to, int first, int count)
      : LineWeights({0, double(from)}, {0, from}, to, first, count) {}

  struct Span {
    double begin, length;
  };
  struct Pixels {
    int begin, end;
  };
  /// The same of a span of a line, which may begin and end within pixels, made
  /// of those of `pixels` alone.
  LineWeights(Span span, Pixels pixels, int to, int first, int count);

  /// How many new pixels it is of.
  int count() const { return int(allBounds.size()); }

  /// A pixel is the sum of `count` old ones, from `first` on, by their weights,
  /// shifted to the right by kShift.
  struct Bounds {
    int first, count;
  };
  static constexpr int kShift = 22;

  Bounds bounds(int pixel) const { return allBounds[size_t(pixel)]; }
  const int32_t *weights(int pixel) const {
    return allWeights.data() + size_t(pixel) * stride;
  }
  /// The old pixels that any new one is made of.
  int begin() const { return allBounds.front().first; }
  int end() const { return allBounds.back().first + allBounds.back().count; }

private:
  size_t stride; ///< weights of a pixel
  std::vector<Bounds> allBounds;
  std::vector<int32_t> allWeights;
};

/// Whether Pillow, from version 13 on, resizes rows before columns: where the
/// height loses more than twice what the width does. Each pass is rounded to
/// bytes, so that bits depend on it.
bool hasRowsFirst(Size from, Size to);

/// `to` gets the columns and rows that the weights are of, of an image whose
/// first pixel is (columns.begin(), rows.begin()) of the one that they count
/// from. `between` is for the image between the passes.
void resample(const Image &from, const LineWeights &columns,
              const LineWeights &rows, bool rowsFirst, Image &between,
              Image &to);

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_RESAMPLE_H

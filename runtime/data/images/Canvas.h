//===- Canvas.h - An image on its way to a tensor ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_CANVAS_H
#define TCC_RUNTIME_DATA_IMAGES_CANVAS_H

#include "runtime/data/images/Image.h"

#include <functional>

namespace tcc::runtime::images {

/// An image that is cropped, resized and mirrored; when it is drawn, no pixel
/// is decoded or made that would be cut off again. One thread uses it; it is
/// there to be used again, for its memory.
class Canvas {
public:
  /// Begins with the image of a file, whose bytes outlive their use. Code::
  /// BadData as readSize.
  Status open(std::span<const std::byte> file);
  /// Begins with pixels, which outlive their use and stay as they are.
  void open(const Image &image);

  /// A JPEG that is to become smaller may be decoded at a half, a quarter or an
  /// eighth of its size, where it has more pixels than are wanted even so: that
  /// is faster, and pixels differ a bit.
  void allowScaling() { mayScale = true; }

  Size size() const { return shown.size; }
  /// Keeps a region, inside the image.
  void crop(Region region);
  /// As Pillow's bilinear resize. Code::BadData where decoding fails.
  Status resize(Size to);
  /// Left to right.
  void flip() { isFlipped = !isFlipped; }
  /// Has `change` see the pixels as they are; what it leaves is the image, of
  /// whatever size.
  Status change(const std::function<void(Image &)> &change);
  /// The pixels, until the next call. Code::BadData where decoding fails.
  Result<const Image *> draw();

private:
  bool isDrawn() const;
  Status decodeRegion(Region region, Image &to);
  Status drawAnew(Image &to);
  int findDenominator() const;
  Status drawScaled(int denominator, Image &to);

  std::span<const std::byte> file;
  const Image *decoded = nullptr; ///< what is shown; null: that of the file
  Image pixels;                   ///< what `decoded` is, unless it was given
  Region source;                  ///< of the file or the pixels
  Size scaled;                    ///< what `source` is resized to
  Region shown;                   ///< of what that gives
  bool isFlipped = false, mayScale = false;
  Image drawn, needed, between; ///< reused
};

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_CANVAS_H

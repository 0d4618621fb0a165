//===- Transforms.h - What is done to images before a batch -----*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_TRANSFORMS_H
#define TCC_RUNTIME_DATA_IMAGES_TRANSFORMS_H

#include "runtime/data/SplitMix64.h"
#include "runtime/data/images/Canvas.h"

#include <array>
#include <optional>
#include <string>

namespace tcc::runtime::images {

/// Transforms in a row, each a line of words:
///
///   decode [scaled]                 what always comes first; scaled: see
///                                   Canvas::allowScaling
///   resize S | H W                  the shorter side becomes S
///   center_crop S | H W             filled up with black where it is smaller
///   random_crop S | H W
///   random_resized_crop S | H W     options scale LOW HIGH, ratio LOW HIGH
///   flip [P], vertical_flip [P]     with probability P, 0.5
///   rotate D | LOW HIGH             degrees, about the middle
///   color_jitter B [C [S [H]]]      brightness, contrast, saturation, hue
///   pad N | X Y | LEFT TOP RIGHT BOTTOM       with black
///   normalize                       options mean M | R G B, std M | R G B
///
/// They mean what torchvision's do to images of Pillow: with the same numbers
/// drawn, pixels have the same bits.
class Transforms {
public:
  /// Code::Usage, with the line, where one is none of these.
  static Result<Transforms> read(std::span<const std::string> lines);

  /// What any image becomes, unless that depends on its size.
  std::optional<Size> finalSize() const;
  /// What is random is drawn from `draws`. Code::BadData where the image is
  /// damaged, or too small to crop.
  Status apply(Canvas &canvas, SplitMix64 &draws) const {
    if (Status status = applyFixed(canvas); !status.ok())
      return status;
    return applyRest(canvas, draws);
  }
  /// The first ones, which draw nothing: they give one image of a file.
  Status applyFixed(Canvas &canvas) const;
  Status applyRest(Canvas &canvas, SplitMix64 &draws) const;
  /// What is subtracted from numbers of 0 to 1, for each channel, and what they
  /// are divided by after that.
  struct Normalization {
    std::array<float, 3> mean = {0, 0, 0}, deviation = {1, 1, 1};
  };
  const std::optional<Normalization> &normalization() const {
    return normalized;
  }

  /// One line.
  struct Step {
    std::function<Status(Canvas &, SplitMix64 &)> apply;
    /// The size after it, unless it depends on what is not known.
    std::function<std::optional<Size>(std::optional<Size>)> sizeAfter;
  };

private:
  Status add(const std::string &line);

  std::vector<Step> steps;
  size_t fixedCount = 0; ///< of the first ones, which draw nothing
  std::optional<Normalization> normalized;
};

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_TRANSFORMS_H

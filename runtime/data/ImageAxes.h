//===- ImageAxes.h - Tensors that are images --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGEAXES_H
#define TCC_RUNTIME_DATA_IMAGEAXES_H

#include "runtime/data/SampleSource.h"

namespace tcc::runtime {

/// Where channels, rows and columns are.
struct ImageAxes {
  size_t channels, height, width;
};

/// The axes of a tensor of f32 or u8, [N, 1 or 3, H, W] or [N, H, W, 1 or 3];
/// nothing for others.
inline std::optional<ImageAxes> findImageAxes(const BatchTensor &tensor) {
  auto isChannelCount = [&](size_t axis) {
    return tensor.shape[axis] == 1 || tensor.shape[axis] == 3;
  };
  bool isOfPixels = tensor.dtype == DType::f32 || tensor.dtype == DType::u8;
  if (tensor.shape.size() != 4 || !isOfPixels)
    return std::nullopt;
  if (isChannelCount(1))
    return ImageAxes{1, 2, 3};
  return isChannelCount(3) ? std::optional(ImageAxes{3, 1, 2}) : std::nullopt;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_IMAGEAXES_H

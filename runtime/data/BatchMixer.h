//===- BatchMixer.h - Samples of a batch, mixed -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_BATCHMIXER_H
#define TCC_RUNTIME_DATA_BATCHMIXER_H

#include "runtime/data/SampleSource.h"
#include "runtime/data/SplitMix64.h"
#include "runtime/executor/Context.h"

namespace tcc::runtime {

/// A way to mix the samples of a batch. Of a batch a share, lambda, is drawn
/// from Beta(alpha, alpha).
struct MixingLine {
  enum class Kind {
    mixup, ///< lambda x_i + (1 - lambda) x_j (Zhang et al., 2018)
    cutmix ///< a box of 1 - lambda of x_i is that of x_j (Yun et al., 2019)
  };
  Kind kind;
  double alpha;

  /// "mixup A" or "cutmix A"; Code::Usage where it is neither.
  static Result<MixingLine> read(const std::string &line);
};

/// Mixes each sample of a batch with the one before it, and the first with the
/// last, as torchvision's v2.MixUp and v2.CutMix do: images, and the target,
/// which has a share for each class, by the area that is left. Which of several
/// ways a batch takes, and what it draws, are functions of the seed and the
/// batch's number alone. Callable from any thread.
class BatchMixer {
public:
  /// Code::Usage unless tensors have a target of floats and images of f32,
  /// [N, C, H, W] or, for cutmix alone, images of any type.
  static Result<BatchMixer> make(std::span<const MixingLine> lines,
                                 std::span<const BatchTensor> tensors,
                                 uint64_t seed);

  void mix(int64_t number, std::span<const TensorView> batch) const;

private:
  /// An image tensor.
  struct Image {
    size_t tensor;
    size_t height, width; ///< axes
  };

  BatchMixer() = default;

  std::vector<MixingLine> lines;
  std::vector<Image> images;
  size_t target = 0;
  uint64_t seed = 0;
};

/// From Beta(alpha, alpha).
double drawBeta(SplitMix64 &draws, double alpha);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_BATCHMIXER_H

//===- SampleSource.h - Samples by number -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SAMPLESOURCE_H
#define TCC_RUNTIME_DATA_SAMPLESOURCE_H

#include "runtime/package/Tensor.h"

#include <memory>
#include <optional>

namespace tcc::runtime {

/// A tensor of a batch: its samples come first, shape[0] of them.
struct BatchTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool isTarget = false; ///< that the loss is of
  /// Of a language model: how much later in a text its tokens begin than those
  /// of the model's input. Nothing where the loss is of another kind.
  std::optional<int64_t> tokensAhead = std::nullopt;
};

/// Where a sample is written to: its part of each tensor of a batch, in their
/// order.
using SampleParts = std::span<const std::span<std::byte>>;

/// Samples by number, each with a part for every tensor of a batch.
class SampleSource {
public:
  virtual ~SampleSource() = default;
  /// Of an epoch.
  virtual int64_t sampleCount() const = 0;
  /// Writes all of sample `number`, below the count, as it is in that epoch:
  /// the same bytes whenever and by whomever it is called. Several threads call
  /// it at once, for different parts.
  virtual Status read(int64_t epoch, int64_t number,
                      SampleParts parts) const = 0;
};

/// Opens `npz:FILE`, `npy:FOLDER` or `safetensors:FILE` (ArraySource.h),
/// `tokens:FILE,...` or `text:FILE,...` (TokenSource.h), `webdataset:FILE,...`
/// or `images:FOLDER` (RecordSamples.h).
Result<std::unique_ptr<SampleSource>>
openSource(const std::string &spec, std::span<const BatchTensor> tensors);

/// The paths of a list that commas divide.
std::vector<std::string> splitPaths(std::string_view list);

/// The same data for whoever works in another folder.
std::string absoluteData(const std::string &spec);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SAMPLESOURCE_H

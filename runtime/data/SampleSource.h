//===- SampleSource.h - Samples by number -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_SAMPLESOURCE_H
#define TCC_RUNTIME_DATA_SAMPLESOURCE_H

#include "runtime/package/Tensor.h"

#include <memory>

namespace tcc::runtime {

/// A tensor of a batch: its samples come first, shape[0] of them.
struct BatchTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
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

/// Opens `npz:FILE`, `npy:FOLDER` or `safetensors:FILE`: see ArraySource.h.
Result<std::unique_ptr<SampleSource>>
openSource(const std::string &spec, std::span<const BatchTensor> tensors);

/// The same data for whoever works in another folder.
std::string absoluteData(const std::string &spec);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_SAMPLESOURCE_H

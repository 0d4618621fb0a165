//===- Batches.h - Samples for training, in batches -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_BATCHES_H
#define TCC_RUNTIME_DATA_BATCHES_H

#include "runtime/data/SampleOrder.h"
#include "runtime/package/Tensor.h"

#include <algorithm>
#include <optional>

namespace tcc::runtime {

/// A tensor of a batch: its samples come first, shape[0] of them.
struct BatchTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};

/// Samples by number, each with a part for every tensor of a batch.
class BatchSource {
public:
  virtual ~BatchSource() = default;
  virtual int64_t sampleCount() const = 0;
  /// Writes the parts for tensor `tensor` of `samples`, one after the other.
  virtual Status read(size_t tensor, std::span<const int64_t> samples,
                      std::span<std::byte> bytes) = 0;
};

/// Opens `npz:FILE`: one array for each tensor, by its name, but for weights of
/// samples, which are 1 then. Narrower integers and floats are widened. All
/// problems are listed.
Result<std::unique_ptr<BatchSource>>
openBatches(const std::string &spec, std::span<const BatchTensor> tensors);

/// The same data for whoever works in another folder.
std::string absoluteData(const std::string &spec);

/// Fills batches from a source. What remains of an epoch after its last whole
/// batch is left out; if a tensor holds weights of samples (kSampleWeight,
/// f32), the first samples of the epoch fill the batch up, with weights of 0.
class BatchReader {
public:
  static Result<BatchReader> create(std::unique_ptr<BatchSource> source,
                                    std::span<const BatchTensor> tensors,
                                    SampleOrder order);

  int64_t batchSize() const { return static_cast<int64_t>(samples.size()); }
  int64_t batchesPerEpoch() const;
  /// Those that count.
  int64_t samplesPerEpoch() const {
    return std::min(sampleCount(), batchesPerEpoch() * batchSize());
  }
  int64_t sampleCount() const { return source->sampleCount(); }
  const SampleOrder &sampleOrder() const { return order; }
  /// Batch `index` of all epochs one after the other; allocates nothing but
  /// the first time.
  Status read(int64_t index);
  /// The first sample of what was read that has this number in a tensor of
  /// integers.
  std::optional<int64_t> findSample(size_t tensor, int64_t number) const;
  /// What was read, in the order of the tensors.
  std::span<const Tensor> tensors() const { return batch; }

private:
  BatchReader(std::unique_ptr<BatchSource> source, SampleOrder order)
      : source(std::move(source)), order(std::move(order)) {}

  std::unique_ptr<BatchSource> source;
  SampleOrder order;
  std::vector<Tensor> batch;
  std::optional<size_t> weights; ///< the tensor of the samples' weights
  std::vector<int64_t> samples;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_BATCHES_H

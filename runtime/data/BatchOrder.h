//===- BatchOrder.h - Which samples a batch has -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_BATCHORDER_H
#define TCC_RUNTIME_DATA_BATCHORDER_H

#include "runtime/data/SampleOrder.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcc::runtime {

/// Samples that fit into one variant of an entry point.
struct SampleBucket {
  size_t variant;
  int64_t batchSize;
  std::vector<uint32_t> samples; ///< their numbers
};

/// Samples by the variants that take them.
struct SortedSamples {
  /// Each has room for what fits into the one before.
  std::vector<SampleBucket> buckets;
  /// Bytes of the samples' parts that they do not need, and of the parts, of
  /// the tensors whose sizes variants differ in.
  uint64_t padding = 0, room = 0;
};

/// The samples of each batch of all epochs: a function of data, seed and the
/// batch's number. Those of a bucket are permuted among themselves; what is
/// left of them after whole batches goes to the next bucket, which has room for
/// it. The batches of all buckets are permuted as one. Callable from any
/// thread.
class BatchOrder {
public:
  /// A batch by its number.
  struct Batch {
    int64_t epoch;
    size_t bucket;
    int64_t first; ///< the place of its first sample in the bucket
  };

  /// All samples in one bucket. `fills`: the last batch of an epoch need not be
  /// whole; the first samples of the epoch fill it up.
  BatchOrder(int64_t samples, int64_t batchSize, const SampleOrder &order,
             bool fills);
  BatchOrder(SortedSamples sorted, uint64_t seed, bool shuffles, bool fills);

  bool isShuffled() const { return shuffles; }
  /// The share of what is computed that no sample needs.
  double paddingShare() const { return padding; }
  /// The batch size of the largest samples, of which some may be left out.
  int64_t batchSize() const { return buckets.back().batchSize; }
  int64_t sampleCount() const { return samples; }
  int64_t batchesPerEpoch() const { return batches; }
  /// The number of samples of an epoch that count.
  int64_t samplesPerEpoch() const { return samples - leftOut; }

  Batch at(int64_t number) const;
  size_t variantOf(const Batch &batch) const {
    return buckets[batch.bucket].variant;
  }
  int64_t sizeOf(const Batch &batch) const {
    return buckets[batch.bucket].batchSize;
  }
  /// How many samples of a batch count: the others fill it up.
  int64_t countedOf(const Batch &batch) const;
  /// The numbers of all samples of a batch.
  void list(const Batch &batch, std::vector<int64_t> &numbers) const;

private:
  struct Bucket {
    size_t variant;
    int64_t batchSize;
    std::vector<uint32_t> own; ///< numbers; empty: all samples, as they lie
    int64_t ownCount;
    int64_t count; ///< with those that are left of the bucket before
    SampleOrder order;
    int64_t batches = 0; ///< whole ones, or with one that is filled up
    int64_t end = 0;     ///< batches of this bucket and those before it
  };

  int64_t sampleOf(size_t bucket, int64_t epoch, int64_t index) const;
  void count(bool fills);

  std::vector<Bucket> buckets;
  bool shuffles;
  SampleOrder batchOrder;
  int64_t samples = 0, batches = 0, leftOut = 0;
  double padding = 0;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_BATCHORDER_H

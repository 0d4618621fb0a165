//===- BatchLoader.h - Batches of samples, read ahead -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_BATCHLOADER_H
#define TCC_RUNTIME_DATA_BATCHLOADER_H

#include "runtime/data/BatchMixer.h"
#include "runtime/data/BatchOrder.h"
#include "runtime/data/SampleSource.h"
#include "runtime/executor/Context.h"
#include "runtime/trace/HostTrace.h"

#include <algorithm>
#include <optional>

namespace tcc::runtime {

struct LoaderOptions {
  /// Threads that read ahead. Nothing: none as long as reading takes next to no
  /// time beside what is done with batches, then as many as it needs to.
  std::optional<int> workers;
  /// Batches that are in memory at a time, once there are workers: at least 2.
  int slots = 4;
  /// Mixes the samples of a batch before anybody gets it; null: none are mixed.
  std::shared_ptr<const BatchMixer> mixer = nullptr;
};

/// Seconds that threads read samples, all of them together.
struct ReadingTime {
  double passed = 0; ///< by a clock on the wall
  double onCpu = 0;  ///< what is less was waiting: for a disk, or for a CPU
};

/// Whether batches are filled up: a tensor has weights of samples
/// (kSampleWeight, f32).
bool haveWeights(std::span<const BatchTensor> tensors);

/// Fills batches from a source. What remains of an epoch after its last whole
/// batch is left out; if tensors have weights, the first samples of the epoch
/// fill the batch up, with weights of 0. Where tensors have variants a batch is
/// of one of them.
/// One thread uses it; others, of its own, read samples into batches that come
/// later. Which bytes a batch has depends neither on them nor on their number.
class BatchLoader {
public:
  static Result<BatchLoader> create(std::unique_ptr<SampleSource> source,
                                    std::span<const BatchTensor> tensors,
                                    BatchOrder order,
                                    const LoaderOptions &options = {});
  BatchLoader(BatchLoader &&) noexcept;
  BatchLoader &operator=(BatchLoader &&) noexcept;
  /// Waits for samples that are being read.
  ~BatchLoader();

  /// Which samples batches have.
  const BatchOrder &order() const;

  /// How many batches it can have ahead.
  size_t depth() const;
  /// Reads batch `number` of all epochs one after the other; what it is likely
  /// to be asked for after that are the batches `next`, in this order. What was
  /// read before is gone. Fails where a sample of this batch does.
  Status read(int64_t number, std::span<const int64_t> next = {});
  /// What was read, in the order of the tensors.
  std::span<const TensorView> batch() const;
  /// The first sample of what was read that has this number in a tensor of
  /// integers.
  std::optional<int64_t> findSample(size_t tensor, int64_t number) const;

  /// Seconds that `read` took since the last call.
  double takeWait();
  /// Has reading timed from now on, which takes two system calls for some
  /// samples.
  void timeReading();
  /// From now on what its threads do is added to `trace`, which outlives it: as
  /// of the thread that makes updates what the caller's thread does.
  void trace(HostTrace &trace);
  /// What was timed so far.
  ReadingTime readingTime() const;
  int workerCount() const;
  /// How many threads fewer than there are CPUs should work on batches, so that
  /// workers have a CPU of their own: 1 where updates took less long so, with
  /// workers that the loader has added itself; else 0.
  int sparedThreads() const;

private:
  class Impl;

  explicit BatchLoader(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_BATCHLOADER_H

//===- Batches.h - Batches for an entry point -------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_BATCHES_H
#define TCC_TOOLS_TCCRUN_BATCHES_H

#include "runtime/data/BatchLoader.h"
#include "runtime/data/DataPlan.h"
#include "runtime/train/Session.h"

namespace tcc::tools {

/// What `--data SPEC` names for evaluations, in a plan: of a source all
/// samples, of a file NAME.toml what its `data.split` keeps for them.
runtime::Status chooseForEvaluation(const std::string &spec,
                                    runtime::DataPlan &plan);

/// Keeps which samples a batch number means among the session's records, and
/// compares it with what is there from the checkpoint that training goes on
/// from. Code::Usage where that shuffles in an order of another version. Says
/// on stderr, unless `quiet`, where the data have another number of samples.
runtime::Status recordData(runtime::TrainingSession &session,
                           const runtime::BatchLoader &loader, bool quiet);

/// Batches for an entry point, whose shapes must be static.
class Batches {
public:
  /// `accumulate_step` is for training, `eval` for evaluations.
  static runtime::Result<Batches> open(const runtime::TrainingSession &session,
                                       format::EntryKind entry,
                                       const runtime::DataPlan &plan,
                                       uint64_t seed, bool shuffles);

  const runtime::BatchLoader &loader() const { return batches; }
  /// See BatchLoader.
  runtime::Status read(int64_t number, std::span<const int64_t> next = {}) {
    return batches.read(number, next);
  }
  std::span<const runtime::TensorView> views() const { return batches.batch(); }
  double takeWait() { return batches.takeWait(); }
  void timeReading() { batches.timeReading(); }
  void trace(runtime::HostTrace &trace) { batches.trace(trace); }
  /// The positions of a batch, those that fill samples up included; 0 if
  /// samples are no sequences. They are where the batch has indices or classes
  /// of [sample, position].
  int64_t tokensOf(const runtime::BatchOrder::Batch &batch) const {
    return tokens[batches.order().variantOf(batch)];
  }
  /// How many damaged samples were met, where the plan skips them.
  std::optional<int64_t> skippedCount() const;
  /// Says on stderr, unless `quiet`, which ones were met since the last call.
  void warnOfSkipped(bool quiet) const;
  /// Why the session failed at the batch of that number; if an index of it was
  /// out of range, with its array and sample. Reads the batch again.
  runtime::Status explain(runtime::Status failure,
                          const runtime::TrainingSession &session,
                          int64_t batch);

private:
  Batches(runtime::BatchLoader loader,
          std::span<const format::Entry *const> variants,
          std::span<const runtime::BatchTensor> tensors,
          std::shared_ptr<runtime::SkippedSamples> skipped);

  std::string findBadIndex(int64_t index) const;

  runtime::BatchLoader batches;
  const format::Entry *entry;  ///< the first variant
  std::vector<int64_t> tokens; ///< of a batch of each variant
  std::shared_ptr<runtime::SkippedSamples> skipped; ///< null: the plan stops
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_BATCHES_H

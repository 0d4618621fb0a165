//===- Records.h - What the host knows of a training run --------*- C++ -*-===//
//
// Parts of a run's checkpoints that no step reads: whoever trains keeps them up
// to date. The same at all ranks.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_RECORDS_H
#define TCC_RUNTIME_TRAIN_RECORDS_H

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tcc::runtime {

/// What a training run knows of its evaluations.
struct EvaluationRecord {
  int64_t step = 0; ///< after which update the last one was
  std::map<std::string, double> metrics; ///< what it said, tables left out
  std::string best;       ///< the metric by which evaluations are compared
  double bestValue = NAN; ///< of the best one so far
  int64_t bestStep = 0;   ///< after which update that was
  int64_t waited = 0;     ///< evaluations since then
};

/// What a training run that leaves out where its loss jumps knows of it.
struct SpikeRecord {
  std::vector<double> losses;   ///< of the last updates, the oldest first
  std::vector<int64_t> leftOut; ///< batches of all ranks, ascending
};

/// The batch that is number `number` among those that are not left out, which
/// ascend.
inline int64_t findBatch(int64_t number, const std::vector<int64_t> &leftOut) {
  for (int64_t batch : leftOut)
    number += batch <= number;
  return number;
}

/// Which samples a batch number means.
struct DataRecord {
  int64_t order = 0;   ///< version of the order of samples; 0: as they lie
  int64_t samples = 0; ///< of an epoch
  int64_t batches = 0; ///< likewise; 0: not known
};

struct Records {
  std::optional<EvaluationRecord> evaluation; ///< if there was one
  std::optional<SpikeRecord> spikes;          ///< if the run looks for them
  std::optional<DataRecord> data;             ///< if it is known
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_RECORDS_H

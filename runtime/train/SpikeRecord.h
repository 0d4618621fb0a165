//===- SpikeRecord.h - The losses of a run so far ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_SPIKERECORD_H
#define TCC_RUNTIME_TRAIN_SPIKERECORD_H

#include <cstdint>
#include <vector>

namespace tcc::runtime {

/// What a training run that leaves out where its loss jumps knows of it: part
/// of its checkpoints.
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

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_SPIKERECORD_H

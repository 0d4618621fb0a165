//===- EvaluationRecord.h - The evaluations of a run so far -----*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_EVALUATIONRECORD_H
#define TCC_RUNTIME_TRAIN_EVALUATIONRECORD_H

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace tcc::runtime {

/// What a training run knows of its evaluations: part of its checkpoints.
struct EvaluationRecord {
  int64_t step = 0; ///< after which update the last one was
  std::map<std::string, double> metrics; ///< what it said, tables left out
  std::string best;       ///< the metric by which evaluations are compared
  double bestValue = NAN; ///< of the best one so far
  int64_t bestStep = 0;   ///< after which update that was
  int64_t waited = 0;     ///< evaluations since then
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_EVALUATIONRECORD_H

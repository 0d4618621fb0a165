//===- DataTimes.h - The time of updates on data ----------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DATATIMES_H
#define TCC_TOOLS_TCCRUN_DATATIMES_H

#include "runtime/train/Session.h"

#include <string>
#include <vector>

namespace tcc::tools {

/// How long is measured: so many updates, or else so many seconds.
struct MeasuredTime {
  double warmupSeconds, seconds;
  size_t fewest;
  size_t updates = 0; ///< 0: as many as fit
};

/// Updates whose batches a loader reads.
struct DataTimes {
  std::vector<double> seconds; ///< of each, ascending
  int64_t samples = 0;         ///< of all of them
  double waited = 0; ///< seconds that they waited for data, all of them
};

/// Trains on `data`, as `train --data` takes it, in place of what the recipe
/// says; all parameters change.
runtime::Result<DataTimes> timeOnData(runtime::TrainingSession &session,
                                      const std::string &data,
                                      const MeasuredTime &time);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_DATATIMES_H

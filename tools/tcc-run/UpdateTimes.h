//===- UpdateTimes.h - Which batch size trains fastest ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_UPDATETIMES_H
#define TCC_TOOLS_TCCRUN_UPDATETIMES_H

#include "runtime/base/Status.h"
#include "tools/tcc-run/Options.h"

namespace tcc::tools {

/// Updates of one package.
struct UpdateTime {
  std::string package;
  int64_t samples = 0; ///< of an update: of all batches that it accumulates
  double seconds = 0;  ///< of an update: the smaller median of two runs

  double perSample() const { return seconds / double(samples); }
};

/// Times updates of each of `packages`, which were compiled from one model for
/// batches of other sizes, on `data`, or random ones if it is empty. One
/// package is in memory at a time: all in turn, and again in reverse. Packages
/// with other parameters than the first has are an error (Code::Usage).
runtime::Result<std::vector<UpdateTime>>
timeUpdates(const RunningOptions &running,
            const std::vector<std::string> &packages, const std::string &data);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_UPDATETIMES_H

//===- ThreadTimes.h - When a thread ran, and when it could not -*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DIAGNOSIS_THREADTIMES_H
#define TCC_TOOLS_TCCRUN_DIAGNOSIS_THREADTIMES_H

#include "runtime/base/Status.h"

#include <string>

namespace tcc::tools {

/// Seconds of a thread since it began.
struct ThreadTimes {
  double passed = 0;  ///< by a clock on the wall
  double ran = 0;     ///< on a CPU
  double delayed = 0; ///< ready to run, but others ran

  ThreadTimes operator-(const ThreadTimes &before) const {
    return {passed - before.passed, ran - before.ran, delayed - before.delayed};
  }
};

/// The times of the calling thread, as the scheduler counts them; `root` is
/// where proc is. Code::Io or Code::BadData where the system does not say.
runtime::Result<ThreadTimes> readThreadTimes(const std::string &root = "");

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_DIAGNOSIS_THREADTIMES_H

//===- MergeTraces.h - One trace of all ranks -------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_MERGETRACES_H
#define TCC_TOOLS_TCCRUN_TRACE_MERGETRACES_H

#include <string>
#include <vector>

namespace tcc::tools {

struct MergeOptions {
  std::vector<std::string> files; ///< traces of the ranks of one run
  std::string output;
};

/// `tcc-run trace merge`: writes the events of all files into one, with the
/// clocks of all ranks set to that of the first file's: the ends of a
/// collective are at about one time, and the median of what is left between
/// them is how far a clock is off. Memory is taken for the collectives alone.
/// Returns the exit code.
int mergeCommand(const MergeOptions &options);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_MERGETRACES_H

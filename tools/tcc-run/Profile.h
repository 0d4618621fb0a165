//===- Profile.h - Where the time of a run goes -----------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PROFILE_H
#define TCC_TOOLS_TCCRUN_PROFILE_H

#include "runtime/executor/Context.h"
#include "tools/tcc-run/Roofline.h"

#include <nlohmann/json.hpp>

namespace tcc::tools {

/// The launches of one run, most expensive first.
struct RunProfile {
  struct Row {
    const format::Launch *launch = nullptr;
    uint64_t calls = 0;
    uint64_t nanoseconds = 0;
    int64_t flops = 0; ///< as the compiler counts them
    int64_t bytes = 0;
  };
  uint64_t nanoseconds = 0; ///< from the start of the run to its end
  std::vector<Row> rows;
  Roofline roofline;

  uint64_t inLaunches() const;
  /// The least time that the roofline allows / the time of the row.
  double shareOf(const Row &row) const;
};

/// The median of so many runs.
runtime::Result<RunProfile> profileRuns(runtime::Context &context, size_t runs);

void printProfile(const runtime::Context &context, const RunProfile &profile);
/// Adds the fields to the document of `bench`.
void describeProfile(const runtime::Context &context, const RunProfile &profile,
                     nlohmann::ordered_json &document);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PROFILE_H

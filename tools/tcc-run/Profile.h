//===- Profile.h - Where the time of runs goes ------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PROFILE_H
#define TCC_TOOLS_TCCRUN_PROFILE_H

#include "tools/tcc-run/LaunchTimes.h"
#include "tools/tcc-run/Roofline.h"

#include <nlohmann/json.hpp>

namespace tcc::tools {

/// The launches of some runs, or of some updates of a training.
struct Profile {
  size_t runs = 1;
  double nanoseconds = 0; ///< from the begin to the end of one, on average
  std::vector<LaunchTime> launches; ///< in all of them, most expensive first
  Roofline roofline;                ///< zeros where nothing is known of it

  /// Nanoseconds of the launches of one run.
  double inLaunches() const;
  /// The least time that the roofline allows / the time of the launches.
  double shareOf(const LaunchTime &launches) const;
  /// Whether the bytes of the launches take longer than their flops.
  bool isBoundByMemory(const LaunchTime &launches) const;
  /// What the machine does on the data of one run, where the host is the
  /// device of `context`.
  void measureRoofline(const runtime::Context &context);
};

/// The median of so many runs.
runtime::Result<Profile> profileRuns(runtime::Context &context, size_t runs);

/// Tables of operators, of modules and of launches. `context` is of the
/// program.
void printProfile(const runtime::Context &context, const Profile &profile);
/// Adds the fields to a document.
void describeProfile(const runtime::Context &context, const Profile &profile,
                     nlohmann::ordered_json &document);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PROFILE_H

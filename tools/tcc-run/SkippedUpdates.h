//===- SkippedUpdates.h - Why updates were skipped --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_SKIPPEDUPDATES_H
#define TCC_TOOLS_TCCRUN_SKIPPEDUPDATES_H

#include "tools/tcc-run/Updates.h"

namespace tcc::tools {

/// Looks where updates that are skipped stop being finite, a few of a run.
class SkippedUpdates {
public:
  /// Both outlive it.
  SkippedUpdates(const runtime::TrainingSession &session, Updates &updates)
      : session(session), updates(updates) {}

  /// After each update: notes one that was skipped, unless a loss scale that is
  /// too large is why.
  void note();
  /// Whether one waits to be explained.
  bool hasNoted() const { return !batches.empty(); }
  /// Why the one that waits, if one does, was skipped, for the user; empty if
  /// none does, or another rank knows. Nothing is under way.
  std::string explain();

private:
  const runtime::TrainingSession &session;
  Updates &updates;
  std::vector<int64_t> batches; ///< of the update that waits
  int64_t step = 0;             ///< that update
  int looks = 0;                ///< so far
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_SKIPPEDUPDATES_H

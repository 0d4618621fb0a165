//===- Checkpoints.h - The checkpoints of a training run --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_CHECKPOINTS_H
#define TCC_TOOLS_TCCRUN_CHECKPOINTS_H

#include "runtime/train/Checkpoint.h"
#include "runtime/train/FolderLock.h"

#include <optional>

namespace tcc::tools {

/// How a run saves.
struct SavingOptions {
  std::string folder; ///< empty: of a run that writes none
  int64_t every = 0;  ///< updates between checkpoints; 0: at the end only
  runtime::Retention retention;
  bool waits = false; ///< steps wait until each is written
};

/// The checkpoints that one run writes into a folder, most of them while steps
/// go on. All ranks make the same calls. A disk that is full may have room
/// later: a save that fails is a warning, and all is as before, until several
/// in a row have failed. What is not to be kept any more is removed.
class Checkpoints {
public:
  /// What it does and what updates wait for is added to `trace`, null for none,
  /// which outlives it.
  Checkpoints(bool quiet, runtime::HostTrace *trace)
      : quiet(quiet), trace(trace) {}

  /// Takes the folder for this run, and removes what runs before it left half
  /// written. Fails where another one writes there. The session outlives it.
  runtime::Status open(runtime::TrainingSession &session,
                       const SavingOptions &options);

  /// Saves what the session has, unless that was saved before, or begins to,
  /// after it has waited for the end of one under way.
  runtime::Status save();
  /// Whether this rank has done its part of what is under way: then, at all
  /// ranks, it is time to `advance`.
  bool isReady() const { return background && background->isReady(); }
  bool isActive() const { return background && background->isActive(); }
  runtime::Status advance();
  /// Saves what the session has after the last update, and tries it again until
  /// several saves in a row have failed.
  runtime::Status saveLast();

  /// Seconds for which training waited in `save` and `advance` since the last
  /// call.
  double takeStall() { return std::exchange(stalled, 0); }

  /// The path of the one that was written last; empty if none was.
  const std::string &last() const { return path; }

private:
  /// What two checkpoints may differ in.
  struct Saved {
    int64_t step = -1, evaluatedStep = -1;
    bool operator==(const Saved &) const = default;
  };

  Saved describeState() const;
  runtime::Status reserveCopy();
  runtime::Result<std::string> saveNow() const;
  runtime::Status begin();
  runtime::Status goOn();
  runtime::Status finish();
  runtime::Status noteEnd(runtime::Result<std::string> saved);
  void note(std::string_view kind, std::string_view text) const;
  void warnOfRemoval(const runtime::Status &status) const;

  SavingOptions options;
  bool quiet;
  runtime::HostTrace *trace;
  std::optional<runtime::FolderLock> lock; ///< of rank 0
  runtime::TrainingSession *session = nullptr;
  /// Nothing where steps wait.
  std::optional<runtime::BackgroundSave> background;
  std::string path;
  Saved written;      ///< what `path` has
  Saved begun;        ///< by the save under way, or the last one
  int failures = 0;   ///< since the last one that was written
  double stalled = 0; ///< seconds: see takeStall
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_CHECKPOINTS_H

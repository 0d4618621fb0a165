#include "tools/tcc-run/Checkpoints.h"

#include "runtime/ranks/Communicator.h"
#include "tools/tcc-run/TrainSession.h"

#include <chrono>
#include <iostream>
#include <thread>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

namespace {

/// Adds the seconds of its life.
class Stopwatch {
public:
  Stopwatch(double &seconds, HostTrace *trace)
      : seconds(seconds), timer(trace, HostWork::AwaitCheckpoint) {}
  ~Stopwatch() { seconds += timer.seconds(); }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

private:
  double &seconds;
  HostTimer timer;
};

} // namespace

static Status agree(const TrainingSession &session, Status own) {
  Communicator *ranks = session.communicator();
  return ranks ? ranks->agree(own) : std::move(own);
}

void Checkpoints::note(std::string_view kind, std::string_view text) const {
  if (!quiet && session->rank() == 0)
    std::cerr << concat("tcc-run: ", kind, ": ", text, "\n");
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

/// Where a budget has no room for a copy steps wait for checkpoints, at all
/// ranks.
Status Checkpoints::reserveCopy() {
  Status room = checkRoomForCopy(*session);
  return room.ok() ? session->reserveCopy() : std::move(room);
}

Status Checkpoints::open(TrainingSession &opened, const SavingOptions &given) {
  options = given;
  if (options.folder.empty())
    return Status();
  session = &opened;
  Status status;
  if (session->rank() == 0) {
    auto taken = FolderLock::take(options.folder);
    status = taken.ok() ? cleanCheckpoints(options.folder) : taken.takeStatus();
    if (taken.ok())
      lock.emplace(std::move(*taken));
  }
  if (lock && !lock->takenFrom().empty())
    note("note", concat("taking '", options.folder, "' over from ",
                        lock->takenFrom(), ", which ended without a word"));
  status = agree(*session, std::move(status));
  if (!status.ok() || options.waits || options.every == 0)
    return status;
  if (Status room = agree(*session, reserveCopy()); room.ok())
    background.emplace(*session, options.folder, options.retention, trace);
  else if (room.code() == Code::OutOfMemory)
    note("note", concat("steps will wait for checkpoints: ", room.message()));
  else
    return room;
  return Status();
}

//===----------------------------------------------------------------------===//
// One checkpoint
//===----------------------------------------------------------------------===//

/// What cannot be removed is in nobody's way.
void Checkpoints::warnOfRemoval(const Status &status) const {
  if (!status.ok())
    note("warning", status.message());
}

Result<std::string> Checkpoints::saveNow() const {
  Result<std::string> saved = saveCheckpoint(*session, options.folder);
  // Also where the first rank alone writes all know what became of it.
  Status status = agree(*session, saved.ok() ? Status() : saved.takeStatus());
  if (!status.ok())
    return status;
  if (session->rank() == 0)
    warnOfRemoval(removeOldCheckpoints(options.folder, options.retention));
  return saved;
}

/// Notes the end of the save begun last: a checkpoint is written, or it failed.
Status Checkpoints::noteEnd(Result<std::string> saved) {
  constexpr int kMostFailures = 3;
  if (saved.ok()) {
    path = *saved;
    written = begun;
    failures = 0;
    return Status();
  }
  Status status = saved.takeStatus();
  if (status.code() != Code::Io || ++failures == kMostFailures)
    return status;
  note("warning", concat("no checkpoint after update ", begun.step, ": ",
                         status.message()));
  return Status();
}

Checkpoints::Saved Checkpoints::describeState() const {
  const std::optional<EvaluationRecord> &record = session->records().evaluation;
  return {session->stepCount(), record ? record->step : -1};
}

Status Checkpoints::begin() {
  Status begun = background->begin();
  return begun.ok() ? Status() : noteEnd(std::move(begun));
}

Status Checkpoints::goOn() {
  Result<std::string> path = background->advance();
  if (background->isActive())
    return Status();
  warnOfRemoval(background->removal());
  return noteEnd(std::move(path));
}

Status Checkpoints::advance() {
  Stopwatch watch(stalled, trace);
  return goOn();
}

Status Checkpoints::finish() {
  while (isActive())
    if (Status status = goOn(); !status.ok())
      return status;
  return Status();
}

Status Checkpoints::save() {
  Stopwatch watch(stalled, trace);
  if (Status status = finish(); !status.ok())
    return status;
  if (!session || written == describeState())
    return Status();
  if (Status status = session->compareVariables(); !status.ok())
    return status;
  begun = describeState();
  return background ? begin() : noteEnd(saveNow());
}

Status Checkpoints::saveLast() {
  constexpr std::chrono::seconds kPause(1);
  if (Status status = finish(); !status.ok())
    return status;
  background.reset();
  for (;;) {
    Status status = save();
    if (!status.ok() || !session || written == describeState())
      return status;
    std::this_thread::sleep_for(kPause);
  }
}

#include "tools/tcc-run/Checkpoints.h"

#include "runtime/ranks/Communicator.h"
#include "runtime/train/Checkpoint.h"

#include <chrono>
#include <iostream>
#include <thread>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Status Checkpoints::open(const TrainingSession &session) {
  if (folder.empty())
    return Status();
  Status status;
  if (session.rank() == 0) {
    auto taken = FolderLock::take(folder);
    status = taken.ok() ? cleanCheckpoints(folder) : taken.takeStatus();
    if (taken.ok())
      lock.emplace(std::move(*taken));
  }
  if (lock && !lock->takenFrom().empty() && !quiet)
    std::cerr << concat("tcc-run: note: taking '", folder, "' over from ",
                        lock->takenFrom(), ", which ended without a word\n");
  Communicator *ranks = session.communicator();
  return ranks ? ranks->agree(status) : std::move(status);
}

Status Checkpoints::trySave(const TrainingSession &session) {
  Result<std::string> saved = saveCheckpoint(session, folder);
  Status status = saved.ok() ? Status() : saved.takeStatus();
  // Also where the first rank alone writes all know what became of it.
  if (Communicator *ranks = session.communicator())
    status = ranks->agree(status);
  if (!status.ok())
    return status;
  savedStep = session.stepCount();
  path = *saved;
  failures = 0;
  removeOld(session);
  return Status();
}

/// What cannot be removed is in nobody's way.
void Checkpoints::removeOld(const TrainingSession &session) const {
  if (session.rank() != 0)
    return;
  if (Status status = removeOldCheckpoints(folder, retention);
      !status.ok() && !quiet)
    std::cerr << concat("tcc-run: warning: ", status.message(), "\n");
}

Status Checkpoints::save(const TrainingSession &session, bool isLast) {
  constexpr int kMostFailures = 3;
  constexpr std::chrono::seconds kPause(1);
  if (folder.empty() || savedStep == session.stepCount())
    return Status();
  if (Status status = session.compareVariables(); !status.ok())
    return status;
  for (;;) {
    Status status = trySave(session);
    if (status.code() != Code::Io || ++failures == kMostFailures)
      return status;
    if (!quiet && session.rank() == 0)
      std::cerr << concat("tcc-run: warning: no checkpoint after update ",
                          session.stepCount(), ": ", status.message(), "\n");
    if (!isLast)
      return Status();
    std::this_thread::sleep_for(kPause);
  }
}

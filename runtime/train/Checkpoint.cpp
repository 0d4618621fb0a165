#include "runtime/train/Checkpoint.h"

#include "runtime/ranks/Communicator.h"
#include "runtime/train/CheckpointWriter.h"

#include <sys/resource.h>

using namespace tcc;
using namespace tcc::runtime;

Result<std::string> runtime::saveCheckpoint(const TrainingSession &session,
                                            const std::string &root,
                                            uint64_t mostFileBytes) {
  CheckpointWriter writer(session, root, mostFileBytes);
  Status status = writer.begin(/*copy=*/nullptr);
  if (status.ok())
    status = writer.gather(writer.write());
  if (status.ok()) {
    status = writer.publish();
    if (Communicator *ranks = session.communicator();
        ranks && writer.isShared())
      status = ranks->agree(status);
  }
  if (status.ok())
    return writer.getPath();
  writer.abandon();
  return status;
}

//===----------------------------------------------------------------------===//
// Beside training
//===----------------------------------------------------------------------===//

BackgroundSave::BackgroundSave(TrainingSession &session, std::string root,
                               const Retention &retention, HostTrace *trace)
    : session(session), root(std::move(root)), retention(retention),
      trace(trace) {}

BackgroundSave::~BackgroundSave() {
  if (thread.joinable())
    thread.join();
  if (writer && !(isPublishing && done.ok()))
    writer->abandon();
}

Status BackgroundSave::agree(Status own) const {
  Communicator *ranks = session.communicator();
  return ranks ? ranks->agree(own) : std::move(own);
}

/// Steps go first where there is a core for one of both.
void BackgroundSave::work(std::function<Status()> task) {
  constexpr int kNice = 10;
  isDone = false;
  thread = std::thread([this, task = std::move(task)] {
    setpriority(PRIO_PROCESS, /*of this thread*/ 0, kNice);
    done = task();
    isDone = true;
  });
}

Status BackgroundSave::write() {
  HostTimer timer(trace, HostWork::WriteCheckpoint, kCheckpointTrack);
  return writer->write();
}

Status BackgroundSave::publish() {
  HostTimer timer(trace, HostWork::PublishCheckpoint, kCheckpointTrack);
  Status status = writer->publish();
  if (status.ok() && session.rank() == 0)
    removed = removeOldCheckpoints(root, retention);
  return status;
}

Status BackgroundSave::begin() {
  if (Status status = agree(session.reserveCopy()); !status.ok())
    return status;
  writer.emplace(session, root);
  // Also where the first rank alone writes all know whether it has begun.
  Status status = agree(writer->begin(&session.copyOfVariables()));
  if (!status.ok()) {
    writer->abandon();
    writer.reset();
    return status;
  }
  isPublishing = !writer->isShared();
  work([this] {
    Status written = write();
    return written.ok() && isPublishing ? publish() : std::move(written);
  });
  return Status();
}

Result<std::string> BackgroundSave::conclude(Status status) {
  std::string path = writer->getPath();
  status = agree(std::move(status));
  if (!status.ok())
    writer->abandon();
  writer.reset();
  return status.ok() ? Result<std::string>(std::move(path)) : std::move(status);
}

Result<std::string> BackgroundSave::advance() {
  thread.join();
  Status status = std::move(done);
  if (isPublishing)
    return conclude(std::move(status));
  status = writer->gather(std::move(status));
  if (!status.ok())
    return conclude(std::move(status));
  isPublishing = true;
  work([this] { return publish(); });
  return std::string();
}

Result<std::string> BackgroundSave::finish() {
  for (;;)
    if (Result<std::string> path = advance(); !isActive())
      return path;
}

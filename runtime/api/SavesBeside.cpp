#include "runtime/api/SavesBeside.h"

#include "runtime/ranks/Communicator.h"

using namespace tcc;
using namespace tcc::runtime;

/// Takes the folder, where it is another one than before.
Status SavesBeside::open(const std::string &folder,
                         const Retention &retention) {
  background.reset();
  if (folder != root) {
    root.clear();
    lock.reset();
    Status status;
    if (session.rank() == 0) {
      auto taken = FolderLock::take(folder);
      status = taken.ok() ? cleanCheckpoints(folder) : taken.takeStatus();
      if (taken.ok())
        lock.emplace(std::move(*taken));
    }
    if (Communicator *ranks = session.communicator())
      status = ranks->agree(status);
    if (!status.ok()) {
      lock.reset();
      return status;
    }
    root = folder;
  }
  background.emplace(session, root, retention);
  return Status();
}

Status SavesBeside::begin(const std::string &folder,
                          const Retention &retention) {
  if (Result<std::string> last = take(); !last.ok())
    return last.takeStatus();
  if (Status status = open(folder, retention); !status.ok())
    return status;
  if (Status status = session.compareVariables(); !status.ok())
    return status;
  return background->begin();
}

void SavesBeside::settle() {
  if (!background || !background->isActive())
    return;
  Result<std::string> ended = background->finish();
  if (ended.ok())
    path = *ended;
  else
    failure = ended.takeStatus();
}

Result<std::string> SavesBeside::take() {
  settle();
  Status failed = std::exchange(failure, Status());
  std::string written = std::exchange(path, "");
  return failed.ok() ? Result<std::string>(std::move(written))
                     : std::move(failed);
}

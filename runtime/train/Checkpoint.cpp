#include "runtime/train/Checkpoint.h"

#include "runtime/base/FileCalls.h"
#include "runtime/base/OutputFile.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/train/CheckpointFiles.h"
#include "runtime/train/CheckpointFormat.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

/// One checkpoint that is written, at each rank. Where ranks divide variables
/// all of them make the same calls.
class Writer {
public:
  Writer(const TrainingSession &session, const std::string &root)
      : session(session), variables(session.variables()), root(root),
        path(concat(root, "/", kStepPrefix, session.stepCount())) {
    if (variables.isAnyDivided())
      ranks = session.communicator();
    for (int rank = 0; rank < session.rankCount(); ++rank)
      parts.push_back(describePart(variables, rank));
  }

  Status write();
  const std::string &getPath() const { return path; }

private:
  bool isFirst() const { return session.rank() == 0; }
  Status agree(Status own);
  Status begin();
  Status writeFiles();
  Status gather();
  Status list();
  Status listPart(int rank, std::map<std::string_view, ListedTensor> &listed);
  Status publish();

  const TrainingSession &session;
  const Variables &variables;
  std::string root, path, temporary;
  Communicator *ranks = nullptr;      ///< null where rank 0 has everything
  std::vector<Shard> parts;           ///< of each rank
  std::vector<format::Digest> shared; ///< of rank 0's shared file
  /// Of each rank's part as many digests as the one with most pieces has.
  std::vector<format::Digest> digests;
};

} // namespace

/// Makes the folder, whose name all ranks get.
Status Writer::begin() {
  int64_t process = getpid();
  if (ranks)
    if (Status status =
            ranks->broadcast(&process, &process, /*count=*/1, DType::i64,
                             /*root=*/0, "the folder of a checkpoint");
        !status.ok())
      return status;
  temporary = concat(path, kUnfinished, process);
  if (!isFirst())
    return Status();
  Status status = io::removeAll(temporary);
  return status.ok() ? io::makeFolders(temporary) : std::move(status);
}

Status Writer::writeFiles() {
  auto snapshot = variables.snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  auto write = [&](Shard shard, std::vector<format::Digest> &to) {
    auto written =
        writeShard(std::move(shard), variables, *snapshot, temporary);
    if (!written.ok())
      return written.takeStatus();
    to = std::move(*written);
    return Status();
  };
  if (isFirst())
    if (Status status = write(describeShared(variables), shared); !status.ok())
      return status;
  const Shard &part = parts[session.rank()];
  return part.pieces.empty() ? Status() : write(part, digests);
}

/// Gives rank 0 the digests of all.
Status Writer::gather() {
  if (!ranks)
    return Status();
  size_t most = 0;
  for (const Shard &part : parts)
    most = std::max(most, part.pieces.size());
  std::vector<format::Digest> own = std::move(digests);
  own.resize(most);
  digests.resize(most * parts.size());
  return ranks->allGather(own.data(), digests.data(),
                          most * sizeof(format::Digest), DType::u8,
                          "digests of a checkpoint");
}

/// What the rank wrote must be there: a folder that only its own host has
/// restores nothing.
Status Writer::listPart(int rank,
                        std::map<std::string_view, ListedTensor> &listed) {
  const Shard &part = parts[rank];
  if (part.pieces.empty())
    return Status();
  std::string file = concat(temporary, "/", part.file);
  uint64_t expected = part.offsets.back();
  std::error_code error;
  uint64_t found = fs::file_size(file, error);
  if (error || found != expected)
    return makeError(Code::Io, "rank ", rank, " wrote '", part.file, "' of ",
                     expected, " bytes, which rank 0 does not find in '",
                     temporary, "': all hosts are to share that folder");
  size_t most = digests.size() / parts.size();
  listShard(part, variables, std::span(digests).subspan(rank * most), listed);
  return Status();
}

Status Writer::list() {
  Manifest manifest;
  manifest.step = session.stepCount();
  manifest.updates = session.read(format::StepField::updates);
  manifest.batches = session.batchCount();
  manifest.program = fingerprintOf(variables);
  manifest.recipe = recipeOf(session);
  std::map<std::string_view, ListedTensor> listed;
  listShard(describeShared(variables), variables, shared, listed);
  for (int rank = 0; rank < session.rankCount(); ++rank)
    if (Status status = listPart(rank, listed); !status.ok())
      return status;
  for (auto &[name, tensor] : listed) {
    std::ranges::sort(tensor.slices, {}, &StoredSlice::begin);
    manifest.tensors.push_back(std::move(tensor));
  }
  auto file = OutputFile::create(concat(temporary, "/", kManifestFile));
  if (!file.ok())
    return file.takeStatus();
  file->write(printManifest(manifest));
  return file->commit();
}

/// Before the folder has its name the disk keeps all that is in it. Where there
/// is an older one of the step, that has its own name, or kReplacedSuffix.
Status Writer::publish() {
  std::string old = concat(path, kReplacedSuffix);
  std::error_code error;
  Status status = list();
  if (status.ok())
    status = io::syncFolder(temporary);
  if (status.ok() && fs::exists(path, error)) {
    status = io::removeAll(old);
    if (status.ok())
      status = io::move(path, old);
  }
  if (status.ok())
    status = io::move(temporary, path);
  if (status.ok())
    status = io::syncFolder(root);
  if (status.ok()) // what is left of it another run removes
    (void)io::removeAll(old);
  return status;
}

/// What one rank cannot do fails at all of them, which may go on.
Status Writer::agree(Status own) {
  return ranks ? ranks->agree(own) : std::move(own);
}

Status Writer::write() {
  if (!ranks && !isFirst())
    return Status();
  Status status = agree(begin());
  if (status.ok())
    status = agree(writeFiles());
  if (status.ok())
    status = gather();
  if (status.ok())
    status = agree(isFirst() ? publish() : Status());
  if (!status.ok() && isFirst())
    (void)io::removeAll(temporary);
  return status;
}

Result<std::string> runtime::saveCheckpoint(const TrainingSession &session,
                                            const std::string &root) {
  // Of another number of ranks not all parts are here.
  if (Status status = session.checkTrainable(); !status.ok())
    return status;
  if (Status status =
          checkPlace(session, session.read(format::StepField::place));
      !status.ok())
    return status;
  Writer writer(session, root);
  if (Status status = writer.write(); !status.ok())
    return status;
  return writer.getPath();
}

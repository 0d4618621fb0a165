#include "runtime/train/CheckpointWriter.h"

#include "runtime/base/FileCalls.h"
#include "runtime/base/OutputFile.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/train/CheckpointFormat.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

CheckpointWriter::CheckpointWriter(const TrainingSession &session,
                                   const std::string &root,
                                   uint64_t mostFileBytes)
    : session(session), variables(session.variables()), root(root),
      path(concat(root, "/", kStepPrefix, session.stepCount())),
      rank(session.rank()), shared(describeShared(variables, mostFileBytes)) {
  if (variables.isAnyDivided())
    ranks = session.communicator();
  for (int of = 0; of < session.rankCount(); ++of)
    parts.push_back(describePart(variables, of, mostFileBytes));
}

Status CheckpointWriter::agree(Status own) const {
  return ranks ? ranks->agree(own) : std::move(own);
}

//===----------------------------------------------------------------------===//
// Begin
//===----------------------------------------------------------------------===//

/// Its name all ranks get. It is synchronized with the checkpoint's own name:
/// steps wait for no disk here, but the first time.
Status CheckpointWriter::makeFolder() {
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
  Status status = io::makeFolders(root);
  if (status.ok())
    status = io::removeAll(temporary);
  return status.ok() ? io::makeFolder(temporary) : std::move(status);
}

void CheckpointWriter::describe() {
  manifest.step = session.stepCount();
  manifest.updates = session.read(format::StepField::updates);
  manifest.batches = session.batchCount();
  manifest.program = fingerprintOf(variables);
  manifest.recipe = recipeOf(session);
  manifest.records = session.records();
}

Status CheckpointWriter::begin(Memory *copy) {
  // With another number of ranks not all parts are here.
  if (Status status = session.checkTrainable(); !status.ok())
    return status;
  if (Status status =
          checkPlace(session, session.read(format::StepField::place));
      !status.ok() || (!ranks && !isFirst()))
    return status;
  Status status = makeFolder();
  if (status.ok()) {
    describe();
    auto taken = copy ? variables.snapshotInto(*copy) : variables.snapshot();
    if (taken.ok())
      snapshot.emplace(std::move(*taken));
    else
      status = taken.takeStatus();
  }
  return agree(std::move(status));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Status CheckpointWriter::write() {
  if (!snapshot)
    return Status();
  auto write = [&](std::span<const Shard> files,
                   std::vector<format::Digest> &to) {
    for (const Shard &file : files) {
      auto written = writeShard(file, variables, *snapshot, temporary);
      if (!written.ok())
        return written.takeStatus();
      to.insert(to.end(), written->begin(), written->end());
    }
    return Status();
  };
  if (isFirst())
    if (Status status = write(shared, sharedDigests); !status.ok())
      return status;
  return write(parts[rank], digests);
}

static size_t countPieces(std::span<const Shard> files) {
  size_t count = 0;
  for (const Shard &file : files)
    count += file.pieces.size();
  return count;
}

/// Gives rank 0 the digests of all.
Status CheckpointWriter::exchange() {
  if (!ranks)
    return Status();
  size_t most = 0;
  for (const std::vector<Shard> &part : parts)
    most = std::max(most, countPieces(part));
  std::vector<format::Digest> own = std::move(digests);
  own.resize(most);
  digests.resize(most * parts.size());
  return ranks->allGather(own.data(), digests.data(),
                          most * sizeof(format::Digest), DType::u8,
                          "digests of a checkpoint");
}

Status CheckpointWriter::gather(Status written) {
  Status status = agree(std::move(written));
  return status.ok() ? exchange() : std::move(status);
}

//===----------------------------------------------------------------------===//
// The manifest, and the name
//===----------------------------------------------------------------------===//

/// What the rank wrote must be there: a folder that only its own host has
/// restores nothing.
static Status checkFile(const Shard &part, int rank,
                        const std::string &folder) {
  uint64_t expected = part.offsets.back();
  std::error_code error;
  uint64_t found = fs::file_size(concat(folder, "/", part.file), error);
  if (!error && found == expected)
    return Status();
  return makeError(Code::Io, "rank ", rank, " wrote '", part.file, "' of ",
                   expected, " bytes, which rank 0 does not find in '", folder,
                   "': all hosts are to share that folder");
}

Status
CheckpointWriter::listPart(int of,
                           std::map<std::string_view, ListedTensor> &listed) {
  size_t most = digests.size() / parts.size();
  auto own = std::span(digests).subspan(of * most);
  for (const Shard &part : parts[of]) {
    if (Status status = checkFile(part, of, temporary); !status.ok())
      return status;
    listShard(part, variables, own, listed);
    own = own.subspan(part.pieces.size());
  }
  return Status();
}

static Status writeText(const std::string &path, const std::string &text) {
  auto file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  file->write(text);
  return file->commit();
}

Status CheckpointWriter::writeIndex() const {
  std::vector<Shard> all = shared;
  for (const std::vector<Shard> &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return writeText(concat(temporary, "/", kIndexFile), printIndex(all));
}

Status CheckpointWriter::list() {
  std::map<std::string_view, ListedTensor> listed;
  auto own = std::span<const format::Digest>(sharedDigests);
  for (const Shard &file : shared) {
    listShard(file, variables, own, listed);
    own = own.subspan(file.pieces.size());
  }
  for (int of = 0; of < static_cast<int>(parts.size()); ++of)
    if (Status status = listPart(of, listed); !status.ok())
      return status;
  for (auto &[name, tensor] : listed) {
    std::ranges::sort(tensor.slices, {}, &StoredSlice::begin);
    manifest.tensors.push_back(std::move(tensor));
  }
  if (Status status = writeIndex(); !status.ok())
    return status;
  return writeText(concat(temporary, "/", kManifestFile),
                   printManifest(manifest));
}

/// Where there is an older one of the step, that has its own name, or
/// kReplacedSuffix.
Status CheckpointWriter::publish() {
  if (!snapshot || !isFirst())
    return Status();
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

void CheckpointWriter::abandon() {
  if (isFirst() && !temporary.empty())
    (void)io::removeAll(temporary);
}

#include "runtime/train/Checkpoint.h"

#include "runtime/base/OutputFile.h"
#include "runtime/package/Digest.h"
#include "runtime/package/Names.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/train/CheckpointFiles.h"
#include "runtime/train/TensorMatch.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

static constexpr char kManifestFile[] = "manifest.json";
static constexpr std::string_view kFolderPrefix = "step-";

/// What a session's variables are for, whatever parts of them lie here: another
/// optimizer or model has another.
static std::string fingerprintOf(const Variables &variables) {
  // By name: how they lie in memory is each package's own.
  std::map<std::string_view, std::string> lines;
  for (const LogicalTensor &tensor : variables.tensors()) {
    const format::Variable &variable = variables.describe(tensor.variable);
    if (!isState(variable))
      continue;
    std::string &text = lines[tensor.name];
    text = concat(tensor.name, "\n", traitsOf(tensor.dtype).name, "\n",
                  format::nameOf(variable.kind()), "\n", tensor.parameter);
    for (int64_t extent : tensor.shape)
      text += concat("\n", extent);
    text += "\n";
  }
  DigestStream digest;
  for (const auto &[name, text] : lines)
    digest.update(std::as_bytes(std::span(text)));
  return formatDigest(digest.finish());
}

/// KEY=VALUE lines of what the package compiled in.
static ordered_json recipeOf(const TrainingSession &session) {
  ordered_json keys = ordered_json::object();
  const auto *recipe = session.executable().program().recipe();
  std::string_view text = recipe ? recipe->string_view() : "";
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    size_t at = std::min(line.find('='), line.size());
    keys[std::string(line.substr(0, at))] =
        line.substr(std::min(at + 1, line.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return keys;
}

/// What ranks accumulate is each one's own, or a part of a tree: no checkpoint
/// has it.
static Status checkPlace(const TrainingSession &session, int64_t place) {
  if (place == 0 || (session.exactBatches() == 0 && session.rankCount() == 1))
    return Status();
  return makeError(Code::Usage, "a checkpoint of several ranks, or with ",
                   "parallel.exact, is of the time between two updates, and "
                   "this one comes after ",
                   place, " batches of one");
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Status cannotWrite(const std::string &path,
                          const std::error_code &error) {
  return makeError(Code::Io, "cannot write '", path, "': ", error.message());
}

namespace {

/// One checkpoint that is written, at each rank. Where ranks divide variables
/// all of them make the same calls.
class Writer {
public:
  Writer(const TrainingSession &session, std::string path)
      : session(session), variables(session.variables()),
        path(std::move(path)) {
    if (variables.isAnyDivided())
      ranks = session.communicator();
    for (int rank = 0; rank < session.rankCount(); ++rank)
      parts.push_back(describePart(variables, rank));
  }

  Status write();

private:
  bool isFirst() const { return session.rank() == 0; }
  Status begin();
  Status writeFiles();
  Status gather();
  Status list();
  Status listPart(int rank, std::map<std::string_view, ListedTensor> &listed);
  Status replace();

  const TrainingSession &session;
  const Variables &variables;
  std::string path, temporary;
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
  std::error_code error;
  if (isFirst()) {
    temporary = concat(path, ".tmp", process);
    fs::remove_all(temporary, error);
    if (!fs::create_directories(temporary, error) && error)
      return cannotWrite(path, error);
  }
  if (ranks)
    if (Status status =
            ranks->broadcast(&process, &process, /*count=*/1, DType::i64,
                             /*root=*/0, "the folder of a checkpoint");
        !status.ok())
      return status;
  temporary = concat(path, ".tmp", process);
  return Status();
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

/// Puts the folder in the place of an older one.
Status Writer::replace() {
  std::string old = temporary + ".old";
  std::error_code error;
  if (fs::exists(path, error))
    fs::rename(path, old, error);
  if (!error)
    fs::rename(temporary, path, error);
  if (error)
    return cannotWrite(path, error);
  fs::remove_all(old, error);
  return Status();
}

Status Writer::write() {
  if (!ranks && !isFirst())
    return Status();
  Status status = begin();
  if (status.ok())
    status = writeFiles();
  if (status.ok())
    status = gather();
  if (status.ok() && isFirst())
    status = list();
  if (status.ok() && isFirst())
    status = replace();
  if (status.ok())
    return ranks ? ranks->barrier() : Status();
  // Others that wait for this rank hear of it.
  if (ranks)
    ranks->leave();
  if (isFirst()) {
    std::error_code error;
    fs::remove_all(temporary, error);
  }
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
  std::string path = concat(root, "/", kFolderPrefix, session.stepCount());
  if (Status status = Writer(session, path).write(); !status.ok())
    return status;
  return path;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// N of a folder step-N.
static std::optional<int64_t> readStep(const std::string &name) {
  if (!name.starts_with(kFolderPrefix))
    return std::nullopt;
  int64_t step = -1;
  const char *end = name.data() + name.size();
  auto [rest, failure] =
      std::from_chars(name.data() + kFolderPrefix.size(), end, step);
  bool isStep = failure == std::errc() && rest == end && step >= 0;
  return isStep ? std::optional(step) : std::nullopt;
}

/// Code::BadData if not all of a checkpoint is there, other codes if that
/// cannot be read. Whether its bytes are right is asked once it is restored.
static Status checkComplete(const std::string &folder) {
  std::string path = concat(folder, "/", kManifestFile);
  if (Status status = checkExists(path); !status.ok())
    return status;
  Result<Manifest> manifest = readManifest(path);
  if (!manifest.ok())
    return manifest.takeStatus();
  // Files of other versions have other names and keys.
  if (!checkVersion(*manifest, path).ok())
    return Status();
  auto files = CheckpointFiles::open(folder, std::move(*manifest));
  return files.ok() ? Status() : files.takeStatus();
}

Result<CheckpointSearch>
runtime::findNewestCheckpoint(const std::string &root) {
  std::map<int64_t, std::string, std::greater<>> folders;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(root, error))
    if (auto step = readStep(entry.path().filename()))
      folders[*step] = entry.path();
  CheckpointSearch search;
  for (const auto &[step, folder] : folders) {
    Status status = checkComplete(folder);
    if (status.ok()) {
      search.newest = folder;
      break;
    }
    if (status.code() != Code::BadData)
      return status;
    search.passedOver.emplace_back(status.message());
  }
  return search;
}

/// Names the keys whose values a package compiled in otherwise.
static Status checkRecipe(const ordered_json &there,
                          const TrainingSession &session,
                          const std::string &path) {
  auto print = [](const ordered_json &value) {
    return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  ordered_json here = recipeOf(session);
  std::string differences;
  for (const auto &[key, value] : here.items())
    if (!there.contains(key) || there[key] != value)
      differences += concat("\n  ", key, " = ", print(value), ", was ",
                            there.contains(key) ? print(there[key]) : "absent");
  for (const auto &[key, value] : there.items())
    if (!here.contains(key))
      differences += concat("\n  no ", key, ", was ", print(value));
  if (differences.empty())
    return Status();
  return makeError(Code::Usage, "'", path,
                   "' was written with another recipe:", differences);
}

/// The field `place` of the step in a checkpoint.
static int64_t readPlace(const Variables &variables,
                         std::span<const TensorMatch> matches) {
  int64_t place = 0;
  auto field = variables.find(format::StepField::place);
  for (const TensorMatch &match : matches)
    if (field == match.variable) // an integer of 8 bytes: verified
      for (const Overlap &overlap :
           findOverlaps(match.pieces.front(), *match.source))
        std::memcpy(&place, overlap.part.bytes.data(), sizeof(place));
  return place;
}

Status runtime::restoreCheckpoint(TrainingSession &session,
                                  const std::string &path) {
  std::string manifestPath = concat(path, "/", kManifestFile);
  Result<Manifest> manifest = readManifest(manifestPath);
  if (!manifest.ok())
    return manifest.takeStatus();
  if (Status status = checkVersion(*manifest, manifestPath); !status.ok())
    return status;
  if (Status status = checkRecipe(manifest->recipe, session, path);
      !status.ok())
    return status;
  std::string program = manifest->program;
  auto files = CheckpointFiles::open(path, std::move(*manifest));
  if (!files.ok())
    return files.takeStatus();
  MatchOptions options;
  options.isRequired = isState;
  options.isAllowed = isState;
  auto matches = matchTensors(session.variables(), session.rank(),
                              files->sources(), path, options);
  if (!matches.ok())
    return matches.takeStatus();
  if (program != fingerprintOf(session.variables()))
    return makeError(Code::Usage, "'", path,
                     "' was written by a package of another model");
  if (Status status = files->verify(*matches); !status.ok())
    return status;
  if (Status status =
          checkPlace(session, readPlace(session.variables(), *matches));
      !status.ok())
    return status;
  if (Status status = copyTensors(session.variables(), *matches); !status.ok())
    return status;
  return session.writeRank();
}

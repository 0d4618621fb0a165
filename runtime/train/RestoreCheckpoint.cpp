#include "runtime/package/Names.h"
#include "runtime/ranks/Communicator.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CheckpointFiles.h"
#include "runtime/train/CheckpointFormat.h"
#include "runtime/train/TensorMatch.h"

#include <cstring>
#include <optional>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::ordered_json;

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

namespace {

/// A checkpoint that fits a session, whose bytes are those that were written.
class VerifiedCheckpoint {
public:
  /// Changes nothing.
  static Result<VerifiedCheckpoint> open(const TrainingSession &session,
                                         const std::string &path);
  Status copyTo(TrainingSession &session) const {
    session.records() = records;
    return copyTensors(session.variables(), matches);
  }

private:
  VerifiedCheckpoint(CheckpointFiles files) : files(std::move(files)) {}

  Status match(const TrainingSession &session, const std::string &path);

  CheckpointFiles files;
  std::vector<TensorMatch> matches; ///< views of the files
  Records records;
};

} // namespace

Status VerifiedCheckpoint::match(const TrainingSession &session,
                                 const std::string &path) {
  MatchOptions options;
  options.isRequired = isState;
  options.isAllowed = isState;
  auto matched = matchTensors(session.variables(), session.rank(),
                              files.sources(), path, options);
  if (!matched.ok())
    return matched.takeStatus();
  matches = std::move(*matched);
  return Status();
}

Result<VerifiedCheckpoint>
VerifiedCheckpoint::open(const TrainingSession &session,
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
  Records records = manifest->records;
  auto files = CheckpointFiles::open(path, std::move(*manifest));
  if (!files.ok())
    return files.takeStatus();
  VerifiedCheckpoint checkpoint(std::move(*files));
  checkpoint.records = std::move(records);
  if (Status status = checkpoint.match(session, path); !status.ok())
    return status;
  if (program != fingerprintOf(session.variables()))
    return makeError(Code::Usage, "'", path,
                     "' was written by a package of another model");
  if (Status status = checkpoint.files.verify(checkpoint.matches); !status.ok())
    return status;
  if (Status status = checkPlace(
          session, readPlace(session.variables(), checkpoint.matches));
      !status.ok())
    return status;
  return checkpoint;
}

Status runtime::restoreCheckpoint(TrainingSession &session,
                                  const std::string &path) {
  auto checkpoint = VerifiedCheckpoint::open(session, path);
  if (!checkpoint.ok())
    return checkpoint.takeStatus();
  if (Status status = checkpoint->copyTo(session); !status.ok())
    return status;
  return session.writeRank();
}

namespace {

/// Restores the newest checkpoint of a folder that all ranks find to be good.
class LatestRestore {
public:
  explicit LatestRestore(TrainingSession &session) : session(session) {}

  Result<CheckpointSearch> run(const std::string &root,
                               const CheckpointChoice &choice);

private:
  Status agree(Status own) const;
  Status choose(const std::string &root, const CheckpointChoice &choice);
  Status restore(const std::string &path);
  Status shareRecords();

  TrainingSession &session;
  std::vector<std::string> candidates; ///< of rank 0
};

} // namespace

Status LatestRestore::agree(Status own) const {
  Communicator *ranks = session.communicator();
  return ranks ? ranks->agree(own) : std::move(own);
}

/// Rank 0 alone needs to see the folder.
Status LatestRestore::choose(const std::string &root,
                             const CheckpointChoice &choice) {
  if (session.rank() > 0)
    return agree(Status());
  auto chosen = chooseCheckpoints(root, choice);
  if (!chosen.ok())
    return agree(chosen.takeStatus());
  candidates = std::move(*chosen);
  return agree(Status());
}

/// At all ranks, or nothing is changed. What ranks do not divide all get from
/// the first one.
Status LatestRestore::restore(const std::string &path) {
  bool reads = session.rank() == 0 || session.variables().isAnyDivided();
  std::optional<VerifiedCheckpoint> checkpoint;
  Status status;
  if (reads) {
    auto opened = VerifiedCheckpoint::open(session, path);
    if (opened.ok())
      checkpoint.emplace(std::move(*opened));
    else
      status = opened.takeStatus();
  }
  status = agree(std::move(status));
  if (status.ok() && checkpoint)
    status = checkpoint->copyTo(session);
  if (status.ok())
    status = session.shareVariables();
  if (status.ok())
    status = shareRecords();
  return status.ok() ? session.writeRank() : std::move(status);
}

/// Gives all ranks what rank 0 knows of the run.
Status LatestRestore::shareRecords() {
  std::string text = describe(session.records()).dump();
  if (Status status = session.shareText(text); !status.ok())
    return status;
  if (session.rank() == 0)
    return Status();
  auto records = readRecords(
      ordered_json::parse(text, nullptr, /*allow_exceptions=*/false));
  if (!records.ok())
    return records.takeStatus();
  session.records() = std::move(*records);
  return Status();
}

Result<CheckpointSearch> LatestRestore::run(const std::string &root,
                                            const CheckpointChoice &choice) {
  if (Status status = choose(root, choice); !status.ok())
    return status;
  CheckpointSearch search;
  for (size_t i = 0;; ++i) {
    std::string path = i < candidates.size() ? candidates[i] : "";
    if (Status status = session.shareText(path); !status.ok())
      return status;
    if (path.empty())
      return search;
    Status status = agree(session.rank() == 0 ? checkComplete(path) : Status());
    bool isComplete = status.ok();
    if (isComplete)
      status = restore(path);
    if (status.ok()) {
      search.newest = path;
      return search;
    }
    if (status.code() != Code::BadData)
      return status;
    search.isAnyDamaged |= isComplete;
    search.passedOver.emplace_back(status.message());
  }
}

Result<CheckpointSearch>
runtime::restoreLatestCheckpoint(TrainingSession &session,
                                 const std::string &root,
                                 const CheckpointChoice &choice) {
  return LatestRestore(session).run(root, choice);
}

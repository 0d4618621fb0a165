#include "runtime/train/CheckpointFolder.h"

#include "runtime/base/FileCalls.h"
#include "runtime/train/CheckpointFiles.h"
#include "runtime/train/CheckpointFormat.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

/// N of a folder step-N.
static std::optional<int64_t> readStep(const std::string &name) {
  if (!name.starts_with(kStepPrefix))
    return std::nullopt;
  int64_t step = -1;
  const char *end = name.data() + name.size();
  auto [rest, failure] =
      std::from_chars(name.data() + kStepPrefix.size(), end, step);
  bool isStep = failure == std::errc() && rest == end && step >= 0;
  return isStep ? std::optional(step) : std::nullopt;
}

Status runtime::checkComplete(const std::string &folder) {
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

Result<CheckpointSummary> runtime::verifyCheckpoint(const std::string &path) {
  std::string manifestPath = concat(path, "/", kManifestFile);
  if (Status status = checkExists(manifestPath); !status.ok())
    return status;
  Result<Manifest> manifest = readManifest(manifestPath);
  if (!manifest.ok())
    return manifest.takeStatus();
  if (Status status = checkVersion(*manifest, manifestPath); !status.ok())
    return status;
  CheckpointSummary summary = {manifest->step,
                               manifest->updates,
                               manifest->batches,
                               0,
                               0,
                               manifest->records.evaluation};
  auto files = CheckpointFiles::open(path, std::move(*manifest));
  if (!files.ok())
    return files.takeStatus();
  for (const TensorSource &source : files->sources())
    for (const TensorPart &part : source.parts)
      summary.bytes += part.bytes.size();
  summary.tensors = static_cast<int64_t>(files->sources().size());
  Status status = files->verify();
  return status.ok() ? Result<CheckpointSummary>(summary) : std::move(status);
}

std::vector<std::string> runtime::listCheckpoints(const std::string &root) {
  using Key = std::pair<int64_t, bool>; // of a step, and whether it stands
  std::map<Key, std::string, std::greater<>> folders;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(root, error)) {
    std::string name = entry.path().filename();
    bool isOld = name.ends_with(kReplacedSuffix);
    if (isOld)
      name.resize(name.size() - kReplacedSuffix.size());
    if (auto step = readStep(name))
      folders[{*step, !isOld}] = entry.path();
  }
  std::vector<std::string> paths;
  for (auto &[key, folder] : folders)
    paths.push_back(std::move(folder));
  return paths;
}

/// The update at which the evaluation was best, in the newest checkpoint that
/// can be read.
static Result<int64_t> findBestStep(const std::string &root) {
  for (const std::string &path : listCheckpoints(root)) {
    Result<Manifest> manifest = readManifest(concat(path, "/", kManifestFile));
    if (!manifest.ok())
      continue;
    if (!manifest->records.evaluation ||
        manifest->records.evaluation->bestStep == 0)
      return makeError(Code::Io, "there is no best checkpoint: the run of '",
                       path, "' had made no evaluation");
    return manifest->records.evaluation->bestStep;
  }
  return makeError(Code::Io, "there is no complete checkpoint in '", root, "'");
}

Result<std::vector<std::string>>
runtime::chooseCheckpoints(const std::string &root,
                           const CheckpointChoice &choice) {
  std::vector<std::string> paths = listCheckpoints(root);
  if (choice.kind == CheckpointChoice::Kind::newest)
    return paths;
  bool isBest = choice.kind == CheckpointChoice::Kind::best;
  Result<int64_t> step = isBest ? findBestStep(root) : choice.step;
  if (!step.ok())
    return step.takeStatus();
  std::erase_if(paths, [&](const std::string &path) {
    std::string name = fs::path(path).stem(); // of a replaced one, too
    return readStep(name) != *step;
  });
  if (paths.empty())
    return makeError(Code::Io, "there is no checkpoint of update ", *step,
                     isBest ? ", whose evaluation is the best one," : "",
                     " in '", root, "'");
  return paths;
}

Status runtime::cleanCheckpoints(const std::string &root) {
  std::vector<std::string> left, replaced;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(root, error)) {
    std::string name = entry.path().filename();
    size_t end = name.find('.');
    if (end == std::string::npos || !readStep(name.substr(0, end)))
      continue;
    if (name.substr(end) == kReplacedSuffix)
      replaced.push_back(entry.path());
    else if (name.compare(end, kUnfinished.size(), kUnfinished) == 0)
      left.push_back(entry.path());
  }
  bool isRenamed = false;
  for (const std::string &path : replaced) {
    std::string own = path.substr(0, path.size() - kReplacedSuffix.size());
    if (fs::exists(own, error)) {
      left.push_back(path);
      continue;
    }
    isRenamed = true;
    if (Status status = io::move(path, own); !status.ok())
      return status;
  }
  for (const std::string &path : left)
    if (Status status = io::removeAll(path); !status.ok())
      return status;
  return isRenamed ? io::syncFolder(root) : Status();
}

Result<CheckpointSearch>
runtime::findNewestCheckpoint(const std::string &root) {
  CheckpointSearch search;
  for (const std::string &folder : listCheckpoints(root)) {
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

/// Under its name it is whole at any moment.
static Status removeCheckpoint(const std::string &path) {
  std::string left = concat(path, kUnfinished, getpid());
  if (Status status = io::removeAll(left); !status.ok())
    return status;
  Status status = io::move(path, left);
  return status.ok() ? io::removeAll(left) : std::move(status);
}

/// What the evaluation after its last update says; nothing without one.
static std::optional<double> readMetric(const std::string &path,
                                        const std::string &metric) {
  Result<Manifest> manifest = readManifest(concat(path, "/", kManifestFile));
  if (!manifest.ok() || !manifest->records.evaluation ||
      manifest->records.evaluation->step != manifest->step)
    return std::nullopt;
  auto found = manifest->records.evaluation->metrics.find(metric);
  if (found == manifest->records.evaluation->metrics.end() ||
      std::isnan(found->second))
    return std::nullopt;
  return found->second;
}

/// Empty if none was evaluated. The newest come first: of equal ones the last
/// of `paths` was the first to be as good.
static std::string findBest(const std::vector<std::string> &paths,
                            const Retention &retention) {
  std::string best;
  double bestValue = NAN;
  for (const std::string &path : paths) {
    auto value = readMetric(path, retention.keepBest);
    if (!value ||
        (retention.bestIsLargest ? *value < bestValue : *value > bestValue))
      continue;
    best = path;
    bestValue = *value;
  }
  return best;
}

Status runtime::removeOldCheckpoints(const std::string &root,
                                     const Retention &retention) {
  if (retention.keepLast == 0)
    return Status();
  std::vector<std::string> whole = listCheckpoints(root);
  // What is not whole takes no place of one that is.
  std::erase_if(whole, [](const std::string &path) {
    return !readStep(fs::path(path).filename()) || !checkComplete(path).ok();
  });
  std::string best;
  if (!retention.keepBest.empty())
    best = findBest(whole, retention);
  for (size_t i = retention.keepLast; i < whole.size(); ++i) {
    int64_t step = *readStep(fs::path(whole[i]).filename());
    if (whole[i] == best ||
        (retention.keepEvery > 0 && step % retention.keepEvery == 0))
      continue;
    if (Status status = removeCheckpoint(whole[i]); !status.ok())
      return status;
  }
  return Status();
}

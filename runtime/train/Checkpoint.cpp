#include "runtime/train/Checkpoint.h"

#include "runtime/base/MappedFile.h"
#include "runtime/base/OutputFile.h"
#include "runtime/package/Digest.h"
#include "runtime/package/StateDict.h"
#include "runtime/train/TensorMatch.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using format::VariableKind;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

static constexpr char kStateFile[] = "state.safetensors";
static constexpr char kManifestFile[] = "manifest.json";
static constexpr std::string_view kFolderPrefix = "step-";
static constexpr int kSchemaVersion = 2;

static std::string toHex(const format::Digest &digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest.bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Whether a checkpoint has it: rounded copies follow from parameters, partial
/// sums mean nothing between updates, and rank and world are those of whoever
/// goes on.
static bool isState(const format::Variable &variable) {
  return variable.kind() != VariableKind::rounded &&
         variable.kind() != VariableKind::partial &&
         variable.field() != format::StepField::rank &&
         variable.field() != format::StepField::world;
}

/// What a session's variables are for, whatever slices of them lie here:
/// another optimizer or model has another.
static std::string fingerprintOf(const Variables &variables) {
  // By name: how they lie in memory is each package's own.
  std::map<std::string_view, std::string> lines;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (!isState(variable))
      continue;
    std::string &text = lines[variable.name()->string_view()];
    text = concat(
        variable.name()->string_view(), "\n", traitsOf(variable.dtype()).name,
        "\n", format::nameOf(variable.kind()), "\n",
        variable.parameter() ? variable.parameter()->string_view() : "");
    for (int64_t extent : variables.slice(i).shape)
      text += concat("\n", extent);
    text += "\n";
  }
  DigestStream digest;
  for (const auto &[name, text] : lines)
    digest.update(std::as_bytes(std::span(text)));
  return toHex(digest.finish());
}

/// A package's text may be no UTF-8.
static std::string print(const ordered_json &value, int indent = -1) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
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

static StoredTensor describeTensor(const Variables &variables,
                                   const Variables::Snapshot &snapshot,
                                   size_t index) {
  std::span<const int64_t> shape = variables.shape(index);
  return {variables.describe(index).name()->str(),
          variables.describe(index).dtype(),
          {shape.begin(), shape.end()},
          snapshot.bytes(index)};
}

/// By name, as packages order their variables differently.
static std::vector<StoredTensor>
listTensors(const Variables &variables, const Variables::Snapshot &snapshot) {
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < variables.size(); ++i)
    if (isState(variables.describe(i)))
      tensors.push_back(describeTensor(variables, snapshot, i));
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  return tensors;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Of the variables that are no whole tensors, what they are slices of.
static ordered_json slicesOf(const Variables &variables) {
  ordered_json slices = ordered_json::object();
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables.describe(i).global_shape() && isState(variables.describe(i)))
      slices[variables.describe(i).name()->str()] = {
          {"shape", variables.slice(i).shape},
          {"offset", variables.slice(i).offset}};
  return slices;
}

static Status writeManifest(const TrainingSession &session,
                            std::span<const StoredTensor> tensors,
                            const std::string &path) {
  DigestStream digest;
  uint64_t bytes = 0;
  for (const StoredTensor &tensor : tensors) {
    digest.update(tensor.bytes);
    bytes += tensor.bytes.size();
  }
  ordered_json manifest = {
      {"schema_version", kSchemaVersion},
      {"producer", concat("tcc ", TCC_VERSION)},
      {"step", session.stepCount()},
      {"updates", session.read(format::StepField::updates)},
      {"batches", session.batchCount()},
      {"program", fingerprintOf(session.variables())},
      {"recipe", recipeOf(session)},
      {"slices", slicesOf(session.variables())},
      {"tensors", tensors.size()},
      {"bytes", bytes},
      {"digest", toHex(digest.finish())},
  };
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  file->write(print(manifest, 2));
  file->write("\n");
  return file->commit();
}

static Status writeFolder(const TrainingSession &session,
                          const std::string &folder) {
  auto snapshot = session.variables().snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  std::vector<StoredTensor> tensors =
      listTensors(session.variables(), *snapshot);
  if (Status status =
          writeSafetensors(concat(folder, "/", kStateFile), tensors);
      !status.ok())
    return status;
  return writeManifest(session, tensors, concat(folder, "/", kManifestFile));
}

static Status cannotWrite(const std::string &path,
                          const std::error_code &error) {
  return makeError(Code::Io, "cannot write '", path, "': ", error.message());
}

/// Puts `temporary` in the place of `path`.
static Status replaceFolder(const std::string &temporary,
                            const std::string &path) {
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

/// Of what is accumulated in a tree a checkpoint has no part.
static Status checkPlace(const TrainingSession &session, int64_t place) {
  if (session.exactBatches() == 0 || place == 0)
    return Status();
  return makeError(Code::Usage, "with parallel.exact a checkpoint is of the ",
                   "time between two updates, and this one comes after ", place,
                   " of ", session.exactBatches(), " batches");
}

/// The field `place` of the step in a file.
static int64_t readPlace(std::span<const StoredTensor> tensors) {
  std::string name = format::variableOf(format::StepField::place);
  int64_t place = 0;
  for (const StoredTensor &tensor : tensors)
    if (tensor.name == name && tensor.bytes.size() == sizeof(place))
      std::memcpy(&place, tensor.bytes.data(), sizeof(place));
  return place;
}

Result<std::string> runtime::saveCheckpoint(const TrainingSession &session,
                                            const std::string &root) {
  if (Status status =
          checkPlace(session, session.read(format::StepField::place));
      !status.ok())
    return status;
  std::string path = concat(root, "/", kFolderPrefix, session.stepCount());
  std::string temporary = concat(path, ".tmp", getpid());
  std::error_code error;
  fs::remove_all(temporary, error);
  if (!fs::create_directories(temporary, error) && error)
    return cannotWrite(path, error);
  Status status = writeFolder(session, temporary);
  if (status.ok())
    status = replaceFolder(temporary, path);
  if (status.ok())
    return path;
  fs::remove_all(temporary, error);
  return status;
}

Status runtime::exportParameters(const TrainingSession &session,
                                 const std::string &path) {
  const Variables &variables = session.variables();
  auto snapshot = variables.snapshot();
  if (!snapshot.ok())
    return snapshot.takeStatus();
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (!isOfModel(variable))
      continue;
    if (variable.global_shape())
      return makeError(Code::Unsupported, "'", path,
                       "' would have a part of tensor '",
                       variable.name()->string_view(), "' only");
    tensors.push_back(describeTensor(variables, *snapshot, i));
  }
  Result<Aliases> aliases = findAliases(session.executable().program());
  if (!aliases.ok())
    return aliases.takeStatus();
  return writeSafetensors(
      path, makeStateDict(std::move(tensors), *aliases, session.batchCount()));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool isNumber(const ordered_json &manifest, const char *key) {
  return manifest.contains(key) && manifest[key].is_number_unsigned() &&
         manifest[key].get<uint64_t>() <= INT64_MAX;
}

static Status noManifest(const std::string &path) {
  return makeError(Code::BadData, "'", path, "' is no manifest");
}

/// Of any version.
static Result<ordered_json> parseManifest(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  const char *text = reinterpret_cast<const char *>(file->bytes().data());
  auto manifest = ordered_json::parse(text, text + file->bytes().size(),
                                      nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !isNumber(manifest, "schema_version"))
    return noManifest(path);
  return manifest;
}

static bool isOfThisVersion(const ordered_json &manifest) {
  return manifest["schema_version"] == kSchemaVersion;
}

/// Versions differ in keys.
static Status checkManifest(const ordered_json &manifest,
                            const std::string &path) {
  if (!isOfThisVersion(manifest))
    return makeError(Code::BadData, "'", path, "' is of schema version ",
                     manifest["schema_version"].dump(), ", expected ",
                     kSchemaVersion);
  if (!isNumber(manifest, "step") || !isNumber(manifest, "tensors") ||
      !manifest.contains("program") || !manifest.contains("digest") ||
      !manifest.contains("recipe") || !manifest["recipe"].is_object() ||
      !manifest.contains("slices") || !manifest["slices"].is_object())
    return noManifest(path);
  return Status();
}

static Result<ordered_json> readManifest(const std::string &folder) {
  std::string path = concat(folder, "/", kManifestFile);
  Result<ordered_json> manifest = parseManifest(path);
  if (!manifest.ok())
    return manifest;
  if (Status status = checkManifest(*manifest, path); !status.ok())
    return status;
  return manifest;
}

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

static Status checkExists(const std::string &path) {
  std::error_code error;
  // A file of which that is not known is found to be unreadable when opened.
  bool isMissing = !fs::exists(path, error) && !error;
  return isMissing ? makeError(Code::BadData, "there is no '", path, "'")
                   : Status();
}

/// Code::BadData if not all of a checkpoint is there, other codes if that
/// cannot be read. Whether its bytes are right is asked once it is restored.
static Status checkComplete(const std::string &folder) {
  std::string path = concat(folder, "/", kManifestFile);
  if (Status status = checkExists(path); !status.ok())
    return status;
  Result<ordered_json> manifest = parseManifest(path);
  if (!manifest.ok())
    return manifest.takeStatus();
  // Files of other versions have other names and keys.
  if (!isOfThisVersion(*manifest))
    return Status();
  if (Status status = checkManifest(*manifest, path); !status.ok())
    return status;
  path = concat(folder, "/", kStateFile);
  if (Status status = checkExists(path); !status.ok())
    return status;
  auto state = SafetensorsFile::open(path);
  return state.ok() ? Status() : state.takeStatus();
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

static Result<Slices> readSlices(const ordered_json &manifest,
                                 const std::string &path) {
  auto read = [](const ordered_json &row, const char *key,
                 std::vector<int64_t> &to) {
    if (!row.is_object() || !row.contains(key) || !row[key].is_array())
      return false;
    for (const ordered_json &number : row[key]) {
      if (!number.is_number_unsigned() ||
          number.get<uint64_t>() > uint64_t(INT64_MAX))
        return false;
      to.push_back(number.get<int64_t>());
    }
    return true;
  };
  Slices slices;
  for (const auto &[name, row] : manifest["slices"].items()) {
    Slice &slice = slices[name];
    if (!read(row, "shape", slice.shape) || !read(row, "offset", slice.offset))
      return makeError(Code::BadData, "'", path, "/", kManifestFile,
                       "' does not say what '", name, "' is a slice of");
  }
  return slices;
}

/// Names the keys whose values a package compiled in otherwise.
static Status checkRecipe(const ordered_json &manifest,
                          const TrainingSession &session,
                          const std::string &path) {
  ordered_json there = manifest["recipe"], here = recipeOf(session);
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

/// The manifest's digest is of all tensors in the order of their names.
static Status checkDigest(const ordered_json &manifest,
                          std::span<const TensorMatch> matches,
                          const std::string &path) {
  std::vector<const StoredTensor *> tensors;
  for (const TensorMatch &match : matches)
    tensors.push_back(match.tensor);
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  DigestStream digest;
  for (const StoredTensor *tensor : tensors)
    digest.update(tensor->bytes);
  if (manifest["digest"] == toHex(digest.finish()))
    return Status();
  return makeError(Code::BadData, "'", path, "/", kStateFile,
                   "' is damaged: its digest is not the manifest's");
}

Status runtime::restoreCheckpoint(TrainingSession &session,
                                  const std::string &path) {
  Result<ordered_json> manifest = readManifest(path);
  if (!manifest.ok())
    return manifest.takeStatus();
  if (Status status = checkRecipe(*manifest, session, path); !status.ok())
    return status;
  std::string statePath = concat(path, "/", kStateFile);
  Result<SafetensorsFile> file = SafetensorsFile::open(statePath);
  if (!file.ok())
    return file.takeStatus();
  Result<Slices> slices = readSlices(*manifest, path);
  if (!slices.ok())
    return slices.takeStatus();
  MatchOptions options;
  options.slices = std::move(*slices);
  options.isRequired = isState;
  options.isAllowed = isState;
  auto matches =
      matchTensors(session.variables(), file->tensors(), statePath, options);
  if (!matches.ok())
    return matches.takeStatus();
  if ((*manifest)["program"] != fingerprintOf(session.variables()))
    return makeError(Code::Usage, "'", path,
                     "' was written by a package of another model");
  if (Status status = checkDigest(*manifest, *matches, path); !status.ok())
    return status;
  if (Status status = checkPlace(session, readPlace(file->tensors()));
      !status.ok())
    return status;
  if (Status status = copyTensors(session.variables(), *matches); !status.ok())
    return status;
  return session.writeRank();
}

Status runtime::initializeFrom(TrainingSession &session,
                               const std::string &path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  MatchOptions options;
  options.isRequired = [](const format::Variable &variable) {
    return variable.kind() == VariableKind::parameter;
  };
  options.isAllowed = isOfModel;
  options.convertsFloats = true;
  Result<Aliases> aliases = findAliases(session.executable().program());
  if (!aliases.ok())
    return aliases.takeStatus();
  auto tensors = readStateDict(file->tensors(), *aliases, path);
  if (!tensors.ok())
    return tensors.takeStatus();
  auto matches = matchTensors(session.variables(), *tensors, path, options);
  if (!matches.ok())
    return matches.takeStatus();
  return copyTensors(session.variables(), *matches);
}

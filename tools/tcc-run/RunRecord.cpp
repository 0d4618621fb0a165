#include "tools/tcc-run/RunRecord.h"

#include "runtime/base/FileCalls.h"
#include "runtime/base/OutputFile.h"
#include "runtime/train/CheckpointFormat.h"
#include "runtime/train/Manifest.h"

#include <filesystem>
#include <fstream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

static constexpr int kVersion = 1;
/// These have keys of their own.
static constexpr char kPackage[] = "PACKAGE", kData[] = "--data";

static std::string pathOf(const std::string &folder) {
  return concat(folder, "/run.json");
}

std::string tools::checkpointsOfRun(const std::string &folder) {
  return concat(folder, "/checkpoints");
}

/// The digest of all bytes of the session's package.
static std::string digestOfPackage(const TrainingSession &session) {
  // The table has the digests of all sections.
  return formatDigest(session.executable().package().header().tableDigest);
}

Status tools::checkPackage(const std::string &folder, const RunRecord &record,
                           const std::string &path,
                           const TrainingSession &session) {
  const std::string &recorded = record.packageDigest;
  std::string digest = digestOfPackage(session);
  if (recorded.empty() || recorded == digest)
    return Status();
  return makeError(Code::Usage, "the run in '", folder, "' is of package '",
                   record.packagePath, "' with digest ", recorded, ", and '",
                   path, "' has ", digest,
                   "; with --checkpoint-dir and --log-dir in place of --run "
                   "another package of its recipe can go on");
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

bool tools::hasRunRecord(const std::string &folder) {
  std::error_code error;
  return std::filesystem::exists(pathOf(folder), error);
}

/// Throws what nlohmann::json does where a key is missing or of another type.
static RunRecord parse(const ordered_json &document) {
  RunRecord record;
  document.at("flags").get_to(record.flags);
  const ordered_json &package = document.at("package");
  package.at("path").get_to(record.packagePath);
  package.at("digest").get_to(record.packageDigest);
  record.flags[kPackage] = {record.packagePath};
  record.flags[kData] = {document.at("data")};
  record.recipe = document.at("recipe");
  record.settings = document.at("settings");
  for (const ordered_json &start : document.at("starts"))
    record.starts.push_back(
        {start.at("time"), start.at("tcc"), start.at("command")});
  return record;
}

Result<RunRecord> tools::readRunRecord(const std::string &folder) {
  std::string path = pathOf(folder);
  std::ifstream file(path);
  if (!file)
    return makeError(Code::Io, "there is no '", path,
                     "' of a run to go on with");
  try {
    auto document = ordered_json::parse(file);
    if (document.at("schema_version") == kVersion)
      return parse(document);
    return makeError(Code::BadData, "'", path, "' is of schema version ",
                     document["schema_version"].dump(), ", expected ",
                     kVersion);
  } catch (const nlohmann::json::exception &error) {
    return makeError(Code::BadData, "'", path,
                     "' is no record of a run: ", error.what());
  }
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Result<ordered_json> tools::describeSettings(TrainingSession &session) {
  ordered_json values = ordered_json::object();
  Settings settings = session.settings();
  for (size_t i = 0; i < settings.size(); ++i) {
    Result<std::string> text = settings.text(i);
    if (!text.ok())
      return text.takeStatus();
    if (!text->empty())
      values[settings.describe(i).key()->str()] = *text;
  }
  return values;
}

static ordered_json describeStarts(const RunRecord &record) {
  ordered_json rows = ordered_json::array();
  for (const RunStart &start : record.starts)
    rows.push_back({{"time", start.time},
                    {"tcc", start.version},
                    {"command", start.command}});
  return rows;
}

Status tools::writeRunRecord(const std::string &folder, const RunRecord &record,
                             TrainingSession &session) {
  auto settings = describeSettings(session);
  if (!settings.ok())
    return settings.takeStatus();
  auto flags = record.flags;
  flags.erase(kPackage);
  flags.erase(kData);
  ordered_json document = {{"schema_version", kVersion},
                           {"package",
                            {{"path", record.flags.at(kPackage).front()},
                             {"digest", digestOfPackage(session)}}},
                           {"data", record.flags.at(kData).front()},
                           {"recipe", recipeOf(session)},
                           {"settings", std::move(*settings)},
                           {"flags", flags},
                           {"starts", describeStarts(record)}};
  if (Status status = io::makeFolders(folder); !status.ok())
    return status;
  auto file = OutputFile::create(pathOf(folder));
  if (!file.ok())
    return file.takeStatus();
  // Paths and recipes may be no UTF-8.
  file->write(document.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false,
                            ordered_json::error_handler_t::replace) +
              "\n");
  if (Status status = file->commit(); !status.ok())
    return status;
  return io::syncFolder(folder);
}

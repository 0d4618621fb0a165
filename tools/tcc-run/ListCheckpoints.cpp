#include "runtime/train/CheckpointFolder.h"
#include "tools/tcc-run/Json.h"
#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/Session.h"

#include <filesystem>
#include <iomanip>
#include <sstream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// A line of the list; what is wrong with it in place of what it has.
static ordered_json describe(const std::string &path, Code &code) {
  ordered_json row = {{"path", path}};
  Result<CheckpointSummary> found = verifyCheckpoint(path);
  if (found.ok()) {
    row["step"] = found->step;
    row["updates"] = found->updates;
    row["batches"] = found->batches;
    row["tensors"] = found->tensors;
    row["bytes"] = found->bytes;
    // An evaluation of another update says nothing of this checkpoint.
    if (found->evaluation && found->evaluation->step == found->step)
      row["evaluation"] = found->evaluation->metrics;
    row["problem"] = nullptr;
  } else {
    Status status = found.takeStatus();
    code = status.code();
    row["problem"] = status.message();
  }
  return row;
}

/// ", loss 0.25, accuracy 0.915"; nothing where it was not evaluated.
static std::string formatEvaluation(const ordered_json &row) {
  std::ostringstream text;
  if (row.contains("evaluation"))
    for (const auto &[name, value] : row["evaluation"].items())
      text << ", " << name << ' ' << value;
  return text.str();
}

static void print(const ordered_json &row) {
  std::cout << row["path"].get<std::string>() << ": ";
  if (row["problem"].is_null())
    std::cout << row["step"] << " updates, " << row["batches"] << " batches, "
              << row["tensors"] << " tensors, " << row["bytes"]
              << " bytes, whole" << formatEvaluation(row) << '\n';
  else
    std::cout << row["problem"].get<std::string>() << '\n';
}

/// The folder of a run's checkpoints; `folder` itself if it is no run's.
static Result<std::string> findFolder(const std::string &folder) {
  if (!hasRunRecord(folder))
    return folder;
  Result<RunRecord> record = readRunRecord(folder);
  if (!record.ok())
    return record.takeStatus();
  auto given = record->flags.find("--checkpoint-dir");
  return given == record->flags.end() ? checkpointsOfRun(folder)
                                      : given->second.front();
}

int tools::checkpointsCommand(const std::string &given, bool json) {
  Result<std::string> folder = findFolder(given);
  if (!folder.ok())
    return report(folder.takeStatus());
  std::vector<std::string> paths = listCheckpoints(*folder);
  if (paths.empty()) {
    std::cerr << concat("tcc-run: error: there is no checkpoint in '", *folder,
                        "'\n");
    return static_cast<int>(Code::Io);
  }
  Code code = Code::Ok;
  ordered_json document = {{"schema_version", 1},
                           {"checkpoints", ordered_json::array()}};
  for (const std::string &path : paths) {
    ordered_json row = describe(path, code);
    if (!json)
      print(row);
    document["checkpoints"].push_back(std::move(row));
  }
  if (json)
    printJson(document);
  return static_cast<int>(code);
}

#include "runtime/base/OutputFile.h"
#include "runtime/package/Reader.h"
#include "runtime/train/Manifest.h"
#include "tools/tcc-run/ArenaUse.h"
#include "tools/tcc-run/Info.h"
#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/RunResult.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/report/RunReport.h"

#include <ctime>
#include <iostream>
#include <sys/stat.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

/// UTC, as 2026-01-31 08:30:00 UTC.
static std::string timeOf(const std::string &path) {
  struct stat file = {};
  std::tm parts = {};
  char text[32];
  if (stat(path.c_str(), &file) != 0 || !gmtime_r(&file.st_mtime, &parts) ||
      !std::strftime(text, sizeof(text), "%F %T UTC", &parts))
    return "a time that is not known";
  return text;
}

/// A package that has moved is no error: the page says what it lacks.
static void readPackage(RunReport &run) {
  const std::string &path = run.record.packagePath;
  auto package = Package::open(path);
  if (!package.ok()) {
    run.packageProblem = package.takeStatus().message();
    return;
  }
  if (formatDigest((*package)->header().tableDigest) !=
      run.record.packageDigest) {
    run.packageProblem = concat("'", path, "' is another package by now");
    return;
  }
  run.package = describePackage(**package);
  for (const format::Entry *entry : *(*package)->program().entries())
    if (entry->kind() != format::EntryKind::prepare)
      run.arenas.push_back(getArenaUse(*entry));
}

/// Where a run has its log: the folder, unless a flag says otherwise.
static std::string findLogFolder(const std::string &folder,
                                 const RunRecord &record) {
  auto given = record.flags.find("--log-dir");
  return given == record.flags.end() || given->second.empty()
             ? folder
             : given->second.front();
}

static Result<RunReport> readRun(const std::string &folder) {
  RunReport run;
  run.folder = folder;
  if (!hasRunRecord(folder))
    return makeError(Code::Io, "there is no '", folder, "/run.json': '", folder,
                     "' is no folder that tcc-run train --run made");
  Result<RunRecord> record = readRunRecord(folder);
  if (!record.ok())
    return record.takeStatus();
  run.record = std::move(*record);
  std::string logs = findLogFolder(folder, run.record);
  std::string path = concat(logs, "/metrics.jsonl");
  Result<RunLog> log = readRunLog(path);
  if (!log.ok())
    return log.takeStatus();
  run.log = std::move(*log);
  run.logTime = timeOf(path);
  auto result = readRunResult(logs);
  if (!result.ok())
    return result.takeStatus();
  run.result = std::move(*result);
  readPackage(run);
  return run;
}

static Result<std::string> makePage(const std::string &folder) {
  Result<RunReport> run = readRun(folder);
  if (!run.ok())
    return run.takeStatus();
  try {
    return makeRunPage(*run);
  } catch (const nlohmann::json::exception &error) {
    return makeError(Code::BadData, "'", findLogFolder(folder, run->record),
                     "/result.json' is not what a run writes: ", error.what());
  }
}

int tools::reportCommand(const std::string &folder, const std::string &output) {
  Result<std::string> page = makePage(folder);
  if (!page.ok())
    return report(page.takeStatus());
  std::string path = output.empty() ? concat(folder, "/report.html") : output;
  auto file = OutputFile::create(path);
  Status status = file.ok() ? Status() : file.takeStatus();
  if (status.ok()) {
    file->write(*page);
    status = file->commit();
  }
  if (status.ok())
    std::cout << concat(path, ": ", page->size(), " bytes\n");
  return report(status);
}

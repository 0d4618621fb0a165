#include "tools/tcc-run/RunFlags.h"

#include "runtime/data/DataPlan.h"
#include "runtime/ranks/Launch.h"
#include "tools/tcc-run/Flags.h"
#include "tools/tcc-run/Ranks.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <ctime>
#include <filesystem>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

using Values = std::vector<std::string>;

static constexpr std::string_view kEvaluationData = "eval.data=",
                                  kSource = "data.source=";

static std::string getTime() {
  std::time_t now = std::time(nullptr);
  std::tm parts = {};
  char text[32];
  std::strftime(text, sizeof(text), "%FT%TZ", gmtime_r(&now, &parts));
  return text;
}

//===----------------------------------------------------------------------===//
// What is recorded
//===----------------------------------------------------------------------===//

/// What belongs to one process, not to its run.
static bool isOfOneProcess(const std::string &flag) {
  static constexpr std::string_view kFlags[] = {
      "--help",    "--run",     "--resume",   "--resume-if-any",
      "--find-lr", "--json",    "--quiet",    "--verbose",
      "--symbols", "--profile", "--diagnose", "--trace"};
  return std::ranges::count(kFlags, flag) > 0;
}

/// The same sources, one or a list of them, as a list of TOML.
static std::string makeSourcesAbsolute(const std::string &value) {
  DataPlan plan;
  std::string list;
  if (!plan.set("source", value).ok())
    return value;
  for (const std::string &source : plan.sources)
    list += concat(list.empty() ? "'" : ", '", absoluteData(source), "'");
  return concat("[", list, "]");
}

/// The same file, wherever the process runs that reads it.
static std::string makeAbsolute(const CLI::Option &option,
                                const std::string &value) {
  std::string type = option.get_type_name();
  if (type == kFileType || type == kFolderType)
    return std::filesystem::absolute(value).lexically_normal();
  if (type == kDataType)
    return absoluteData(value);
  if (type == kSettingType && value.starts_with(kEvaluationData))
    return concat(kEvaluationData,
                  absoluteData(value.substr(kEvaluationData.size())));
  if (type == kSettingType && value.starts_with(kSource))
    return concat(kSource, makeSourcesAbsolute(value.substr(kSource.size())));
  return value;
}

static void record(const CLI::App &command, RunRecord &to) {
  to.flags.clear();
  for (const CLI::Option *option : command.get_options()) {
    std::string name = option->get_name();
    if (option->count() == 0 || isOfOneProcess(name))
      continue;
    for (const std::string &value : option->results())
      to.flags[name].push_back(makeAbsolute(*option, value));
  }
}

//===----------------------------------------------------------------------===//
// What is taken from the record
//===----------------------------------------------------------------------===//

static std::string keyOf(const std::string &setting) {
  return setting.substr(0, setting.find('='));
}

/// Puts recorded settings first: the last one of a key counts.
static void addSettings(CLI::Option &option, Values recorded) {
  Values given = option.results();
  std::erase_if(recorded, [&](const std::string &setting) {
    return std::ranges::count(given, keyOf(setting), keyOf) > 0;
  });
  recorded.insert(recorded.end(), given.begin(), given.end());
  option.clear();
  option.add_result(std::move(recorded));
}

/// How many ranks there are a launcher says, if there is one but --ranks.
static bool isRank() {
  Result<Launch> launch = readLaunch();
  return launch.ok() && launch->size > 1 && !isLaunched();
}

/// Whether the command line has what does not go with the option.
static bool isExcluded(const CLI::Option &option) {
  return std::ranges::any_of(
      option.get_excludes(),
      [](const CLI::Option *other) { return other->count() > 0; });
}

static void addRecorded(CLI::App &command, const std::string &name,
                        const Values &values) {
  CLI::Option *option = command.get_option_no_throw(name);
  if (!option)
    throw CLI::RuntimeError(concat("run.json has an unknown flag '", name, "'"),
                            static_cast<int>(Code::BadData));
  if (option->get_type_name() == kSettingType)
    addSettings(*option, values);
  else if (option->count() == 0 && !isExcluded(*option) &&
           !(name == kRanksFlag && isRank()))
    option->add_result(values);
}

static bool isGiven(const CLI::App &command, const char *flag) {
  return command.get_option(flag)->count() > 0;
}

/// The record of a run that goes on, or an empty one.
static RunRecord readRecord(const CLI::App &command,
                            const std::string &folder) {
  bool mayBeNone = isGiven(command, "--resume-if-any");
  if (!isGiven(command, "--resume") && !mayBeNone)
    return {};
  if (mayBeNone && !hasRunRecord(folder))
    return {};
  Result<RunRecord> record = readRunRecord(folder);
  if (record.ok())
    return std::move(*record);
  Status status = record.takeStatus();
  throw CLI::RuntimeError(std::string(status.message()),
                          static_cast<int>(status.code()));
}

static void setDefault(CLI::App &command, const char *flag,
                       const std::string &value) {
  if (!isGiven(command, flag))
    command.get_option(flag)->add_result(value);
}

/// Called once all words of the command line were read, before it is asked
/// whether what they need is there.
static void complete(CLI::App &command, TrainOptions &options) {
  options.run = readRecord(command, options.runFolder);
  for (const auto &[name, values] : options.run.flags)
    addRecorded(command, name, values);
  record(command, options.run);
  options.run.starts.push_back({getTime(), TCC_VERSION, options.commandLine});
  setDefault(command, "--checkpoint-dir", checkpointsOfRun(options.runFolder));
  setDefault(command, "--log-dir", options.runFolder);
}

void tools::addRunFolder(CLI::App &command, TrainOptions &options) {
  // Callbacks are called in the order of the options, and those of what this
  // one adds to come later.
  command
      .add_option_function<std::string>(
          "--run",
          [&](const std::string &folder) {
            options.runFolder = folder;
            complete(command, options);
          },
          "folder of a run: run.json, the log, and checkpoints in "
          "DIR/checkpoints; --resume takes PACKAGE and all flags that are not "
          "given from there")
      ->type_name(kFolderType);
}

#include "tools/tcc-run/RunLogs.h"

#include "runtime/train/CheckpointFormat.h"
#include "tools/tcc-run/Info.h"
#include "tools/tcc-run/RunRecord.h"

#include <limits>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Status RunLogs::open(const TrainOptions &options, TrainingSession &session,
                     bool goesOn) {
  this->session = &session;
  histogramsEvery = options.histogramsEvery;
  if (Status status = checkParameters(); !status.ok())
    return status;
  if (!options.logDir.empty()) {
    auto log = MetricsLog::open(options.logDir, goesOn);
    if (!log.ok())
      return log.takeStatus();
    metrics = std::move(*log);
    hasLogs = true;
  }
  if (options.tensorBoardDir.empty())
    return Status();
  auto log = TensorBoardLog::open(options.tensorBoardDir, session.stepCount());
  if (!log.ok())
    return log.takeStatus();
  events = std::move(*log);
  hasLogs = true;
  return describeRun(options);
}

static bool isParameter(const format::Variable &variable) {
  return variable.kind() == format::VariableKind::parameter;
}

Status RunLogs::checkParameters() const {
  const Variables &variables = session->variables();
  for (size_t i = 0; histogramsEvery && i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (isParameter(variable) && (variable.global_shape() || variable.ranks()))
      return makeError(Code::Unsupported,
                       "--tensorboard-histograms would have a part of tensor '",
                       variable.name()->string_view(), "' only");
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// What the run is
//===----------------------------------------------------------------------===//

static std::string makeBlock(const std::string &lines) {
  return concat("```\n", lines, lines.ends_with('\n') ? "" : "\n", "```\n");
}

/// As a shell takes it.
static std::string quote(const std::string &word) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos)
    return word;
  std::string quoted = "'";
  for (char letter : word)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

static std::string printCommand(const std::vector<std::string> &words) {
  std::string line;
  for (const std::string &word : words)
    line += (line.empty() ? "" : " ") + quote(word);
  return line;
}

static std::string printPairs(const ordered_json &values) {
  std::string lines;
  for (const auto &[key, value] : values.items())
    lines += concat(key, " = ",
                    value.is_string() ? value.get<std::string>() : value.dump(),
                    "\n");
  return lines;
}

Status RunLogs::describeRun(const TrainOptions &options) {
  auto settings = describeSettings(*session);
  if (!settings.ok())
    return settings.takeStatus();
  std::string recipe = printPairs(recipeOf(*session)) + printPairs(*settings);
  Summary summary;
  summary.addText("run/command", makeBlock(printCommand(options.commandLine)));
  summary.addText("run/recipe", makeBlock(recipe));
  summary.addText("run/package",
                  makeBlock(summarize(session->executable().package())));
  warn(events.write(session->stepCount(), summary));
  return Status();
}

//===----------------------------------------------------------------------===//
// What updates did
//===----------------------------------------------------------------------===//

void RunLogs::write(const Pace &pace, const ordered_json &evaluation) {
  if (!hasLogs)
    return;
  UpdateRecord record = describeUpdate(session->metrics(), pace, evaluation);
  warn(metrics.write(record));
  warn(events.write(record));
}

void RunLogs::writeAgain(const ordered_json &evaluation) {
  if (!hasLogs)
    return;
  warn(metrics.writeAgain(session->stepCount(), evaluation));
  warn(events.writeEvaluation(session->stepCount(), evaluation));
}

int64_t RunLogs::getNextPause(int64_t step) const {
  return histogramsEvery ? (step / histogramsEvery + 1) * histogramsEvery
                         : std::numeric_limits<int64_t>::max();
}

bool RunLogs::areParametersDue() const {
  int64_t step = session->stepCount();
  return events.isOpen() && getNextPause(step - 1) == step;
}

/// Each parameter is an event: those of all may be larger than what a log keeps
/// for a disk without room.
void RunLogs::writeParameters() {
  int64_t step = session->stepCount();
  const Variables &variables = session->variables();
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (!isParameter(variable))
      continue;
    bytes.resize(variables.byteCount(i));
    if (Status status = variables.read(i, bytes); !status.ok())
      return warn(status);
    Distribution found = measure(variable.dtype(), bytes);
    Summary summary;
    summary.addNumber("norm/" + variable.name()->str(), found.norm);
    summary.addHistogram("parameter/" + variable.name()->str(), found.buckets);
    warn(events.write(step, summary));
  }
  writeGradientNorms();
}

void RunLogs::writeGradientNorms() {
  auto norms = session->gradientNorms();
  if (!norms.ok())
    return warn(norms.takeStatus());
  Summary summary;
  for (const GradientNorm &gradient : *norms)
    summary.addNumber(concat("grad_norm/", gradient.parameter), gradient.norm);
  warn(events.write(session->stepCount(), summary));
}

void RunLogs::close() {
  warn(metrics.close());
  warn(events.close());
}

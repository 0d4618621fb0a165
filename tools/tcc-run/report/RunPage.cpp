#include "tools/tcc-run/report/RunReport.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

const ordered_json &RunReport::find(const char *name) const {
  static const ordered_json kNothing;
  auto it = result.find(name);
  return result.is_object() && it != result.end() ? *it : kNothing;
}

RunTimes tools::sumUp(const RunLog &log) {
  RunTimes times;
  auto add = [](double &sum, double value) {
    sum += std::isfinite(value) ? value : 0;
  };
  for (const LoggedUpdate &update : log.updates) {
    if (!std::isfinite(update.seconds))
      continue;
    times.isKnown = true;
    add(times.updates, update.seconds);
    add(times.data, update.dataWait);
    add(times.ranks, update.exposed);
    add(times.checkpoints, update.stall);
    add(times.samples, update.samplesPerSecond * update.seconds);
    add(times.tokens, update.tokensPerSecond * update.seconds);
    add(times.peak, update.mfu * update.seconds);
  }
  times.isKnown &= times.getAll() > 0;
  return times;
}

std::string tools::printPercent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f %%", 100 * share);
  return text;
}

static std::string printNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return std::isfinite(value) ? text : "not finite";
}

//===----------------------------------------------------------------------===//
// What the summary says
//===----------------------------------------------------------------------===//

/// The updates that the run was to make; nothing where that is not known.
static std::optional<int64_t> findLength(const RunReport &run) {
  if (const ordered_json &last = run.find("last_step"); last.is_number())
    return last.get<int64_t>();
  auto steps = run.record.flags.find("--steps");
  if (steps == run.record.flags.end() || steps->second.empty())
    return std::nullopt;
  return std::strtoll(steps->second.front().c_str(), nullptr, 10);
}

static int64_t countMade(const RunReport &run) {
  return run.log.updates.empty() ? 0 : run.log.updates.back().step;
}

static std::string describeCount(const RunReport &run) {
  std::string made = std::to_string(countMade(run));
  std::optional<int64_t> length = findLength(run);
  return length ? concat(made, " of ", *length, " updates")
                : concat(made, " updates");
}

static std::string describeResuming(const RunReport &run) {
  return concat("tcc-run train --run ", run.folder,
                " --resume goes on with it");
}

/// How the run ended, as far as that is known.
static Verdict judgeEnd(const RunReport &run) {
  Verdict verdict;
  if (run.result.is_null()) {
    verdict.state = Verdict::State::warn;
    verdict.text = concat("No end is recorded after ", describeCount(run),
                          ": the run is under way, or was killed");
    verdict.lines.emplace_back("Log", concat("last written at ", run.logTime));
    verdict.lines.emplace_back("If it was killed", describeResuming(run));
    return verdict;
  }
  auto code = run.result.at("code").get<int>();
  if (code != 0) {
    verdict.state = Verdict::State::bad;
    verdict.text =
        concat("Failed after ", describeCount(run), " (exit code ", code, ")");
    verdict.lines.emplace_back("Error",
                               run.result.at("error").get<std::string>());
    return verdict;
  }
  if (run.find("stopped_by").is_string()) {
    verdict.state = Verdict::State::warn;
    verdict.text =
        concat("Stopped by ", run.find("stopped_by").get<std::string>(),
               " after ", describeCount(run));
    verdict.lines.emplace_back("To go on", describeResuming(run));
    return verdict;
  }
  verdict.state = Verdict::State::good;
  verdict.text = concat("Ended after ", describeCount(run));
  return verdict;
}

/// The parts of the time that are worth a word, by the log alone.
static std::string describeWaits(const RunTimes &times) {
  constexpr double kLeast = 0.01;
  std::string text;
  auto add = [&](double seconds, const char *what) {
    double share = seconds / times.getAll();
    if (share >= kLeast)
      text += concat(text.empty() ? "" : ", ", printPercent(share),
                     " of the time is waiting for ", what);
  };
  add(times.data, "data");
  add(times.ranks, "other ranks");
  add(times.checkpoints, "checkpoints");
  return text.empty() ? "less than 1 % of the time is waiting for data, other "
                        "ranks or checkpoints"
                      : text;
}

static void addLimit(const RunReport &run, const RunTimes &times,
                     Verdict &verdict) {
  const ordered_json &diagnosis = run.find("diagnosis");
  if (diagnosis.is_null()) {
    verdict.lines.emplace_back(
        "What limits it",
        concat("not diagnosed; ",
               times.isKnown ? describeWaits(times)
                             : "the log does not say how long updates took"));
    verdict.lines.emplace_back(
        "What to do", "tcc-run train --diagnose says what limits a run, and "
                      "what would help");
    return;
  }
  verdict.lines.emplace_back(
      "What limits it", concat(diagnosis.at("bottleneck").get<std::string>(),
                               ": ", diagnosis.at("found").get<std::string>()));
  auto advice = diagnosis.at("advice").get<std::string>();
  auto gain = diagnosis.at("gain").get<double>();
  if (advice.empty())
    advice = "nothing that the diagnosis knows would make it faster";
  else if (gain > 1.05)
    advice += concat(" (about ", printNumber(std::round(10 * gain) / 10),
                     " times as fast)");
  verdict.lines.emplace_back("What to do", advice);
}

static Fact describeLossFact(const RunLog &log) {
  Fact fact = {"Loss, first and last", nullptr, "text", ""};
  if (log.updates.empty())
    return fact;
  fact.value = concat(printNumber(log.updates.front().loss), " → ",
                      printNumber(log.updates.back().loss));
  for (auto it = log.updates.rbegin(); it != log.updates.rend(); ++it)
    if (it->evaluation.is_object() && it->evaluation.contains("loss") &&
        it->evaluation["loss"].is_number()) {
      fact.note = concat("evaluation after ", it->step, ": ",
                         printNumber(it->evaluation["loss"].get<double>()));
      break;
    }
  return fact;
}

static Fact describeWaiting(const RunTimes &times) {
  if (!times.isKnown)
    return {"Waiting for data", nullptr, "share", "not in this log"};
  std::string note =
      concat("checkpoints ", printPercent(times.checkpoints / times.getAll()));
  if (times.ranks > 0)
    note +=
        concat(", other ranks ", printPercent(times.ranks / times.getAll()));
  return {"Waiting for data", times.data / times.getAll(), "share", note};
}

static Fact describeSpeedFact(const RunLog &log, const RunTimes &times) {
  Fact fact = {"Samples a second", nullptr, "number", "in updates, on average"};
  if (times.updates > 0) {
    fact.value = times.samples / times.updates;
    if (times.tokens > 0)
      fact.note += concat(", ", std::llround(times.tokens / times.updates),
                          " tokens a second");
    if (times.peak > 0)
      fact.note += concat(", ", printPercent(times.peak / times.updates),
                          " of the peak");
  } else if (Curve curve = thin(log, &LoggedUpdate::samplesPerSecond);
             !curve.mean.empty())
    fact = {fact.name, curve.mean.back(), "number", "of the last updates"};
  return fact;
}

static std::vector<Fact> listFacts(const RunReport &run,
                                   const RunTimes &times) {
  const std::vector<LoggedUpdate> &updates = run.log.updates;
  auto skipped = std::ranges::count(updates, true, &LoggedUpdate::isSkipped);
  std::string note = skipped ? concat(skipped, " changed nothing") : "";
  if (run.log.redone > 0)
    note += concat(note.empty() ? "" : ", ", run.log.redone, " made again");
  double most = LoggedUpdate::kUnknown;
  for (const LoggedUpdate &update : updates)
    most = std::fmax(most, update.residentBytes);
  return {{"Updates", countMade(run), "count", note},
          describeLossFact(run.log),
          describeSpeedFact(run.log, times),
          {"Time in updates",
           times.isKnown ? ordered_json(times.updates) : nullptr, "seconds",
           "without evaluations"},
          describeWaiting(times),
          {"Memory", most, "bytes", "resident, at most"}};
}

std::string tools::makeRunPage(const RunReport &run) {
  RunTimes times = sumUp(run.log);
  std::filesystem::path folder(run.folder);
  std::string name = folder.filename().empty()
                         ? folder.parent_path().filename().string()
                         : folder.filename().string();
  Page page("Run " + name,
            concat("Training of ", run.record.packagePath, " on ",
                   run.record.flags.at("--data").front()));
  Verdict verdict = judgeEnd(run);
  addLimit(run, times, verdict);
  if (run.log.isTorn)
    verdict.lines.emplace_back(
        "Note", "the last line of the log is half written, as a process that "
                "is killed leaves it: it is left out");
  page.set(verdict);
  page.set(listFacts(run, times));
  page.add(describeLoss(run));
  page.add(describeSpeed(run));
  page.add(describeProfile(run));
  page.add(describeDiagnosis(run));
  page.add(describeMemory(run));
  page.add(describeRecord(run));
  return page.print();
}

#include "tools/tcc-run/report/RunReport.h"

#include "tools/report/MemorySection.h"

#include <cmath>
#include <map>
#include <set>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

/// What each point of a curve stands for.
static std::string describeWidth(const Curve &curve) {
  if (curve.width == 1)
    return "";
  return concat("Each point is ", curve.width,
                " updates: the line is their mean, the band reaches from the "
                "least to the largest.");
}

static Series makeSeries(const std::string &name, const Curve &curve) {
  Series series = {name, curve.x, curve.mean};
  if (curve.width > 1) {
    series.low = curve.low;
    series.high = curve.high;
  }
  return series;
}

static Chart makeChart(const RunLog &log, const char *title,
                       const ChartAxis &axis, double LoggedUpdate::*value) {
  Curve curve = thin(log, value);
  return {.kind = Chart::Kind::lines,
          .title = title,
          .x = {"update", "count"},
          .y = axis,
          .about = describeWidth(curve),
          .series = {makeSeries(axis.name, curve)}};
}

/// A curve, unless there is nothing to draw or it is the same everywhere.
static void addIfVaried(Section &section, const Chart &chart) {
  std::set<double> values(chart.series[0].y.begin(), chart.series[0].y.end());
  if (values.size() > 1)
    section.add(chart);
}

//===----------------------------------------------------------------------===//
// The loss
//===----------------------------------------------------------------------===//

/// The losses of evaluations, if they have any.
static Series listEvaluatedLosses(const RunLog &log) {
  Series series = {"evaluation", {}, {}};
  series.hasDots = true;
  for (const LoggedUpdate &update : log.updates)
    if (update.evaluation.is_object() && update.evaluation.contains("loss") &&
        update.evaluation["loss"].is_number()) {
      series.x.push_back(double(update.step));
      series.y.push_back(update.evaluation["loss"]);
    }
  return series;
}

/// All metrics that are numbers.
static void addEvaluations(Section &section, const RunLog &log) {
  std::vector<std::string> metrics;
  for (const LoggedUpdate &update : log.updates)
    if (update.evaluation.is_object())
      for (const auto &[name, value] : update.evaluation.items())
        if (value.is_number() &&
            std::find(metrics.begin(), metrics.end(), name) == metrics.end())
          metrics.push_back(name);
  if (metrics.empty())
    return section.addNote("Nothing was evaluated: eval.every of a recipe says "
                           "how often.");
  std::vector<Column> columns = {{"after update", "count"}};
  for (const std::string &metric : metrics)
    columns.push_back({metric, "number"});
  Table table("Evaluations", columns);
  for (const LoggedUpdate &update : log.updates) {
    if (!update.evaluation.is_object())
      continue;
    ordered_json::array_t row = {update.step};
    for (const std::string &metric : metrics) {
      auto value = update.evaluation.find(metric);
      row.push_back(value != update.evaluation.end() && value->is_number()
                        ? *value
                        : ordered_json());
    }
    table.add(std::move(row));
  }
  section.add(table);
}

/// Updates that changed nothing, or were left out.
static void addOddUpdates(Section &section, const RunLog &log) {
  Table table("Updates that were skipped or left out",
              {{"update", "count"},
               {"what"},
               {"loss", "number"},
               {"gradient norm", "number"}});
  for (const LoggedUpdate &update : log.updates)
    if (update.isSkipped || update.isSpike)
      table.add(
          {update.step,
           update.isSpike ? "a spike: left out" : "not finite: changed nothing",
           update.loss, update.gradNorm});
  if (!table.rows.empty())
    section.add(table);
}

Section tools::describeLoss(const RunReport &run) {
  Section section("Loss",
                  "Whether the loss falls, whether evaluations follow it or "
                  "rise again (then the model learns its data by heart), and "
                  "whether the rate or large gradients explain a jump.");
  if (run.log.updates.empty()) {
    section.addNote("No update was made.");
    return section;
  }
  Chart chart = makeChart(run.log, "Loss", {"loss"}, &LoggedUpdate::loss);
  if (Series evaluated = listEvaluatedLosses(run.log); !evaluated.x.empty())
    chart.series.push_back(std::move(evaluated));
  section.add(chart);
  addIfVaried(section, makeChart(run.log, "Learning rate", {"learning rate"},
                                 &LoggedUpdate::rate));
  addIfVaried(section,
              makeChart(run.log, "Gradient norm",
                        {"norm before clipping", "number", false, true},
                        &LoggedUpdate::gradNorm));
  addIfVaried(section, makeChart(run.log, "Loss scale", {"loss scale"},
                                 &LoggedUpdate::lossScale));
  addEvaluations(section, run.log);
  addOddUpdates(section, run.log);
  return section;
}

//===----------------------------------------------------------------------===//
// Speed
//===----------------------------------------------------------------------===//

static void addTimes(Section &section, const RunTimes &times) {
  double computing = times.updates - times.data - times.ranks;
  Parts parts = {"Where the time of all updates went",
                 "seconds",
                 "By the log: all of the run, without evaluations.",
                 {{"computing, and the host", std::max(computing, 0.0)},
                  {"waiting for data", times.data},
                  {"waiting for checkpoints", times.checkpoints}}};
  if (times.ranks > 0)
    parts.values.emplace_back("waiting for other ranks", times.ranks);
  section.add(parts);
}

Section tools::describeSpeed(const RunReport &run) {
  Section section("Speed",
                  "Whether updates wait for data, checkpoints or other ranks, "
                  "and whether the run was as fast all the time: steps and "
                  "spikes have a cause outside of the model.");
  if (RunTimes times = sumUp(run.log); times.isKnown)
    addTimes(section, times);
  else
    section.addNote("The log does not say how long updates took: that of a "
                    "newer tcc-run does.");
  Chart seconds =
      makeChart(run.log, "Time of an update",
                {"seconds", "seconds", false, true}, &LoggedUpdate::seconds);
  seconds.series[0].name = "the update";
  if (!seconds.series[0].x.empty()) {
    Series data =
        makeSeries("waiting for data", thin(run.log, &LoggedUpdate::dataWait));
    seconds.y.name = "of an update";
    seconds.series.push_back(std::move(data));
    section.add(seconds);
  }
  Chart samples = makeChart(run.log, "Samples a second",
                            {"samples a second", "number", false, true},
                            &LoggedUpdate::samplesPerSecond);
  if (!samples.series[0].x.empty())
    section.add(samples);
  Chart peak =
      makeChart(run.log, "Of the peak of the device (MFU)",
                {"of the peak", "share", false, true}, &LoggedUpdate::mfu);
  if (!peak.series[0].x.empty())
    section.add(peak);
  return section;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Bytes of variables by their kinds.
static Parts listVariables(const ordered_json &package) {
  std::map<std::string, double> sums;
  for (const ordered_json &row : package.at("variables"))
    sums[row.at("kind")] += row.at("bytes").get<double>();
  Parts parts = {"Variables by kind", "bytes",
                 "What a checkpoint keeps, and what only a step uses."};
  for (const auto &[kind, bytes] : sums)
    if (bytes > 0)
      parts.values.emplace_back(kind, bytes);
  return parts;
}

Section tools::describeMemory(const RunReport &run) {
  Section section("Memory",
                  "How much the process had in memory, whether that grew, and "
                  "which layers' values fill the arena at the peak of a step.");
  if (const ordered_json &planned = run.find("memory_bytes");
      planned.is_number())
    section.addNote(concat("The session was planned to take ",
                           planned.get<int64_t>() >> 20,
                           " MiB; the process has the rest."));
  Chart resident = makeChart(run.log, "Resident memory of the first process",
                             {"resident", "bytes", false, true},
                             &LoggedUpdate::residentBytes);
  if (!resident.series[0].x.empty())
    section.add(resident);
  if (run.package.is_null()) {
    section.addNote(concat(
        "What lies in the arena is not known: ", run.packageProblem, "."));
    return section;
  }
  section.add(listVariables(run.package));
  addArenas(section, run.arenas);
  return section;
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

static void addPairs(Table &table, const char *of, const ordered_json &values) {
  for (const auto &[key, value] : values.items())
    table.add(
        {of, key, value.is_string() ? value.get<std::string>() : value.dump()});
}

static std::string join(const std::vector<std::string> &words) {
  std::string line;
  for (const std::string &word : words)
    line += (line.empty() ? "" : " ") + word;
  return line;
}

Section tools::describeRecord(const RunReport &run) {
  Section section("The run",
                  "What the run was told: enough to make it again. run.json "
                  "has the same.");
  Table settings("Recipe, settings and flags", {{"of"}, {"key"}, {"value"}});
  addPairs(settings, "recipe", run.record.recipe);
  addPairs(settings, "settings", run.record.settings);
  for (const auto &[flag, values] : run.record.flags)
    settings.add({"flags", flag, join(values)});
  section.add(settings);
  Table starts("Processes that trained for it",
               {{"began"}, {"tcc"}, {"command line"}});
  for (const RunStart &start : run.record.starts)
    starts.add({start.time, start.version, join(start.command)});
  section.add(starts);
  return section;
}

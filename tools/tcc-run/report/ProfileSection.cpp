#include "tools/report/MemorySection.h"
#include "tools/tcc-run/report/RunReport.h"

#include <algorithm>
#include <map>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

static constexpr double kMilli = 1e-3, kGiga = 1e9;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {

/// A launch of an update on average, or several with something in common.
struct Measured {
  std::string node, op, module, phase, kernel;
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double least = 0;     ///< seconds that the roofline allows
  double predicted = 0; ///< seconds, by the compiler's cost model; 0: not known
};

} // namespace

static std::vector<Measured> readLaunches(const ordered_json &profile) {
  std::vector<Measured> launches;
  for (const ordered_json &row : profile.at("profile")) {
    Measured launch = {row.at("node"),
                       row.at("op"),
                       row.at("module"),
                       row.at("phase"),
                       row.at("kernel"),
                       row.at("calls"),
                       kMilli * row.at("ms").get<double>(),
                       row.at("flops"),
                       row.at("bytes")};
    launch.least = row.at("roofline").get<double>() * launch.seconds;
    launch.predicted = kMilli * row.value("predicted_ms", 0.0);
    launches.push_back(std::move(launch));
  }
  return launches;
}

/// "Gemm (backward)": what is not of the forward part says so.
static std::string withPhase(const Measured &launch, const std::string &name) {
  return launch.phase == "forward" ? name
                                   : concat(name, " (", launch.phase, ")");
}

static Table makeTable(std::string title, std::vector<Column> names) {
  std::vector<Column> columns = std::move(names);
  columns.insert(columns.end(), {{"of the update", "share", true},
                                 {"time", "seconds"},
                                 {"predicted", "seconds"},
                                 {"calls", "count"},
                                 {"operations", "flops/s"},
                                 {"memory", "bytes/s"},
                                 {"of the roofline", "share"}});
  return Table(std::move(title), std::move(columns));
}

static void addRow(Table &table, ordered_json::array_t row, const Measured &sum,
                   double update) {
  double seconds = std::max(sum.seconds, 1e-12);
  auto ifKnown = [](double known, double value) {
    return known > 0 ? ordered_json(value) : ordered_json();
  };
  row.insert(row.end(), {sum.seconds / update, sum.seconds,
                         ifKnown(sum.predicted, sum.predicted), sum.calls,
                         sum.flops / seconds, sum.bytes / seconds,
                         ifKnown(sum.least, sum.least / seconds)});
  table.add(std::move(row));
}

/// Sums over launches whose names are the same.
static Table sumUpBy(std::string title, const char *of,
                     const std::vector<Measured> &launches,
                     const std::vector<std::string> &names, double update) {
  std::map<std::string, Measured> sums;
  for (size_t i = 0; i < launches.size(); ++i) {
    const Measured &launch = launches[i];
    Measured &sum = sums[withPhase(launch, names[i])];
    sum.calls += launch.calls;
    sum.seconds += launch.seconds;
    sum.flops += launch.flops;
    sum.bytes += launch.bytes;
    sum.least += launch.least;
    sum.predicted += launch.predicted;
  }
  std::vector<std::pair<double, std::string>> order; // times are negative
  for (const auto &[name, sum] : sums)
    order.emplace_back(-sum.seconds, name);
  std::ranges::sort(order);
  Table table = makeTable(std::move(title), {{of}});
  for (const auto &[time, name] : order)
    addRow(table, {name}, sums[name], update);
  return table;
}

static Table listKernels(const std::vector<Measured> &launches, double update) {
  Table table = makeTable("Every kernel", {{"node"}, {"operator"}, {"module"}});
  for (const Measured &launch : launches)
    addRow(table, {withPhase(launch, launch.node), launch.op, launch.module},
           launch, update);
  return table;
}

//===----------------------------------------------------------------------===//
// Where the time goes
//===----------------------------------------------------------------------===//

/// What parts of an update are called for those who do not know their names.
static std::string explainPart(const std::string &name) {
  static const std::map<std::string, std::string> kNames = {
      {"communication", "waiting for other ranks"},
      {"other lanes", "waiting for other lanes"},
      {"copies", "copies that nothing hides"},
      {"uploads", "copying batches to the device"},
      {"data", "waiting for data"},
      {"checkpoints", "waiting for checkpoints"},
      {"logs", "writing logs"},
      {"host", "the host, between kernels"}};
  auto it = kNames.find(name);
  return it == kNames.end() ? name : it->second;
}

static Parts listParts(const ordered_json &profile) {
  Parts parts = {"An update on average", "seconds",
                 concat("Measured over ", profile.at("updates").dump(),
                        " updates of the last process.")};
  for (const auto &[name, value] : profile.at("parts_ms").items())
    if (value.get<double>() > 0)
      parts.values.emplace_back(explainPart(name),
                                kMilli * value.get<double>());
  return parts;
}

static bool hasDot(const Measured &launch) {
  return launch.flops > 0 && launch.bytes > 0 && launch.seconds > 0;
}

/// Dots below the lines that the machine allows, by phase.
static void addRoofline(Section &section, const ordered_json &profile,
                        const std::vector<Measured> &launches) {
  double flops = kGiga * profile.at("roofline_gflops").get<double>();
  double bytes = kGiga * profile.at("roofline_gbytes").get<double>();
  if (flops <= 0 || bytes <= 0)
    return section.addNote("There is no roofline: what this machine could do "
                           "at most is not measured for its device.");
  Chart chart = {.kind = Chart::Kind::dots,
                 .title = "Roofline",
                 .x = {"operations a byte", "number", true},
                 .y = {"operations a second", "flops/s", true},
                 .about =
                     "A dot is a kernel. On the slope memory limits it, under "
                     "the flat line arithmetic; the further below, the more a "
                     "better kernel could gain. What only moves bytes has no "
                     "dot."};
  chart.roof = {flops, bytes};
  std::map<std::string, size_t> places;
  for (const auto &[phase, time] : profile.at("parts_ms").items())
    if (std::ranges::any_of(launches, [&](const Measured &launch) {
          return launch.phase == phase && hasDot(launch);
        })) {
      places[phase] = chart.series.size();
      chart.series.push_back({.name = phase, .x = {}, .y = {}});
    }
  for (const Measured &launch : launches) {
    auto place = places.find(launch.phase);
    if (place == places.end() || !hasDot(launch))
      continue;
    Series &series = chart.series[place->second];
    series.x.push_back(launch.flops / launch.bytes);
    series.y.push_back(launch.flops / launch.seconds);
    series.labels.push_back(
        launch.op.empty() ? launch.node : concat(launch.node, ", ", launch.op));
  }
  if (!chart.series.empty())
    section.add(chart);
}

Section tools::describeProfile(const RunReport &run) {
  Section section(
      "Where an update spends its time",
      "Which phase, operator and layer takes most, and how far its kernels are "
      "from what the machine can do.");
  const ordered_json &profile = run.find("profile");
  if (!profile.is_object() || profile.value("updates", 0) == 0) {
    section.addNote("There is no profile: tcc-run train --profile or "
                    "--diagnose measures one.");
    return section;
  }
  double update = kMilli * profile.at("profile_ms").get<double>();
  section.add(listParts(profile));
  if (auto lost = profile.at("lost_events").get<int64_t>())
    section.addNote(concat("The trace had no room for ", lost,
                           " commands: what they took is counted as the "
                           "host's."));
  std::vector<Measured> launches = readLaunches(profile);
  addRoofline(section, profile, launches);
  std::vector<std::string> operators, modules;
  bool isNamed = false;
  for (const Measured &launch : launches) {
    operators.push_back(launch.op.empty() ? launch.node : launch.op);
    modules.push_back(launch.module);
    isNamed |= !launch.module.empty();
  }
  section.add(sumUpBy("By operator", "operator", launches, operators, update));
  modules = groupModules(modules);
  for (std::string &name : modules)
    if (name.empty())
      name = "no module";
  if (isNamed)
    section.add(
        sumUpBy("By part of the model", "modules", launches, modules, update));
  section.add(listKernels(launches, update));
  return section;
}

Section tools::describeDiagnosis(const RunReport &run) {
  Section section("Diagnosis",
                  "Which questions led to what limits the run: each has a "
                  "share of the time, and a limit from which on it counts.");
  const ordered_json &diagnosis = run.find("diagnosis");
  if (!diagnosis.is_object()) {
    section.addNote("There is no diagnosis: tcc-run train --diagnose makes "
                    "one.");
    return section;
  }
  Table table(
      "Questions, as they were asked",
      {{"what"}, {"share", "share", true}, {"limit", "share"}, {"too much?"}});
  for (const ordered_json &row : diagnosis.at("questions"))
    table.add({row.at("asked"), row.at("value"), row.at("limit"),
               row.at("yes").get<bool>() ? "yes" : "no"},
              row.at("yes").get<bool>());
  section.add(table);
  for (const ordered_json &note : diagnosis.at("notes"))
    section.addNote("Note: " + note.get<std::string>());
  return section;
}

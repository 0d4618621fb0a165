#include "tools/tcc/ReportSections.h"

#include "tools/cli/MemoryUse.h"
#include "tools/report/MemorySection.h"

#include <algorithm>
#include <map>

using namespace tcc;
using namespace tcc::tools;
using nlohmann::json;
using nlohmann::ordered_json;

static constexpr double kMicro = 1e-6;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Parts listKinds(std::string title, const MemoryPlan &memory) {
  Parts parts = {std::move(title), "bytes"};
  auto add = [&](const char *kind, int64_t bytes) {
    if (bytes > 0)
      parts.values.emplace_back(kind, double(bytes));
  };
  add("constants", memory.constants);
  add("variables", memory.variables);
  add("arena", memory.arena);
  add("states", memory.states);
  add("scratch of threads", memory.workers);
  add("workspace of libraries", memory.workspace);
  add("faults of launches", memory.faults);
  add("copies that overlap", memory.passage);
  return parts;
}

/// What smaller arenas cost the entry points that have a choice.
static void addCosts(Section &section,
                     const std::vector<EntryRecompute> &entries) {
  Chart chart = {.kind = Chart::Kind::lines,
                 .title = "What a smaller arena costs",
                 .x = {"in use at most", "bytes"},
                 .y = {"more time, predicted", "share", false, true},
                 .about = "Dots are what the budget led to."};
  Series taken;
  taken.name = "taken";
  taken.hasDots = true;
  for (const EntryRecompute &entry : entries) {
    double least = entry.keptMicroseconds;
    if (!entry.chosen || least <= 0 || entry.possible.size() < 2)
      continue;
    Series &possible = chart.series.emplace_back();
    possible.name = entry.entry;
    std::vector<PeakCost> points = entry.possible;
    std::ranges::sort(points, {}, &PeakCost::bytes);
    for (const PeakCost &point : points) {
      possible.x.push_back(double(point.bytes));
      possible.y.push_back(point.microseconds / least - 1);
    }
    taken.x.push_back(double(entry.chosen->bytes));
    taken.y.push_back(entry.chosen->microseconds / least - 1);
  }
  if (chart.series.empty())
    return;
  chart.series.push_back(std::move(taken));
  section.add(chart);
}

static void addRecomputed(Section &section, const ordered_json &rows) {
  Table table("Computed again to save memory",
              {{"node"},
               {"what"},
               {"times", "count"},
               {"bytes saved", "bytes"},
               {"time, predicted", "seconds"}});
  for (const ordered_json &row : rows)
    table.add({row["node"], row["what"], row["times"], row["bytes"],
               kMicro * row["microseconds"].get<double>()});
  if (!rows.empty())
    section.add(table);
}

Section tools::describeMemory(const CompileReport &report) {
  Section section("Memory",
                  "Which kind of bytes there are most of, when most of the "
                  "arena is in use, and which layers' values fill it then: "
                  "those are what a smaller batch, a lower precision or a "
                  "budget would shrink.");
  section.add(listKinds("All planned bytes", report.memory));
  if (report.memoryOfRanks &&
      report.memoryOfRanks->getTotal() != report.memory.getTotal())
    section.add(listKinds("Of each of several ranks", *report.memoryOfRanks));
  addArenas(section, report.arenas);
  addCosts(section, report.recomputes);
  addRecomputed(section,
                describeMemory(report.arenas, report.recomputes)["recomputed"]);
  return section;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

static bool isMemoryBound(const LaunchUse &launch) {
  return launch.memory > launch.arithmetic;
}

static double getAll(const LaunchUse &launch) {
  return launch.start + std::max(launch.memory, launch.arithmetic);
}

PredictedTime tools::predict(const std::vector<LaunchUse> &launches) {
  PredictedTime time;
  for (const LaunchUse &launch : launches) {
    time.start += launch.start;
    (isMemoryBound(launch) ? time.memory : time.arithmetic) +=
        std::max(launch.memory, launch.arithmetic);
  }
  return time;
}

static std::string print(const LaunchUse &launch, const std::string &name) {
  return launch.phase == "forward" ? name : name + " (" + launch.phase + ")";
}

/// Sums over launches whose names are the same: of each its name.
static Table sumUp(std::string title, const char *of,
                   const std::vector<LaunchUse> &launches,
                   const std::vector<std::string> &names) {
  struct Sum {
    int64_t launches = 0, flops = 0, bytes = 0;
    double time = 0;
  };
  std::map<std::string, Sum> sums;
  double all = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    Sum &sum = sums[print(launches[i], names[i])];
    ++sum.launches;
    sum.flops += launches[i].flops;
    sum.bytes += launches[i].bytes;
    sum.time += getAll(launches[i]);
    all += getAll(launches[i]);
  }
  Table table(std::move(title), {{of},
                                 {"predicted time", "share", true},
                                 {"launches", "count"},
                                 {"operations", "flops"},
                                 {"bytes moved", "bytes"}});
  std::vector<std::pair<double, std::string>> order; // times are negative
  for (const auto &[name, sum] : sums)
    order.emplace_back(-sum.time, name);
  std::ranges::sort(order);
  for (const auto &[time, name] : order) {
    const Sum &sum = sums[name];
    table.add({name, sum.time / all, sum.launches, sum.flops, sum.bytes});
  }
  return table;
}

static const char *nameLimit(const LaunchUse &launch) {
  if (launch.start > std::max(launch.memory, launch.arithmetic))
    return "its start";
  return isMemoryBound(launch) ? "memory" : "arithmetic";
}

static Table listLaunches(const std::vector<LaunchUse> &launches, double all) {
  Table table("Every launch", {{"node"},
                               {"operator"},
                               {"module"},
                               {"predicted time", "share", true},
                               {"limited by"},
                               {"operations", "flops"},
                               {"bytes moved", "bytes"},
                               {"operations a byte", "number"}});
  table.about = "In the order of the program until a column is chosen.";
  for (const LaunchUse &launch : launches) {
    ordered_json intensity;
    if (launch.bytes > 0)
      intensity = double(launch.flops) / double(launch.bytes);
    table.add({launch.node, print(launch, launch.op), launch.module,
               getAll(launch) / all, nameLimit(launch), launch.flops,
               launch.bytes, intensity});
  }
  return table;
}

static std::string nameOp(const LaunchUse &launch) {
  return launch.op.empty() ? launch.node : launch.op;
}

Section tools::describeTime(const CompileReport &report) {
  Section section(
      "Predicted time",
      "Which operators and layers take most of a run, and whether arithmetic, "
      "memory or starting kernels limits them. The cost model predicts this "
      "for a typical machine of the target: shares are what it is good for. "
      "tcc-run bench --profile measures.");
  if (report.launchUses.empty()) {
    section.addNote("Nothing is launched.");
    return section;
  }
  PredictedTime time = predict(report.launchUses);
  section.add(Parts{"What kernels wait for",
                    "share",
                    "A loop's body counts once.",
                    {{"arithmetic", time.arithmetic / time.getAll()},
                     {"memory", time.memory / time.getAll()},
                     {"starting kernels", time.start / time.getAll()}}});
  std::vector<std::string> operators, modules;
  for (const LaunchUse &launch : report.launchUses) {
    operators.push_back(nameOp(launch));
    modules.push_back(launch.module);
  }
  section.add(sumUp("By operator", "operator", report.launchUses, operators));
  modules = groupModules(modules);
  bool isNamed = false;
  for (std::string &name : modules) {
    isNamed |= !name.empty();
    if (name.empty())
      name = "no module";
  }
  if (isNamed)
    section.add(
        sumUp("By part of the model", "modules", report.launchUses, modules));
  section.add(listLaunches(report.launchUses, time.getAll()));
  return section;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

static constexpr char kFusion[] = "fuse-ops", kPrecision[] = "mix-precision";

static ordered_json getNumber(const json &decision, const char *name) {
  const json &numbers = decision.at("numbers");
  return numbers.contains(name) ? ordered_json(numbers[name].get<double>())
                                : ordered_json();
}

static bool isOf(const json &decision, const char *pass) {
  return decision.at("pass") == pass;
}

/// Entry points have kernels in common: rows that are the same become one,
/// whose last cell counts them.
static void fold(Table &table) {
  std::map<ordered_json::array_t, size_t> places;
  std::vector<ordered_json::array_t> rows;
  for (ordered_json::array_t &row : table.rows) {
    auto [place, isNew] = places.try_emplace(row, rows.size());
    if (isNew) {
      rows.push_back(row);
      rows.back().emplace_back(0);
    }
    ordered_json &count = rows[place->second].back();
    count = count.get<int64_t>() + 1;
  }
  table.rows = std::move(rows);
  table.columns.push_back({"times", "count"});
}

Section tools::describeFusion(const json &decisions) {
  Section section("Fusion",
                  "Which nodes share a kernel, so that what is between them "
                  "never goes to memory, and why others do not: the largest "
                  "bytes beside a refusal are the most that it costs.");
  Table kernels("Kernels", {{"named after"},
                            {"nodes", "count"},
                            {"what"},
                            {"operations", "flops"},
                            {"reads", "bytes"},
                            {"writes", "bytes"}});
  Table refusals("Not fused", {{"node"}, {"why"}, {"bytes between", "bytes"}});
  for (const json &row : decisions) {
    if (!isOf(row, kFusion))
      continue;
    if (row.at("decision") == "not fused")
      refusals.add({row.at("node"), row.at("reason"), getNumber(row, "bytes")});
    else
      kernels.add({row.at("node"), getNumber(row, "ops"), row.at("reason"),
                   getNumber(row, "flops"), getNumber(row, "bytes_read"),
                   getNumber(row, "bytes_written")});
  }
  fold(kernels);
  fold(refusals);
  section.add(kernels);
  section.add(refusals);
  return section;
}

Section tools::describePrecision(const CompileReport &report,
                                 const json &decisions) {
  /// Rows where an op or a rounding adds most are marked.
  constexpr double kLeast = 1e-4, kJump = 2;
  Section section("Precision",
                  "Which products read narrow numbers, and at which node the "
                  "results move away from those in f32. Marked is what more "
                  "than doubles the difference: keep_f32 of a recipe keeps "
                  "such nodes wide.");
  Table chosen("What was decided", {{"node"}, {"decision"}, {"why"}},
               "No product reads narrower numbers than it was given.");
  for (const json &row : decisions)
    if (isOf(row, kPrecision))
      chosen.add({row.at("node"), row.at("decision"), row.at("reason")});
  section.add(chosen);
  if (report.shadow.empty()) {
    section.addNote("Differences from f32: " + report.shadowNote + ".");
    return section;
  }
  Chart chart = {.kind = Chart::Kind::lines,
                 .title = "Off f32, node by node",
                 .x = {"node", "count"},
                 .y = {"root mean square of the difference / of the value",
                       "number", true},
                 .about = "On random inputs, in the order of the program."};
  Series &after = chart.series.emplace_back();
  after.name = "off f32";
  Table table("Off f32",
              {{"node"}, {"op"}, {"before", "number"}, {"after", "number"}});
  for (const ShadowRow &row : report.shadow) {
    after.x.push_back(double(after.x.size() + 1));
    after.y.push_back(row.after);
    table.add({row.node, row.op, row.before, row.after},
              row.after > kLeast && row.after > kJump * row.before);
  }
  section.add(chart);
  section.add(table);
  return section;
}

/// Whether it is a choice that a budget had: a chart has all of them.
static bool isDrawn(const json &decision) {
  return isOf(decision, "recompute-values") &&
         decision.at("decision") == "possible";
}

Section tools::listOtherDecisions(const json &decisions) {
  /// Nodes that a row has at most.
  constexpr size_t kMostNodes = 8;
  Section section("All other decisions",
                  "What each pass did to which nodes, and why. tcc "
                  "--dump-decisions has the same with all numbers.");
  Table table("Decisions",
              {{"pass"}, {"decision"}, {"nodes"}, {"why"}, {"times", "count"}});
  std::map<std::vector<std::string>, std::vector<std::string>> nodes;
  std::vector<std::vector<std::string>> order;
  for (const json &row : decisions) {
    if (isOf(row, kFusion) || isOf(row, kPrecision) || isDrawn(row))
      continue;
    std::vector<std::string> key = {row.at("pass"), row.at("decision"),
                                    row.at("reason")};
    auto [place, isNew] = nodes.try_emplace(key);
    if (isNew)
      order.push_back(std::move(key));
    place->second.push_back(row.at("node"));
  }
  for (const std::vector<std::string> &key : order) {
    const std::vector<std::string> &list = nodes[key];
    for (size_t i = 0; i < list.size(); i += kMostNodes) {
      size_t end = std::min(list.size(), i + kMostNodes);
      std::string text = list[i];
      for (size_t k = i + 1; k < end; ++k)
        text += ", " + list[k];
      table.add({key[0], key[1], text, key[2], end - i});
    }
  }
  section.add(table);
  return section;
}

//===----------------------------------------------------------------------===//
// The compilation
//===----------------------------------------------------------------------===//

static void addMessages(Section &section,
                        const std::vector<MessageUse> &messages) {
  Table table(
      "What ranks add up in an update",
      {{"of"}, {"bytes", "bytes"}, {"work beside it, predicted", "seconds"}});
  for (const MessageUse &message : messages)
    table.add({message.of, message.bytes, kMicro * message.hidingMicroseconds});
  if (!messages.empty())
    section.add(table);
}

Section tools::describeCompilation(const CompileReport &report) {
  Section section("The compilation",
                  "What the compiler has to say of the model and the recipe, "
                  "and where its own time went.");
  Table notes("Notes", {{"note"}});
  for (const std::string &note : report.notes)
    notes.add({note});
  section.add(notes);
  addMessages(section, report.messages);
  Table parameters("What is trained", {{"tensor"}});
  for (const std::string &line : report.parameters)
    parameters.add({line});
  if (!report.parameters.empty())
    section.add(parameters);
  Table phases("Phases",
               {{"phase"}, {"time", "seconds"}, {"of all", "share", true}});
  for (const auto &[phase, seconds] : report.phases)
    phases.add({phase, seconds, seconds / std::max(report.seconds, 1e-9)});
  section.add(phases);
  return section;
}

#include "tools/tcc/ReportPage.h"

#include "tools/cli/MemoryUse.h"
#include "tools/cli/Picture.h"

#include <algorithm>
#include <cstdio>

using namespace tcc;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// Text that is escaped where it comes from outside.
class Page {
public:
  void open(const std::string &title);
  void addTable(const char *title, const std::vector<const char *> &columns);
  void addRow(const std::vector<std::string> &cells, bool isMarked = false);
  void endTable() { text += "</table>\n"; }
  void addLine(const std::string &line) {
    text += "<p>" + escape(line) + "</p>\n";
  }
  /// Adds a picture; its title is escaped, its SVG is not.
  void addPicture(const std::string &title, const tools::Picture &picture) {
    text += "<h3>" + escape(title) + "</h3>\n" + picture.finish();
  }
  std::string finish() { return text + "</body></html>\n"; }

private:
  static std::string escape(const std::string &raw);

  std::string text;
};

} // namespace

std::string Page::escape(const std::string &raw) {
  std::string escaped;
  for (char letter : raw)
    switch (letter) {
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '&':
      escaped += "&amp;";
      break;
    default:
      escaped += letter;
    }
  return escaped;
}

void Page::open(const std::string &title) {
  text = "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"/><title>" +
         escape(title) +
         "</title><style>body{font-family:sans-serif;margin:2em}"
         "table{border-collapse:collapse}td,th{border-bottom:1px solid #ddd;"
         "padding:.2em .8em;text-align:left}.marked{background:#fdd}"
         "</style></head><body>\n<h1>" +
         escape(title) + "</h1>\n";
}

void Page::addTable(const char *title,
                    const std::vector<const char *> &columns) {
  text += "<h2>" + escape(title) + "</h2>\n<table>\n<tr>";
  for (const char *column : columns)
    text += "<th>" + escape(column) + "</th>";
  text += "</tr>\n";
}

void Page::addRow(const std::vector<std::string> &cells, bool isMarked) {
  text += isMarked ? "<tr class=\"marked\">" : "<tr>";
  for (const std::string &cell : cells)
    text += "<td>" + escape(cell) + "</td>";
  text += "</tr>\n";
}

static std::string print(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.3g", value);
  return buffer;
}

static void addFigures(Page &page, const CompileReport &report) {
  page.addTable("Figures", {"", ""});
  auto add = [&](const char *name, int64_t value) {
    page.addRow({name, std::to_string(value)});
  };
  add("ops", report.ops);
  add("kernels", report.kernels);
  add("kernels that libraries have", report.libraryCalls);
  add("launches of a run or training step", report.launches);
  add("bytes that they read and write", report.bytes);
  add("flops", report.flops);
  add("bytes of the arena", report.arenaBytes);
  add("the least that are live at once", report.arenaBoundBytes);
  add("bytes of weights", report.weightBytes);
  page.endTable();
}

/// Rows where an op or a rounding adds most are marked.
static void addPrecision(Page &page, const CompileReport &report) {
  constexpr double kLeast = 1e-4, kJump = 2;
  page.addTable("Low precision, op by op",
                {"node", "op", "off f32 before", "off f32 after"});
  for (const ShadowRow &row : report.shadow)
    page.addRow({row.node, row.op, print(row.before), print(row.after)},
                row.after > kLeast && row.after > kJump * row.before);
  page.endTable();
  page.addLine(report.shadow.empty()
                   ? report.shadowNote
                   : "Root mean squares of the differences from the same ops "
                     "in f32, as parts of those of the values, on random "
                     "inputs. Marked is what more than doubles it.");
}

// --- Memory ------------------------------------------------------------------

static constexpr double kMebi = 1 << 20;

static std::string printBytes(int64_t bytes) {
  char buffer[48];
  std::snprintf(buffer, sizeof(buffer), "%.2f MiB", double(bytes) / kMebi);
  return buffer;
}

static void addKinds(Page &page, const char *title, const MemoryPlan &memory) {
  page.addTable(title, {"kind", "bytes", "MiB"});
  auto add = [&](const char *kind, int64_t bytes) {
    page.addRow({kind, std::to_string(bytes), printBytes(bytes)});
  };
  add("constants", memory.constants);
  add("variables", memory.variables);
  add("states", memory.states);
  add("arena", memory.arena);
  add("scratch of threads", memory.workers);
  add("workspace of libraries", memory.workspace);
  add("faults of launches", memory.faults);
  add("copies that overlap", memory.passage);
  add("all", memory.getTotal());
  page.endTable();
}

/// The bytes in use over the commands of an entry point.
static void addTimeline(Page &page, const ordered_json &arena) {
  std::vector<int64_t> live = arena["live_bytes"];
  double end = arena["positions"].get<double>() / 2;
  double peak = arena["peak_bytes"].get<double>() / kMebi;
  tools::Picture picture({"commands", 0, end}, {"MiB", 0, peak * 1.1});
  tools::Picture::Points points;
  double step = end / double(live.size());
  for (size_t i = 0; i < live.size(); ++i)
    for (size_t side : {i, i + 1}) // steps, not slopes
      points.emplace_back(double(side) * step, double(live[i]) / kMebi);
  picture.addArea(points, "fill=\"#9cf\" stroke=\"#06c\"");
  picture.addMark(arena["peak_position"].get<double>() / 2, "peak", "#c30", 14);
  page.addPicture("In the arena of " + arena["entry"].get<std::string>(),
                  picture);
}

static void addTensors(Page &page, const ordered_json &arena) {
  std::string title = "Largest at the peak of ";
  title += arena["entry"].get<std::string>();
  page.addTable(title.c_str(), {"node", "bytes", "MiB", "from", "to"});
  for (const ordered_json &tensor : arena["tensors"]) {
    auto command = [&](const char *end) {
      return std::to_string(tensor[end].get<int64_t>() / 2);
    };
    page.addRow({tensor["node"], tensor["bytes"].dump(),
                 printBytes(tensor["bytes"]), command("begin"),
                 command("end")});
  }
  page.endTable();
}

/// What smaller arenas of one entry point cost; the one taken is marked.
static void addCurve(Page &page, const ordered_json &memory,
                     const ordered_json &fitted) {
  std::string entry = fitted["entry"];
  double least = fitted["microseconds_unbounded"];
  if (least == 0) // it copies only
    return;
  auto cost = [&](const ordered_json &point) {
    return 100 * (point["microseconds"].get<double>() / least - 1);
  };
  auto size = [](const ordered_json &point) {
    return point["bytes"].get<double>() / kMebi;
  };
  tools::Picture::Points points;
  double largest = 0, slowest = cost(fitted);
  for (const ordered_json &point : memory["curve"]) {
    if (point["entry"] != entry)
      continue;
    points.emplace_back(size(point), cost(point));
    largest = std::max(largest, size(point));
    slowest = std::max(slowest, cost(point));
  }
  tools::Picture picture({"MiB of the arena", 0, largest * 1.05},
                         {"% of time more, predicted", 0, slowest * 1.1});
  picture.addLine(points, "stroke=\"#06c\" stroke-width=\"2\"");
  picture.addDot(size(fitted), cost(fitted), "#c30");
  page.addPicture("What a smaller arena costs " + entry, picture);
}

static void addRecomputed(Page &page, const ordered_json &rows) {
  if (rows.empty())
    return;
  page.addTable("Computed again",
                {"node", "what", "times", "MiB", "microseconds"});
  for (const ordered_json &row : rows)
    page.addRow({row["node"], row["what"], row["times"].dump(),
                 printBytes(int64_t(row["bytes"].get<double>())),
                 print(row["microseconds"])});
  page.endTable();
}

static void addMemory(Page &page, const CompileReport &report) {
  addKinds(page, "Memory", report.memory);
  if (report.memoryOfRanks)
    addKinds(page, "Memory of each of several ranks", *report.memoryOfRanks);
  ordered_json memory = tools::describeMemory(report.arenas, report.recomputes);
  for (const ordered_json &arena : memory["arenas"]) {
    addTimeline(page, arena);
    addTensors(page, arena);
  }
  for (const ordered_json &fitted : memory["fitted"])
    addCurve(page, memory, fitted);
  addRecomputed(page, memory["recomputed"]);
}

static void addDecisions(Page &page, const CompileReport &report) {
  json decisions = json::parse(report.decisions, nullptr, false);
  if (!decisions.is_array())
    return;
  page.addTable("Decisions", {"pass", "node", "decision", "reason"});
  for (const json &decision : decisions)
    page.addRow({decision.value("pass", ""), decision.value("node", ""),
                 decision.value("decision", ""), decision.value("reason", "")});
  page.endTable();
}

std::string tools::makeReportPage(const CompileOptions &options,
                                  const CompileReport &report) {
  Page page;
  page.open(options.model);
  addFigures(page, report);
  addMemory(page, report);
  addPrecision(page, report);
  page.addTable("Phases", {"phase", "seconds"});
  for (const auto &[phase, seconds] : report.phases)
    page.addRow({phase, print(seconds)});
  page.endTable();
  addDecisions(page, report);
  return page.finish();
}

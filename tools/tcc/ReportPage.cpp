#include "tools/tcc/ReportPage.h"

#include <nlohmann/json.hpp>

#include <cstdio>

using namespace tcc;
using nlohmann::json;

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
  addPrecision(page, report);
  page.addTable("Phases", {"phase", "seconds"});
  for (const auto &[phase, seconds] : report.phases)
    page.addRow({phase, print(seconds)});
  page.endTable();
  addDecisions(page, report);
  return page.finish();
}

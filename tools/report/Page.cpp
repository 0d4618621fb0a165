#include "tools/report/Page.h"

#include "tools/report/Assets.h"

#include <cmath>
#include <string_view>

using namespace tcc::tools;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Four digits are more than a picture shows; pages are to be small.
static ordered_json listRounded(const std::vector<double> &values) {
  ordered_json list = ordered_json::array();
  for (double value : values) {
    if (!std::isfinite(value)) {
      list.push_back(nullptr);
      continue;
    }
    if (value == std::floor(value) && std::abs(value) < 1e15) {
      list.push_back(static_cast<int64_t>(value));
      continue;
    }
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.6g", value);
    list.push_back(std::strtod(digits, nullptr));
  }
  return list;
}

void Table::add(ordered_json::array_t row, bool isMarked) {
  if (isMarked)
    marked.push_back(rows.size());
  rows.push_back(std::move(row));
}

void Section::addNote(const std::string &text) {
  document["blocks"].push_back({{"type", "note"}, {"text", text}});
}

void Section::add(const Table &table) {
  ordered_json columns = ordered_json::array();
  for (const Column &column : table.columns)
    columns.push_back({{"name", column.name},
                       {"unit", column.unit},
                       {"meter", column.hasMeter}});
  document["blocks"].push_back({{"type", "table"},
                                {"title", table.title},
                                {"about", table.about},
                                {"columns", columns},
                                {"rows", table.rows},
                                {"marked", table.marked},
                                {"nothing", table.nothing}});
}

static ordered_json describe(const ChartAxis &axis) {
  return {{"name", axis.name},
          {"unit", axis.unit},
          {"log", axis.isLogarithmic},
          {"zero", axis.hasZero}};
}

static ordered_json describe(const Series &series) {
  ordered_json row = {{"name", series.name},
                      {"x", listRounded(series.x)},
                      {"y", listRounded(series.y)}};
  if (!series.low.empty()) {
    row["low"] = listRounded(series.low);
    row["high"] = listRounded(series.high);
  }
  if (!series.labels.empty())
    row["labels"] = series.labels;
  if (series.hasDots)
    row["dots"] = true;
  return row;
}

void Section::add(const Chart &chart) {
  static constexpr const char *kKinds[] = {"lines", "stack", "dots"};
  ordered_json block = {{"type", "chart"},
                        {"kind", kKinds[size_t(chart.kind)]},
                        {"title", chart.title},
                        {"about", chart.about},
                        {"x", describe(chart.x)},
                        {"y", describe(chart.y)},
                        {"step", chart.hasSteps},
                        {"series", ordered_json::array()},
                        {"marks", ordered_json::array()},
                        {"limits", ordered_json::array()}};
  for (const Series &series : chart.series)
    block["series"].push_back(describe(series));
  for (const auto &[x, name] : chart.marks)
    block["marks"].push_back({{"x", x}, {"name", name}});
  for (const auto &[y, name] : chart.limits)
    block["limits"].push_back({{"y", y}, {"name", name}});
  if (chart.roof)
    block["roof"] = {{"flops", chart.roof->first},
                     {"bytes", chart.roof->second}};
  document["blocks"].push_back(std::move(block));
}

void Section::add(const Parts &parts) {
  ordered_json block = {{"type", "parts"},
                        {"title", parts.title},
                        {"about", parts.about},
                        {"unit", parts.unit},
                        {"parts", ordered_json::array()}};
  for (const auto &[name, value] : parts.values)
    block["parts"].push_back({{"name", name}, {"value", value}});
  document["blocks"].push_back(std::move(block));
}

//===----------------------------------------------------------------------===//
// The page
//===----------------------------------------------------------------------===//

void Page::set(const Verdict &verdict) {
  static constexpr const char *kStates[] = {"plain", "good", "warn", "bad"};
  ordered_json &head = document["verdict"];
  head = {{"state", kStates[size_t(verdict.state)]},
          {"text", verdict.text},
          {"lines", ordered_json::array()}};
  for (const auto &[label, text] : verdict.lines)
    head["lines"].push_back({{"label", label}, {"text", text}});
}

void Page::set(const std::vector<Fact> &facts) {
  ordered_json &list = document["facts"] = ordered_json::array();
  for (const Fact &fact : facts)
    list.push_back({{"name", fact.name},
                    {"value", fact.value},
                    {"unit", fact.unit},
                    {"note", fact.note}});
}

void Page::add(Section section) {
  document["sections"].push_back(std::move(section.document));
}

/// '<' is within strings alone, which may have it as an escape: neither
/// "</script" nor "<!--" is left.
static std::string escape(const std::string &json) {
  std::string text;
  text.reserve(json.size());
  for (char letter : json)
    if (letter == '<')
      text += "\\u003c";
    else
      text += letter;
  return text;
}

std::string Page::print() const {
  // Names are the model's: bytes that are no UTF-8 become U+FFFD.
  constexpr auto kReplace = ordered_json::error_handler_t::replace;
  std::string data = escape(document.dump(-1, ' ', false, kReplace));
  std::string text;
  std::string_view rest = kPageFrame;
  for (auto [name, part] :
       {std::pair<std::string_view, std::string_view>("@STYLE@", kPageStyle),
        {"@DATA@", data},
        {"@SCRIPT@", kPageScript}}) {
    size_t at = rest.find(name);
    text += rest.substr(0, at);
    text += part;
    rest.remove_prefix(at + name.size());
  }
  text += rest;
  return text;
}

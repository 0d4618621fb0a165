#include "tools/tcc-run/doctor/Report.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;
using nlohmann::ordered_json;

ordered_json doctor::describe(const std::vector<Examination> &examined) {
  ordered_json rows = ordered_json::array();
  for (const auto &[check, finding] : examined)
    rows.push_back({{"name", check.name},
                    {"state", nameOf(finding.state)},
                    {"found", finding.found},
                    {"recommended", finding.recommended},
                    {"command", finding.command},
                    {"why", check.why}});
  return rows;
}

/// What a terminal would obey, such as a name of a device has it, becomes '?'.
static std::string sanitize(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '?';
  return text;
}

static std::string pad(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

/// How wide the columns of states and of names are.
static constexpr size_t kStateWidth = 9, kNameWidth = 18;

static std::string printLine(State state, const std::string &name,
                             const std::string &text) {
  return concat(pad(nameOf(state), kStateWidth), pad(name, kNameWidth), text,
                "\n");
}

static std::string printAdvised(const Examination &examination) {
  const auto &[check, finding] = examination;
  const std::string indent(kStateWidth + kNameWidth, ' ');
  std::string text =
      printLine(finding.state, check.name, sanitize(finding.found));
  text += concat(indent, "why: ", check.why, "\n");
  text += concat(indent, "do:  ", sanitize(finding.recommended), "\n");
  if (!finding.command.empty())
    text += concat(indent, "$ ", sanitize(finding.command), "\n");
  return text;
}

/// The findings of one state without advice: checks that found the same, as
/// that there is no GPU, are a line.
static std::string printBrief(const std::vector<Examination> &examined,
                              State state) {
  std::string text;
  std::vector<std::string> printed;
  for (const auto &[check, finding] : examined) {
    if (finding.state != state || std::ranges::count(printed, finding.found))
      continue;
    std::string others;
    for (const auto &[otherCheck, otherFinding] : examined)
      if (otherFinding.state == state && otherFinding.found == finding.found &&
          otherCheck.name != check.name)
        others += concat(others.empty() ? " (also " : ", ", otherCheck.name);
    if (!others.empty())
      others += ")";
    text += printLine(state, check.name, sanitize(finding.found) + others);
    printed.push_back(finding.found);
  }
  return text;
}

/// "42 checks: 1 problem, 2 warnings, 3 unknown, 36 ok".
static std::string printCounts(const std::vector<Examination> &examined) {
  auto count = [&](State state) {
    return std::ranges::count(examined, state, [](const Examination &row) {
      return row.finding.state;
    });
  };
  auto problems = count(State::Problem), warnings = count(State::Warning);
  return concat(examined.size(), " checks: ", problems,
                problems == 1 ? " problem, " : " problems, ", warnings,
                warnings == 1 ? " warning, " : " warnings, ",
                count(State::Unknown), " unknown, ", count(State::Ok), " ok\n");
}

std::string doctor::print(const std::vector<Examination> &examined) {
  std::string text;
  for (State state : {State::Problem, State::Warning})
    for (const Examination &row : examined)
      if (row.finding.state == state)
        text += printAdvised(row);
  for (State state : {State::Unknown, State::Ok})
    text += printBrief(examined, state);
  return text + printCounts(examined);
}

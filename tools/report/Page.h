//===- Page.h - What a report says, and the page of it ----------*- C++ -*-===//
//
// A report is a document of JSON: a summary, and sections of blocks, each of
// which says what it has, not how it looks. One script draws all of them. A
// unit says how numbers are printed: "bytes", "seconds", "share" (of 1),
// "count", "flops", "flops/s", "bytes/s" or "number"; "text" is no number.
// What is not finite becomes null, which is shown as unknown.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_REPORT_PAGE_H
#define TCC_TOOLS_REPORT_PAGE_H

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tcc::tools {

/// A figure of the summary.
struct Fact {
  std::string name;
  nlohmann::ordered_json value; ///< a number or a text
  const char *unit = "text";
  std::string note = {};
};

struct Column {
  std::string name;
  const char *unit = "text";
  bool hasMeter = false; ///< shares are also drawn
};

/// A table, which its reader sorts and filters. Cells are numbers, texts or
/// null.
struct Table {
  Table(std::string title, std::vector<Column> columns,
        std::string nothing = "None.")
      : title(std::move(title)), columns(std::move(columns)),
        nothing(std::move(nothing)) {}

  void add(nlohmann::ordered_json::array_t row, bool isMarked = false);

  std::string title;
  std::vector<Column> columns;
  std::string nothing; ///< what is said where there is no row
  std::string about = {};
  std::vector<nlohmann::ordered_json::array_t> rows = {};
  std::vector<size_t> marked = {};
};

/// Values with a name: of a line its points, of an area its heights at the
/// same places as those of the other areas, of dots theirs with labels.
struct Series {
  std::string name;
  std::vector<double> x, y;
  std::vector<double> low = {}, high = {}; ///< of a band around a line
  std::vector<std::string> labels = {};    ///< of dots
  bool hasDots = false;                    ///< dots in place of a line
};

struct ChartAxis {
  std::string name;
  const char *unit = "number";
  bool isLogarithmic = false;
  bool hasZero = false;
};

struct Chart {
  enum class Kind { lines, stack, dots };

  Kind kind;
  std::string title;
  ChartAxis x, y;
  std::string about = {};
  std::vector<Series> series = {};
  bool hasSteps = false; ///< values hold up to the next place
  std::vector<std::pair<double, std::string>> marks = {};  ///< lines upwards
  std::vector<std::pair<double, std::string>> limits = {}; ///< lines across
  /// What a machine can do at most: flops and bytes of a second.
  std::optional<std::pair<double, double>> roof = {};
};

/// Parts of a whole.
struct Parts {
  std::string title;
  const char *unit;
  std::string about = {};
  std::vector<std::pair<std::string, double>> values = {};
};

/// A section: its title, what its reader learns from it, and its blocks.
class Section {
public:
  Section(const std::string &title, const std::string &learn)
      : document({{"title", title},
                  {"learn", learn},
                  {"blocks", nlohmann::ordered_json::array()}}) {}

  void addNote(const std::string &text);
  void add(const Table &table);
  void add(const Chart &chart);
  void add(const Parts &parts);

private:
  friend class Page;
  nlohmann::ordered_json document;
};

/// What the summary says first.
struct Verdict {
  enum class State { plain, good, warn, bad };

  State state = State::plain;
  std::string text;
  /// A label, which may be empty, and a sentence.
  std::vector<std::pair<std::string, std::string>> lines = {};
};

class Page {
public:
  Page(const std::string &title, const std::string &subtitle)
      : document({{"title", title}, {"subtitle", subtitle}}) {}

  void set(const Verdict &verdict);
  void set(const std::vector<Fact> &facts);
  void add(Section section);
  /// HTML that needs nothing else. No text of the document is markup in it.
  std::string print() const;

private:
  nlohmann::ordered_json document;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_REPORT_PAGE_H

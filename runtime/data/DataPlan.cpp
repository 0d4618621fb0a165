#include "runtime/data/DataPlan.h"

#include "runtime/data/SampleFile.h"
#include "runtime/data/images/Transforms.h"
#include "runtime/package/Names.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

/// Reads one text. What is wrong with it is said with its place.
class PlanReader {
public:
  /// `file` is empty for a setting; paths are relative to `folder`.
  PlanReader(DataPlan &plan, std::string file, fs::path folder)
      : plan(plan), file(std::move(file)), folder(std::move(folder)) {}

  /// A text whose keys are those of [data], or has [data] itself.
  Status read(std::string_view text, bool hasTable);

private:
  struct Key {
    std::string_view name;
    Status (PlanReader::*read)(const std::string &key, const toml::node &node);
  };
  static const Key kKeys[];

  template <typename... Parts>
  Status fail(const toml::source_region &place, const Parts &...parts) const;
  Status expect(const std::string &key, const toml::node &node,
                const char *expected) const {
    return fail(node.source(), key, " is ", describe(node), ", expected ",
                expected);
  }
  static std::string describe(const toml::node &node);

  Status readTable(const toml::table &table);
  Status readEntry(std::string_view name, const toml::node &node);
  Status readSource(const std::string &key, const toml::node &node);
  Status readWeights(const std::string &key, const toml::node &node);
  Status readMap(const std::string &key, const toml::node &node);
  Status readWorkers(const std::string &key, const toml::node &node);
  Status readDepth(const std::string &key, const toml::node &node);
  Status readOnBad(const std::string &key, const toml::node &node);
  Status readSplit(const std::string &key, const toml::node &node);

  Status readCount(const std::string &key, const toml::node &node, int least,
                   std::optional<int> &to);
  Status readTransforms(const std::string &key, const toml::node &node,
                        DataPlan::Transforms &to);

  DataPlan &plan;
  const std::string file;
  const fs::path folder;
};

const PlanReader::Key PlanReader::kKeys[] = {
    {"source", &PlanReader::readSource}, {"weights", &PlanReader::readWeights},
    {"map", &PlanReader::readMap},       {"workers", &PlanReader::readWorkers},
    {"depth", &PlanReader::readDepth},   {"on_bad", &PlanReader::readOnBad},
    {"split", &PlanReader::readSplit},
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Names and text may be long, or have anything in them.
static std::string printText(std::string_view text) {
  constexpr size_t kLongest = 60;
  std::string printed(text.substr(0, kLongest));
  for (char &c : printed)
    if (static_cast<unsigned char>(c) < ' ' || c == 127)
      c = '?';
  return text.size() > kLongest ? printed + "..." : printed;
}

std::string PlanReader::describe(const toml::node &node) {
  if (auto *text = node.as_string())
    return concat("'", printText(text->get()), "'");
  if (auto *integer = node.as_integer())
    return std::to_string(integer->get());
  if (auto *flag = node.as_boolean())
    return flag->get() ? "true" : "false";
  if (node.is_array())
    return "a list";
  if (node.is_table())
    return "a table";
  return node.is_floating_point() ? "a number" : "a date or time";
}

template <typename... Parts>
Status PlanReader::fail(const toml::source_region &place,
                        const Parts &...parts) const {
  if (file.empty())
    return makeError(Code::Usage, parts...);
  return makeError(Code::BadData, "'", file, "' in line ", place.begin.line,
                   ": ", parts...);
}

static std::optional<double> readNumber(const toml::node &node) {
  if (const auto *integer = node.as_integer())
    return double(integer->get());
  if (const auto *number = node.as_floating_point())
    return number->get();
  return std::nullopt;
}

/// A list of texts, or one; nothing where it is neither.
static std::optional<std::vector<std::string>>
readTexts(const toml::node &node) {
  if (const auto *text = node.as_string())
    return std::vector<std::string>{text->get()};
  const toml::array *list = node.as_array();
  if (!list)
    return std::nullopt;
  std::vector<std::string> texts;
  for (const toml::node &each : *list) {
    const auto *text = each.as_string();
    if (!text)
      return std::nullopt;
    texts.push_back(text->get());
  }
  return texts;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

Status PlanReader::readSource(const std::string &key, const toml::node &node) {
  auto sources = readTexts(node);
  if (!sources || sources->empty())
    return expect(key, node, "a source or a list of them");
  plan.sources.clear();
  for (const std::string &source : *sources)
    plan.sources.push_back(resolveData(source, folder));
  plan.weights.clear();
  return Status();
}

Status PlanReader::readWeights(const std::string &key, const toml::node &node) {
  constexpr const char *kExpected = "a list of numbers above 0";
  const toml::array *list = node.as_array();
  if (!list)
    return expect(key, node, kExpected);
  plan.weights.clear();
  for (const toml::node &each : *list) {
    auto weight = readNumber(each);
    if (!weight || !(*weight > 0) || !std::isfinite(*weight))
      return expect(key, each, kExpected);
    plan.weights.push_back(*weight);
  }
  return Status();
}

Status PlanReader::readMap(const std::string &key, const toml::node &node) {
  const toml::table *table = node.as_table();
  if (!table)
    return expect(key, node, "a table {INPUT = FIELD, ...}");
  plan.fields.clear();
  for (auto &&[input, field] : *table) {
    const auto *name = field.as_string();
    if (!name || name->get().empty())
      return expect(key + "." + printText(input.str()), field,
                    "the name of a field");
    plan.fields[std::string(input.str())] = name->get();
  }
  return Status();
}

Status PlanReader::readCount(const std::string &key, const toml::node &node,
                             int least, std::optional<int> &to) {
  constexpr int kMost = 1024;
  to.reset();
  if (node.value<std::string_view>() == "auto")
    return Status();
  auto count = node.value_exact<int64_t>();
  if (!count || *count < least || *count > kMost)
    return expect(key, node,
                  least ? "2 to 1024, or 'auto'" : "0 to 1024, or 'auto'");
  to = int(*count);
  return Status();
}

Status PlanReader::readWorkers(const std::string &key, const toml::node &node) {
  return readCount(key, node, 0, plan.workers);
}

Status PlanReader::readDepth(const std::string &key, const toml::node &node) {
  return readCount(key, node, 2, plan.depth);
}

Status PlanReader::readOnBad(const std::string &key, const toml::node &node) {
  auto word = node.value<std::string_view>();
  if (word != "skip" && word != "stop")
    return expect(key, node, "'skip' or 'stop'");
  plan.skipsBad = word == "skip";
  return Status();
}

Status PlanReader::readSplit(const std::string &key, const toml::node &node) {
  auto share = readNumber(node);
  if (!share || !(*share >= 0 && *share < 1))
    return expect(key, node, "a share of the samples, 0 to less than 1");
  plan.split = *share;
  return Status();
}

Status PlanReader::readTransforms(const std::string &key,
                                  const toml::node &node,
                                  DataPlan::Transforms &to) {
  const toml::table *table = node.as_table();
  if (!table)
    return expect(key, node, "a table: INPUT = [TRANSFORM, ...]");
  for (auto &&[input, list] : *table) {
    std::string own = key + "." + printText(input.str());
    auto lines = readTexts(list);
    if (!lines)
      return expect(own, list, "a list of transforms");
    if (auto read = images::Transforms::read(*lines); !read.ok())
      return fail(list.source(), own, ": ", read.takeStatus().message());
    to[std::string(input.str())] = std::move(*lines);
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

const char *runtime::nameOf(DataPhase phase) {
  return phase == DataPhase::eval ? format::nameOf(format::EntryKind::eval)
                                  : "train";
}

Status PlanReader::readEntry(std::string_view name, const toml::node &node) {
  std::string own = concat("data.", printText(name)), known;
  for (const Key &key : kKeys) {
    if (key.name == name)
      return (this->*key.read)(own, node);
    known += concat(key.name, ", ");
  }
  for (DataPhase phase : {DataPhase::train, DataPhase::eval})
    if (name == nameOf(phase))
      return readTransforms(own, node,
                            phase == DataPhase::eval ? plan.eval : plan.train);
  return fail(node.source(), "unknown key '", own, "', expected data.", known,
              nameOf(DataPhase::train), " or ", nameOf(DataPhase::eval));
}

Status PlanReader::readTable(const toml::table &table) {
  for (auto &&[name, node] : table)
    if (Status status = readEntry(name.str(), node); !status.ok())
      return status;
  return Status();
}

/// Each dot may be a table within a table, and the parser recurses into them,
/// as into brackets.
static bool isDeep(std::string_view text) {
  constexpr ptrdiff_t kMost = 2000;
  return std::ranges::count_if(text, [](char c) {
           return c == '.' || c == '[' || c == '{';
         }) > kMost;
}

Status PlanReader::read(std::string_view text, bool hasTable) {
  if (isDeep(text))
    return fail({}, "there are more than 2000 dots and brackets");
  toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return fail(parsed.error().source(), parsed.error().description());
  const toml::table &root = parsed.table();
  if (!hasTable)
    return readTable(root);
  const toml::table *data = root["data"].as_table();
  if (!data)
    return fail(root.source(), "there is no table [data]");
  for (auto &&[name, node] : root)
    if (name.str() != "data")
      return fail(node.source(), "unknown key '", printText(name.str()),
                  "', expected [data] alone");
  return readTable(*data);
}

static Result<std::string> readText(const std::string &path) {
  constexpr uint64_t kMost = 64 << 10;
  auto file = SampleFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  if ((*file)->size() > kMost)
    return makeError(Code::BadData, "'", path, "' has ", (*file)->size(),
                     " bytes, expected at most ", kMost);
  std::string text((*file)->size(), '\0');
  if (Status status = (*file)->read(0, std::as_writable_bytes(std::span(text)));
      !status.ok())
    return status;
  return text;
}

Status DataPlan::use(const std::string &spec) {
  if (!isPlanFile(spec)) {
    sources = {spec};
    weights.clear();
    return Status();
  }
  auto text = readText(spec);
  if (!text.ok())
    return text.takeStatus();
  DataPlan read;
  PlanReader reader(read, spec, fs::path(spec).parent_path());
  if (Status status = reader.read(*text, /*hasTable=*/true); !status.ok())
    return status;
  if (read.sources.empty())
    return makeError(Code::BadData, "'", spec, "': there is no data.source");
  *this = std::move(read);
  return Status();
}

Status DataPlan::set(std::string_view key, std::string_view value) {
  PlanReader reader(*this, "", "");
  std::string line = concat(key, " = ", value);
  bool isValue = !isDeep(line) && bool(toml::parse(line));
  return reader.read(isValue ? line : concat(key, " = '", value, "'"),
                     /*hasTable=*/false);
}

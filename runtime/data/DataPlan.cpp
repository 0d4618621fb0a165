#include "runtime/base/ByteSize.h"
#include "runtime/data/ReadPlan.h"
#include "runtime/data/SampleFile.h"
#include "runtime/data/images/ImageCache.h"
#include "runtime/data/images/Transforms.h"
#include "runtime/data/records/Numbers.h"
#include "runtime/package/Names.h"

#include <algorithm>
#include <cmath>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

namespace {

/// Reads one table. What is wrong with it is an error without its place, which
/// is a line.
class PlanReader {
public:
  /// Paths are relative to `folder`.
  PlanReader(DataPlan &plan, fs::path folder)
      : plan(plan), folder(std::move(folder)) {}

  Status readTable(const toml::table &table);
  /// The line of what was wrong.
  int line() const { return badLine; }

private:
  struct Key {
    std::string_view name;
    Status (PlanReader::*read)(const std::string &key, const toml::node &node);
  };
  static const Key kKeys[];

  template <typename... Parts>
  Status fail(const toml::node &node, const Parts &...parts) {
    badLine = int(node.source().begin.line);
    return makeError(Code::BadData, parts...);
  }
  Status expect(const std::string &key, const toml::node &node,
                const char *expected) {
    return fail(node, key, " is ", printValue(node), ", expected ", expected);
  }

  Status readEntry(std::string_view name, const toml::node &node);
  Status readSource(const std::string &key, const toml::node &node);
  Status readWeights(const std::string &key, const toml::node &node);
  Status readBalance(const std::string &key, const toml::node &node);
  Status readMap(const std::string &key, const toml::node &node);
  Status readClasses(const std::string &key, const toml::node &node);
  Status readPad(const std::string &key, const toml::node &node);
  Status readMix(const std::string &key, const toml::node &node);
  Status readWorkers(const std::string &key, const toml::node &node);
  Status readDepth(const std::string &key, const toml::node &node);
  Status readMemory(const std::string &key, const toml::node &node);
  Status readCache(const std::string &key, const toml::node &node);
  Status readOnBad(const std::string &key, const toml::node &node);
  Status readSplit(const std::string &key, const toml::node &node);

  Status readCount(const std::string &key, const toml::node &node, int least,
                   std::optional<int> &to);
  Status readLists(const std::string &key, const toml::node &node,
                   const char *expected, DataPlan::Lists &to);
  Status readTransforms(const std::string &key, const toml::node &node,
                        DataPlan::Lists &to);

  DataPlan &plan;
  const fs::path folder;
  int badLine = 0;
};

const PlanReader::Key PlanReader::kKeys[] = {
    {"source", &PlanReader::readSource},
    {"weights", &PlanReader::readWeights},
    {"balance", &PlanReader::readBalance},
    {"map", &PlanReader::readMap},
    {"classes", &PlanReader::readClasses},
    {"pad", &PlanReader::readPad},
    {"mix", &PlanReader::readMix},
    {"workers", &PlanReader::readWorkers},
    {"depth", &PlanReader::readDepth},
    {"memory", &PlanReader::readMemory},
    {"cache", &PlanReader::readCache},
    {"on_bad", &PlanReader::readOnBad},
    {"split", &PlanReader::readSplit},
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

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

Status PlanReader::readBalance(const std::string &key, const toml::node &node) {
  const auto *name = node.as_string();
  if (!name)
    return expect(key, node, "the name of an input");
  plan.balance = name->get();
  return Status();
}

/// A list of texts, or one, for each of some inputs; those of others stay,
/// unless there are none.
Status PlanReader::readLists(const std::string &key, const toml::node &node,
                             const char *expected, DataPlan::Lists &to) {
  const toml::table *table = node.as_table();
  if (!table)
    return expect(key, node, expected);
  if (table->empty())
    to.clear();
  for (auto &&[input, list] : *table) {
    auto texts = readTexts(list);
    if (!texts || texts->empty() || std::ranges::count(*texts, "") > 0)
      return expect(key + "." + printText(input.str()), list, expected);
    to[std::string(input.str())] = std::move(*texts);
  }
  return Status();
}

Status PlanReader::readMap(const std::string &key, const toml::node &node) {
  return readLists(key, node, "a table {INPUT = FIELD or [FIELD, ...], ...}",
                   plan.fields);
}

Status PlanReader::readClasses(const std::string &key, const toml::node &node) {
  return readLists(key, node, "a table {INPUT = [NAME, ...], ...}",
                   plan.classes);
}

Status PlanReader::readPad(const std::string &key, const toml::node &node) {
  constexpr const char *kExpected = "a table {INPUT = NUMBER, ...}";
  const toml::table *table = node.as_table();
  if (!table)
    return expect(key, node, kExpected);
  if (table->empty())
    plan.pads.clear();
  for (auto &&[input, each] : *table) {
    auto number = readNumber(each);
    if (!number || !std::isfinite(*number))
      return expect(key + "." + printText(input.str()), each, kExpected);
    plan.pads[std::string(input.str())] = *number;
  }
  return Status();
}

Status PlanReader::readMix(const std::string &key, const toml::node &node) {
  auto texts = readTexts(node);
  if (!texts)
    return expect(key, node,
                  "'mixup A', 'cutmix A', a list of them, or 'none'");
  plan.mixing.clear();
  for (const std::string &text : *texts) {
    if (text == "none" && texts->size() == 1)
      return Status();
    auto line = MixingLine::read(text);
    if (!line.ok())
      return fail(node, key, ": ", line.takeStatus().message());
    plan.mixing.push_back(*line);
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

Status PlanReader::readMemory(const std::string &key, const toml::node &node) {
  auto text = node.value<std::string_view>();
  auto bytes = text ? parseByteSize(*text) : std::nullopt;
  if (!bytes || *bytes < 1)
    return expect(key, node, "a number of bytes, as '2GiB'");
  plan.memory = *bytes;
  return Status();
}

Status PlanReader::readCache(const std::string &key, const toml::node &node) {
  constexpr std::string_view kRam = "ram:", kDisk = "disk:";
  constexpr const char *kExpected =
      "'ram:SIZE', 'disk:FOLDER:SIZE', a list of both, or 'none'";
  auto texts = readTexts(node);
  if (!texts || texts->empty())
    return expect(key, node, kExpected);
  plan.images = nullptr;
  plan.blocks = nullptr;
  for (std::string_view text : *texts) {
    size_t colon = text.rfind(':');
    auto bytes = colon == text.npos ? std::nullopt
                                    : parseByteSize(text.substr(colon + 1));
    bool isRam = text.starts_with(kRam) && colon == kRam.size() - 1;
    bool isDisk = text.starts_with(kDisk) && colon > kDisk.size();
    if (text == "none" && texts->size() == 1)
      return Status();
    if (!bytes || *bytes < 1 || !(isRam || isDisk))
      return expect(key, node, kExpected);
    if (isRam) {
      plan.images = std::make_shared<images::ImageCache>(uint64_t(*bytes));
      continue;
    }
    fs::path own = text.substr(kDisk.size(), colon - kDisk.size());
    plan.blocks = std::make_shared<SharedBlockCache>((folder / own).string(),
                                                     uint64_t(*bytes));
  }
  return Status();
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

/// Whether the source has tokens, numbers or images nobody knows yet.
static Status checkTransforms(std::span<const std::string> lines) {
  if (lines.size() == 1 && lines[0].starts_with("window "))
    return Status();
  if (!lines.empty() && NumberTransforms::isOne(lines[0])) {
    auto read = NumberTransforms::read(lines);
    return read.ok() ? Status() : read.takeStatus();
  }
  auto read = images::Transforms::read(lines);
  return read.ok() ? Status() : read.takeStatus();
}

Status PlanReader::readTransforms(const std::string &key,
                                  const toml::node &node, DataPlan::Lists &to) {
  const toml::table *table = node.as_table();
  if (!table)
    return expect(key, node, "a table: INPUT = [TRANSFORM, ...]");
  if (table->empty())
    to.clear();
  for (auto &&[input, list] : *table) {
    std::string own = key + "." + printText(input.str());
    auto lines = readTexts(list);
    if (!lines)
      return expect(own, list, "a list of transforms");
    if (Status status = checkTransforms(*lines); !status.ok())
      return fail(list, own, ": ", status.message());
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
  return fail(node, "unknown key '", own, "', expected data.", known,
              nameOf(DataPhase::train), " or ", nameOf(DataPhase::eval));
}

Status PlanReader::readTable(const toml::table &table) {
  for (auto &&[name, node] : table)
    if (Status status = readEntry(name.str(), node); !status.ok())
      return status;
  return Status();
}

std::optional<PlanProblem> runtime::readPlan(const toml::table &table,
                                             const fs::path &folder,
                                             DataPlan &plan) {
  PlanReader reader(plan, folder);
  Status status = reader.readTable(table);
  if (status.ok())
    return std::nullopt;
  return PlanProblem{reader.line(), std::string(status.message())};
}

/// Each dot may be a table within a table, and the parser recurses into them,
/// as into brackets.
static bool isDeep(std::string_view text) {
  constexpr ptrdiff_t kMost = 2000;
  return std::ranges::count_if(text, [](char c) {
           return c == '.' || c == '[' || c == '{';
         }) > kMost;
}

/// The table of a text, or what is wrong with it.
using Parsed = std::variant<toml::table, PlanProblem>;

static Parsed parse(std::string_view text) {
  if (isDeep(text))
    return PlanProblem{1, "there are more than 2000 dots and brackets"};
  toml::parse_result parsed = toml::parse(text);
  if (parsed)
    return std::move(parsed).table();
  return PlanProblem{int(parsed.error().source().begin.line),
                     printText(parsed.error().description(), 400)};
}

/// Reads a file that has [data] alone.
static std::optional<PlanProblem>
readFile(std::string_view text, const fs::path &folder, DataPlan &plan) {
  Parsed parsed = parse(text);
  if (auto *problem = std::get_if<PlanProblem>(&parsed))
    return std::move(*problem);
  const toml::table &root = std::get<toml::table>(parsed);
  const toml::table *data = root["data"].as_table();
  if (!data)
    return PlanProblem{1, "there is no table [data]"};
  for (auto &&[name, node] : root)
    if (name.str() != "data")
      return PlanProblem{int(node.source().begin.line),
                         concat("unknown key '", printText(name.str()),
                                "', expected [data] alone")};
  return readPlan(*data, folder, plan);
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
  if (auto problem = readFile(*text, fs::path(spec).parent_path(), read))
    return makeError(Code::BadData, "'", spec, "' in line ", problem->line,
                     ": ", problem->message);
  if (read.sources.empty())
    return makeError(Code::BadData, "'", spec, "': there is no data.source");
  *this = std::move(read);
  return Status();
}

static std::optional<PlanProblem> readKeys(Parsed parsed, DataPlan &plan) {
  if (auto *problem = std::get_if<PlanProblem>(&parsed))
    return std::move(*problem);
  return readPlan(std::get<toml::table>(parsed), /*folder=*/"", plan);
}

Status DataPlan::set(std::string_view key, std::string_view value) {
  Parsed parsed = parse(concat(key, " = ", value));
  if (std::holds_alternative<PlanProblem>(parsed))
    parsed = parse(concat(key, " = '", value, "'"));
  auto problem = readKeys(std::move(parsed), *this);
  return problem ? makeError(Code::Usage, problem->message) : Status();
}

Status DataPlan::read(std::string_view keys) {
  DataPlan read;
  if (auto problem = readKeys(parse(keys), read))
    return makeError(Code::BadData, problem->message);
  *this = std::move(read);
  return Status();
}

#include "compiler/train/CheckRecipe.h"
#include "compiler/train/Keys.h"
#include "runtime/base/ByteSize.h"
#include "runtime/data/ReadPlan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <sstream>

using namespace tcc;
using namespace tcc::train;
using llvm::StringRef;
using runtime::printValue;
using runtime::readNumber;

/// Each dot may be a table within a table, and the parser recurses into them.
static constexpr size_t kMaxBytes = 64 << 10, kMaxDots = 2000;

static std::string printName(StringRef name) {
  return runtime::printText(std::string_view(name));
}

static bool isListed(const char *list, const toml::node &node) {
  auto text = node.value<std::string_view>();
  std::string value = text ? std::string(*text) : printValue(node);
  return llvm::is_contained(splitWords(list), StringRef(value));
}

namespace {

class RecipeReader {
public:
  explicit RecipeReader(Reading &reading)
      : reading(reading), recipe(reading.recipe) {}

  void read(const toml::table &root) {
    if (auto row = findRow(root, "loss"))
      recipe.loss = LossRecipe::getDefaults(LossKind(*row));
    if (auto row = findRow(root, "optimizer"))
      recipe.optimizer = OptimizerRecipe::getDefaults(OptimizerKind(*row));
    readTable(root, "");
  }

private:
  /// The row of the kind that the recipe names, whose defaults come first.
  static std::optional<size_t> findRow(const toml::table &root,
                                       const char *table) {
    auto word = root[table]["kind"].value<std::string>();
    for (auto [row, kind] : llvm::enumerate(getKinds(table)))
      if (word == kind->word)
        return row;
    return std::nullopt;
  }
  void readTable(const toml::table &table, StringRef path);
  void readEntry(StringRef path, StringRef name, const toml::node &node);
  void readGroups(const toml::node &node);
  void readPatterns(const PatternTable &kind, const toml::node &node);
  void readOverride(const PatternTable &kind, StringRef pattern,
                    const toml::node &node);
  void readData(const toml::node &node);
  void readInputs(const toml::node &node);
  void readInput(StringRef name, const toml::table &table);
  bool readChannels(const toml::node &node, double least, Numbers &to);
  void readKey(const Key &key, const toml::node &node);
  void refuseUnknown(StringRef path, StringRef name, int line);

  bool assign(const Key &, const toml::node &, std::monostate) { return true; }
  bool assign(const Key &key, const toml::node &node, double *to);
  bool assign(const Key &key, const toml::node &node, int64_t *to);
  bool assign(const Key &key, const toml::node &node, bool *to);
  bool assign(const Key &key, const toml::node &node, std::string *to);
  bool assign(const Key &key, const toml::node &node, Betas *to);
  bool assign(const Key &key, const toml::node &node, Patterns *to);
  bool assign(const Key &key, const toml::node &node, WordField to);
  bool assign(const Key &key, const toml::node &node, NumberOrWord *to);
  bool assign(const Key &key, const toml::node &node, ByteSize *to);
  bool assign(const Key &key, const toml::node &node, WordList *to);
  template <typename T>
  bool assign(const Key &key, const toml::node &node, std::optional<T> *to) {
    T value{}; // what a word stands for
    if (!(node.is_string() && isListed(key.words, node)) &&
        !assign(key, node, &value))
      return false;
    *to = value;
    return true;
  }

  Reading &reading;
  Recipe &recipe;
};

} // namespace

static int getLine(const toml::node &node) { return node.source().begin.line; }

static std::string join(StringRef path, StringRef name) {
  return path.empty() ? name.str() : (path + "." + name).str();
}

// --- Tables ------------------------------------------------------------------

static bool isTableName(StringRef path) {
  return llvm::any_of(getKeys(),
                      [&](const Key &key) { return key.getTable() == path; });
}

void RecipeReader::readTable(const toml::table &table, StringRef path) {
  for (auto &&[name, node] : table)
    readEntry(path, std::string_view(name.str()), node);
}

void RecipeReader::readEntry(StringRef path, StringRef name,
                             const toml::node &node) {
  std::string full = join(path, name);
  if (name.contains('.'))
    return refuseUnknown(path, name, getLine(node));
  if (const Key *key = findKey(full))
    return readKey(*key, node);
  if (full == "optimizer.group")
    return readGroups(node);
  if (const PatternTable *patterns = findPatternTable(full))
    return readPatterns(*patterns, node);
  if (full == "data")
    return readData(node);
  if (full == "input")
    return readInputs(node);
  if (!isTableName(full))
    return refuseUnknown(path, name, getLine(node));
  if (const toml::table *table = node.as_table())
    return readTable(*table, full);
  reading.fail(getLine(node),
               full + " is " + printValue(node) + ", expected a table");
}

void RecipeReader::refuseUnknown(StringRef path, StringRef name, int line) {
  llvm::SmallVector<StringRef> known = {"init", "dropout"};
  for (const Key &key : getKeys()) {
    known.push_back(key.name);
    if (!key.getTable().empty())
      known.push_back(key.getTable());
  }
  std::string full = join(path, name);
  // A key in the wrong table is found by its own name.
  auto isSameName = [&](StringRef other) {
    return other.rsplit('.').second == name;
  };
  auto moved = llvm::find_if(known, isSameName);
  StringRef nearest = moved != known.end() ? *moved : findNearest(full, known);
  std::string hint =
      nearest.empty() ? "" : ", did you mean " + nearest.str() + "?";
  reading.fail(line, "unknown key '" + printName(full) + "'" + hint);
}

void RecipeReader::readGroups(const toml::node &node) {
  const toml::array *groups = node.as_array();
  if (!groups)
    return reading.fail(getLine(node),
                        "optimizer.group is " + printValue(node) +
                            ", expected tables: [[optimizer.group]]");
  for (const toml::node &group : *groups) {
    const toml::table *table = group.as_table();
    if (!table) {
      reading.fail(getLine(group), "optimizer.group has " + printValue(group) +
                                       ", expected a table");
      continue;
    }
    recipe.optimizer.groups.emplace_back();
    readTable(*table, "optimizer.group");
    if (!table->contains("match"))
      reading.fail(getLine(group), "optimizer.group needs match");
  }
}

void RecipeReader::readPatterns(const PatternTable &kind,
                                const toml::node &node) {
  const toml::table *table = node.as_table();
  if (!table)
    return reading.fail(getLine(node), std::string(kind.name) + " is " +
                                           printValue(node) +
                                           ", expected a table");
  // The first match wins, and a table is sorted by names.
  std::vector<std::pair<StringRef, const toml::node *>> entries;
  for (auto &&[name, value] : *table)
    entries.emplace_back(std::string_view(name.str()), &value);
  llvm::sort(entries, [](auto &a, auto &b) {
    const toml::source_position &x = a.second->source().begin;
    return x < b.second->source().begin;
  });
  for (auto [pattern, value] : entries)
    readOverride(kind, pattern, *value);
}

void RecipeReader::readOverride(const PatternTable &kind, StringRef pattern,
                                const toml::node &node) {
  int line = getLine(node);
  std::string name = join(kind.name, printName(pattern));
  if (node.is_table())
    return reading.fail(line,
                        name + " is a table: quote patterns that have dots");
  auto words = splitWords(kind.words);
  auto value = node.value<std::string_view>();
  auto word = llvm::find(words, StringRef(value.value_or("")));
  std::optional<double> number = readNumber(node);
  if (kind.range ? !number || !kind.range->contains(*number)
                 : word == words.end())
    return reading.fail(line, name + " is " + printValue(node) + ", expected " +
                                  kind.describeValues());
  Pattern glob{pattern.str(), line};
  if (kind.range)
    recipe.dropout.push_back({glob, *number});
  else
    recipe.init.push_back({glob, Initializer(word - words.begin())});
}

/// What training runs read, which the package says as the recipe does.
void RecipeReader::readData(const toml::node &node) {
  const toml::table *table = node.as_table();
  if (!table)
    return reading.fail(getLine(node),
                        "data is " + printValue(node) + ", expected a table");
  runtime::DataPlan plan;
  if (auto problem = runtime::readPlan(*table, /*folder=*/"", plan))
    return reading.fail(problem->line, problem->message);
  std::ostringstream keys;
  keys << toml::toml_formatter(*table) << '\n';
  recipe.data = keys.str();
}

void RecipeReader::readInputs(const toml::node &node) {
  const toml::table *table = node.as_table();
  if (!table)
    return reading.fail(getLine(node), "input is " + printValue(node) +
                                           ", expected tables: [input.NAME]");
  for (auto &&[name, value] : *table) {
    if (const toml::table *keys = value.as_table())
      readInput(std::string_view(name.str()), *keys);
    else
      reading.fail(getLine(value), "input." + printName(name.str()) + " is " +
                                       printValue(value) +
                                       ", expected a table");
  }
}

/// A number, or a list of them, one for each channel.
bool RecipeReader::readChannels(const toml::node &node, double least,
                                Numbers &to) {
  to.clear();
  auto add = [&](const toml::node &item) {
    auto number = readNumber(item);
    if (number && *number > least && std::isfinite(*number))
      to.push_back(*number);
    return number && *number > least && std::isfinite(*number);
  };
  const toml::array *list = node.as_array();
  return list ? !list->empty() && llvm::all_of(*list, add) : add(node);
}

void RecipeReader::readInput(StringRef name, const toml::table &table) {
  InputRecipe input = {name.str()};
  std::string path = "input." + printName(name);
  auto readOne = [&](StringRef key, const toml::node &node) -> const char * {
    auto word = node.value<std::string_view>().value_or("");
    if (key == "dtype")
      return word == "u8" ? nullptr : "'u8'";
    if (key == "layout") {
      input.isChannelsLast = word == "nhwc";
      return word == "nhwc" || word == "nchw" ? nullptr : "'nchw' or 'nhwc'";
    }
    if (key == "mean")
      return readChannels(node, -kNoBound, input.mean)
                 ? nullptr
                 : "a number, or one for each channel";
    return readChannels(node, 0, input.deviation)
               ? nullptr
               : "a number above 0, or one for each channel";
  };
  for (auto &&[word, node] : table) {
    StringRef key = std::string_view(word.str());
    if (!llvm::is_contained(splitWords("dtype layout mean std"), key)) {
      reading.fail(getLine(node), "unknown key '" + path + "." +
                                      printName(key) +
                                      "', expected dtype, layout, mean or std");
      continue;
    }
    if (const char *expected = readOne(key, node))
      reading.fail(getLine(node), path + "." + key.str() + " is " +
                                      printValue(node) + ", expected " +
                                      expected);
  }
  if (!table.contains("dtype"))
    reading.fail(getLine(table), path + " needs dtype = 'u8'");
  recipe.inputs.push_back(std::move(input));
}

// --- Keys --------------------------------------------------------------------

void RecipeReader::readKey(const Key &key, const toml::node &node) {
  int line = getLine(node);
  reading.lines[key.name] = line;
  Field field = key.field ? key.field(recipe) : Field();
  // A number may also have a name, of what does not exist.
  bool isNamed = !std::holds_alternative<WordField>(field) &&
                 !std::holds_alternative<Patterns *>(field) &&
                 !std::holds_alternative<NumberOrWord *>(field) &&
                 !std::holds_alternative<std::optional<int64_t> *>(field) &&
                 node.is_string() && isListed(key.words, node);
  auto read = [&](auto to) { return assign(key, node, to); };
  if (!isNamed && !std::visit(read, field))
    return reading.fail(line, std::string(key.name) + " is " +
                                  printValue(node) + ", expected " +
                                  key.describeValues());
  if (key.supported ? isListed(key.supported, node) : !isNamed)
    return;
  std::string only = key.supported && *key.supported
                         ? ", only " + joinWords(key.supported)
                         : "";
  reading.refuse(line, std::string(key.name) + " = " + printValue(node) +
                           " is not supported yet" + only);
}

bool RecipeReader::assign(const Key &key, const toml::node &node, double *to) {
  std::optional<double> number = readNumber(node);
  if (!number || !key.range->contains(*number))
    return false;
  *to = *number;
  return true;
}

bool RecipeReader::assign(const Key &key, const toml::node &node, int64_t *to) {
  const auto *integer = node.as_integer();
  if (!integer || !key.range->contains(double(integer->get())))
    return false;
  *to = integer->get();
  return true;
}

bool RecipeReader::assign(const Key &, const toml::node &node, bool *to) {
  if (!node.is_boolean())
    return false;
  *to = node.as_boolean()->get();
  return true;
}

bool RecipeReader::assign(const Key &, const toml::node &node,
                          std::string *to) {
  if (!node.is_string() || node.as_string()->get().empty())
    return false;
  *to = node.as_string()->get();
  return true;
}

bool RecipeReader::assign(const Key &key, const toml::node &node, Betas *to) {
  const toml::array *list = node.as_array();
  return list && list->size() == to->size() &&
         assign(key, (*list)[0], &(*to)[0]) &&
         assign(key, (*list)[1], &(*to)[1]);
}

bool RecipeReader::assign(const Key &key, const toml::node &node,
                          Patterns *to) {
  bool selects = key.name == StringRef("optimizer.no_decay") ||
                 key.name == StringRef("optimizer.group.match");
  auto add = [&](const toml::node &item) {
    auto text = item.value<std::string>();
    if (text && !text->empty())
      to->push_back({*text, getLine(item), selects});
    return text && !text->empty();
  };
  auto words = splitWords(key.words);
  to->clear();
  if (!words.empty() && node.is_string()) {
    // All of them, or none.
    if (node.as_string()->get() == words.front())
      to->push_back({"*", getLine(node)});
    return isListed(key.words, node);
  }
  if (const toml::array *list = node.as_array())
    return llvm::all_of(*list, add);
  return add(node);
}

bool RecipeReader::assign(const Key &key, const toml::node &node,
                          WordField to) {
  auto words = splitWords(key.words);
  auto text = node.value<std::string_view>();
  auto word = llvm::find(words, StringRef(text.value_or("")));
  if (word == words.end())
    return false;
  // What is not supported yet has no enumerator.
  if (!key.supported || isListed(key.supported, node))
    to.set(to.at, word - words.begin());
  return true;
}

bool RecipeReader::assign(const Key &key, const toml::node &node,
                          NumberOrWord *to) {
  if (!node.is_string())
    return assign(key, node, &to->number);
  to->number = 0;
  return isListed(key.words, node);
}

bool RecipeReader::assign(const Key &, const toml::node &node, ByteSize *to) {
  auto text = node.value<std::string_view>();
  std::optional<int64_t> bytes =
      text ? parseByteSize(*text) : std::optional<int64_t>();
  if (!bytes || *bytes < 1)
    return false;
  to->bytes = *bytes;
  return true;
}

bool RecipeReader::assign(const Key &, const toml::node &node, WordList *to) {
  const toml::array *list = node.as_array();
  auto add = [&](const toml::node &item) {
    auto text = item.value<std::string>();
    if (text)
      to->words.push_back({*text, getLine(item)});
    return text.has_value();
  };
  return list && llvm::all_of(*list, add);
}

// --- The whole ---------------------------------------------------------------

std::optional<Recipe> tcc::train::readRecipe(StringRef text, StringRef name,
                                             Problems &problems) {
  Reading reading;
  if (text.size() > kMaxBytes || text.count('.') > kMaxDots) {
    reading.fail(1, "a recipe has at most 64 KiB and 2000 dots");
  } else if (toml::parse_result parsed = toml::parse(std::string_view(text))) {
    RecipeReader(reading).read(parsed.table());
    checkRecipe(reading);
  } else {
    reading.fail(parsed.error().source().begin.line,
                 runtime::printText(parsed.error().description(), 400));
  }
  reading.report(name, problems);
  if (!reading.findings.empty())
    return std::nullopt;
  return std::move(reading.recipe);
}

std::optional<Recipe> tcc::train::readRecipeFile(const std::string &path,
                                                 Problems &problems) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (file)
    return readRecipe((*file)->getBuffer(), path, problems);
  problems.add(ProblemClass::io, path + ": " + file.getError().message());
  return std::nullopt;
}

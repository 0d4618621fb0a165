#include "compiler/train/Keys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace tcc::train;

bool Range::contains(double value) const {
  return (opensAtMin ? value > min : value >= min) &&
         (opensAtMax ? value < max : value <= max);
}

const Key *tcc::train::findKey(llvm::StringRef name) {
  const Key *key = llvm::find_if(
      getKeys(), [&](const Key &key) { return name == key.name; });
  return key == getKeys().end() ? nullptr : key;
}

const PatternTable *tcc::train::findPatternTable(llvm::StringRef name) {
  const PatternTable *table =
      llvm::find_if(getPatternTables(), [&](const PatternTable &table) {
        return name == table.name;
      });
  return table == getPatternTables().end() ? nullptr : table;
}

llvm::StringRef Key::getTable() const {
  llvm::StringRef path(name);
  return path.contains('.') ? path.rsplit('.').first : "";
}

llvm::StringRef Key::getLastName() const {
  llvm::StringRef path(name);
  return path.contains('.') ? path.rsplit('.').second : path;
}

llvm::StringRef Key::getSettingName() const {
  llvm::StringRef path(name);
  return path.starts_with("schedule.") ? path : path.substr(path.find('.') + 1);
}

bool Kind::has(llvm::StringRef key) const {
  return llvm::is_contained(splitWords(keys), key) ||
         llvm::any_of(ownKeys,
                      [&](const Key &own) { return own.getLastName() == key; });
}

std::string Key::getKinds() const {
  std::string words = kinds;
  llvm::StringRef table = llvm::StringRef(name).split('.').first;
  for (const Kind *kind : train::getKinds(table))
    if (kind->has(getLastName()))
      words += (words.empty() ? "" : " ") + std::string(kind->word);
  return words;
}

bool Key::appliesTo(llvm::StringRef kind) const {
  std::string words = getKinds();
  return words.empty() || llvm::is_contained(splitWords(words), kind);
}

// --- Words -------------------------------------------------------------------

llvm::SmallVector<llvm::StringRef>
tcc::train::splitWords(llvm::StringRef list) {
  llvm::SmallVector<llvm::StringRef> words;
  list.split(words, ' ', -1, /*KeepEmpty=*/false);
  return words;
}

llvm::StringRef
tcc::train::findNearest(llvm::StringRef word,
                        llvm::ArrayRef<llvm::StringRef> candidates) {
  llvm::StringRef nearest;
  // Half of the letters wrong is no longer a typing error.
  unsigned best = std::max<size_t>(2, word.size() / 2);
  for (llvm::StringRef candidate : candidates) {
    unsigned distance = word.edit_distance(candidate, true, best);
    if (distance >= best)
      continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

// --- What is compiled in -----------------------------------------------------

namespace {

/// The value of a field.
struct FieldPrinter {
  const Key &key;

  std::string operator()(const double *value) const {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.17g", *value);
    return text;
  }
  std::string operator()(const int64_t *value) const {
    return std::to_string(*value);
  }
  std::string operator()(const bool *value) const {
    return *value ? "true" : "false";
  }
  std::string operator()(const std::string *value) const { return *value; }
  std::string operator()(const Betas *value) const {
    return (*this)(&(*value)[0]) + "," + (*this)(&(*value)[1]);
  }
  std::string operator()(const Patterns *value) const {
    return llvm::join(
        llvm::map_range(*value, [](const Pattern &p) { return p.text; }), ",");
  }
  std::string operator()(const WordList *value) const {
    return (*this)(&value->words);
  }
  std::string operator()(const NumberOrWord *value) const {
    return (*this)(&value->number);
  }
  std::string operator()(const ByteSize *value) const {
    return (*this)(&value->bytes);
  }
  std::string operator()(WordField word) const {
    return splitWords(key.words)[word.get(word.at)].str();
  }
  template <typename T>
  std::string operator()(const std::optional<T> *value) const {
    return *value ? (*this)(&**value) : "";
  }
  std::string operator()(std::monostate) const { return ""; }
};

} // namespace

bool tcc::train::isOfKind(const Key &key, Recipe &recipe) {
  llvm::StringRef table = llvm::StringRef(key.name).split('.').first;
  if (getKinds(table).empty())
    return true;
  const Key &kind = *findKey((table + ".kind").str());
  auto field = std::get<WordField>(kind.field(recipe));
  return key.appliesTo(splitWords(kind.words)[field.get(field.at)]);
}

std::string tcc::train::listCompiledKeys(Recipe recipe) {
  std::string text;
  auto list = [&](const Key &key, const std::string &name) {
    if (!key.isRuntime && !key.mayDifferOnResume && key.field &&
        isOfKind(key, recipe))
      text +=
          name + "=" + std::visit(FieldPrinter{key}, key.field(recipe)) + "\n";
  };
  auto isOfGroup = [](const Key &key) {
    return key.getTable() == "optimizer.group";
  };
  for (const Key &key : getKeys())
    if (!isOfGroup(key))
      list(key, key.name);
  // A key finds its value in the last group.
  auto &groups = recipe.optimizer.groups;
  for (; !groups.empty(); groups.pop_back())
    for (const Key &key : getKeys())
      if (isOfGroup(key))
        list(key, "optimizer.group." + std::to_string(groups.size() - 1) + "." +
                      key.getLastName().str());
  return text;
}

// --- Documentation -----------------------------------------------------------

std::string tcc::train::joinWords(const char *list) {
  return llvm::join(splitWords(list), ", ");
}

std::string Key::describeValues() const {
  static const char *const kTypes[] = {
      "",       "number",      "integer",     "true or false",
      "text",   "two numbers", "patterns",    "",
      "number", "integer",     "two numbers", "number",
      "bytes",  "words"};
  if (supported)
    return *supported ? joinWords(supported) : "none yet";
  Recipe recipe;
  recipe.optimizer.groups.emplace_back();
  Field to = field(recipe);
  if (std::holds_alternative<WordField>(to))
    return joinWords(words);
  std::string text = kTypes[to.index()];
  if (range && *range->description)
    text += std::string(" ") + range->description;
  if (std::holds_alternative<Patterns *>(to) && *words)
    text += ", " + joinWords(words);
  bool isNumber = std::holds_alternative<NumberOrWord *>(to) ||
                  std::holds_alternative<std::optional<int64_t> *>(to);
  if (isNumber && *words)
    text += ", or " + joinWords(words);
  return text;
}

std::string PatternTable::describeValues() const {
  return range ? std::string("number ") + range->description : joinWords(words);
}

/// What there is to say about a key besides its values and default.
/// A number, or two, as in a recipe.
static std::string printInitial(const Key &key, OptimizerKind kind) {
  Recipe recipe;
  recipe.optimizer = OptimizerRecipe::getDefaults(kind);
  Field field = key.field(recipe);
  auto print = [](double value) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%g", value);
    return text;
  };
  if (auto *number = std::get_if<double *>(&field))
    return print(**number);
  if (auto *betas = std::get_if<Betas *>(&field))
    return "[" + print((**betas)[0]) + ", " + print((**betas)[1]) + "]";
  return "";
}

std::string Key::describeInitial() const {
  std::string text = initial;
  if (getTable() != "optimizer" || !field)
    return text;
  // The first kind that has the key begins with what is always told.
  std::optional<std::string> usual;
  for (auto [row, kind] : llvm::enumerate(train::getKinds(getTable()))) {
    if (!appliesTo(kind->word))
      continue;
    std::string own = printInitial(*this, OptimizerKind(row));
    if (usual && own != *usual)
      text += std::string(", ") + kind->word + " " + own;
    usual = usual.value_or(own);
  }
  return text;
}

static std::string describeUse(const Key &key) {
  llvm::SmallVector<std::string> parts;
  if (key.isRuntime)
    parts.push_back("**run time**");
  if (key.mayDifferOnResume)
    parts.push_back("**resumes**");
  if (std::string kinds = key.getKinds(); !kinds.empty())
    parts.push_back("of " + joinWords(kinds.c_str()));
  if (*key.summary)
    parts.push_back(key.summary);
  return llvm::join(parts, "; ");
}

std::string tcc::train::describeKeys() {
  std::string text = "| key | values | default | |\n|---|---|---|---|\n";
  for (const Key &key : getKeys())
    text += "| `" + std::string(key.name) + "` | " + key.describeValues() +
            " | " + key.describeInitial() + " | " + describeUse(key) + " |\n";
  return text;
}

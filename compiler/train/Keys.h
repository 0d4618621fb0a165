//===- Keys.h - The keys of a recipe ----------------------------*- C++ -*-===//
//
// The one list of them: reading, `--set` and docs/training.md follow it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_KEYS_H
#define TCC_COMPILER_TRAIN_KEYS_H

#include "compiler/train/Recipe.h"
#include "llvm/ADT/SmallVector.h"
#include <variant>

namespace tcc::train {

/// An enum of the recipe, set by the position of its word.
struct WordField {
  void *at;
  void (*set)(void *at, int64_t position);
  int64_t (*get)(const void *at);
};

/// Where a key's value goes.
using Field =
    std::variant<std::monostate, double *, int64_t *, bool *, std::string *,
                 Betas *, Patterns *, WordField, std::optional<double> *,
                 std::optional<int64_t> *, std::optional<Betas> *,
                 NumberOrWord *, ByteSize *, std::optional<WordList> *>;

/// The numbers that a key may have. Nothing contains NaN.
struct Range {
  double min, max;
  /// The ends are not inside.
  bool opensAtMin = false, opensAtMax = false;
  const char *description;

  bool contains(double value) const;
};

/// A bound that is the largest double is none.
inline constexpr double kNoBound = std::numeric_limits<double>::max();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline constexpr Range kAny{-kNoBound, kNoBound, false, false, ""};
inline constexpr Range kNonNegative{0, kNoBound, false, false, "at least 0"};
inline constexpr Range kPositive{0, kNoBound, true, false, "greater than 0"};
/// The loss is scaled in f32.
inline constexpr Range kScale{std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::max(), false, false,
                              "within f32's normal range"};
inline constexpr Range kLimit{0, kInfinity, true, false, "greater than 0"};
inline constexpr Range kCount{1, kNoBound, false, false, "at least 1"};
inline constexpr Range kUnit{0, 1, false, false, "from 0 to 1"};
inline constexpr Range kFraction{0, 1, false, true, "at least 0 and below 1"};

struct Key {
  /// TABLE.NAME, or NAME at the top level.
  const char *name;
  /// The place in a recipe; without one the value is only looked at. That of
  /// a group's key is in the last group.
  Field (*field)(Recipe &recipe) = nullptr;
  /// What it is if absent; for people.
  const char *initial = "";
  const char *summary = "";
  /// Numbers, and what is in a list, are in it.
  const Range *range = nullptr;
  /// What a word may be, in the order of the enumerators; beside a range, what
  /// may stand in place of a number.
  const char *words = "";
  /// The values that exist, where not all do.
  const char *supported = nullptr;
  /// The kinds of a schedule that it is for; empty: all. Those of losses and
  /// optimizers say so themselves (Kind).
  const char *kinds = "";
  /// True if the value is a setting of the package (see getSettingName).
  bool isRuntime = false;
  /// True if a value that is compiled in changes at most the order of sums, as
  /// logits in chunks do: a checkpoint is resumed with another one, too.
  bool mayDifferOnResume = false;
  /// Whether steps read the setting; null: they do, whatever it is.
  bool (*isCompiled)(const Recipe &recipe) = nullptr;

  llvm::StringRef getTable() const;
  llvm::StringRef getLastName() const;
  /// KEY in `--set KEY=VALUE`: the table is left out, but for schedule.
  llvm::StringRef getSettingName() const;
  /// The kinds of its table that it is for, separated by spaces; empty: all.
  std::string getKinds() const;
  bool appliesTo(llvm::StringRef kind) const;
  /// What it is if absent, with the optimizers that begin with another value.
  std::string describeInitial() const;
  /// What values it takes, for people.
  std::string describeValues() const;
};

/// A kind of loss or optimizer, as a row of the table of these begins.
struct Kind {
  const char *word;
  /// Keys of its table, by their last names, that some kinds have and others
  /// have not; empty: none.
  const char *keys = "";
  /// Keys that it alone has, with values in OwnValues.
  llvm::ArrayRef<Key> ownKeys = {};

  bool has(llvm::StringRef key) const;
};
/// The kinds of the table `loss` or `optimizer`; other tables have none.
llvm::SmallVector<const Kind *> getKinds(llvm::StringRef table);

/// In the order of the documentation.
llvm::ArrayRef<Key> getKeys();
const Key *findKey(llvm::StringRef name);

/// Tables whose keys are patterns, in quotes: [init] and [dropout].
struct PatternTable {
  const char *name;
  /// The values, in the order of the enumerators; empty: numbers of the range.
  const char *words;
  const Range *range = nullptr;

  std::string describeValues() const;
};
llvm::ArrayRef<PatternTable> getPatternTables();
const PatternTable *findPatternTable(llvm::StringRef name);

/// The words of a list that is separated by spaces.
llvm::SmallVector<llvm::StringRef> splitWords(llvm::StringRef list);
/// The same separated by commas, for people.
std::string joinWords(const char *list);
/// The one of `candidates` that `word` was probably meant to be, or nothing.
llvm::StringRef findNearest(llvm::StringRef word,
                            llvm::ArrayRef<llvm::StringRef> candidates);

/// Whether the kind of loss or optimizer that `recipe` has takes the key; true
/// of other tables.
bool isOfKind(const Key &key, Recipe &recipe);

/// What of a recipe is compiled in, and the same in whatever resumes a
/// checkpoint: KEY=VALUE, one a line.
std::string listCompiledKeys(Recipe recipe);

/// All keys as a table in Markdown, as docs/training.md has it.
std::string describeKeys();

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_KEYS_H

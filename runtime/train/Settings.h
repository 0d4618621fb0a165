//===- Settings.h - What changes at run time --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_SETTINGS_H
#define TCC_RUNTIME_TRAIN_SETTINGS_H

#include "runtime/executor/Variables.h"

#include <span>
#include <string_view>

namespace tcc::runtime {

/// The settings of a program: values of its recipe that its entry points read
/// from variables.
class Settings {
public:
  /// Both outlive the settings.
  Settings(const format::Program &program, Variables &variables)
      : tables(program.settings()), variables(&variables) {}

  size_t size() const { return tables ? tables->size() : 0; }
  const format::Setting &describe(size_t index) const {
    return *tables->Get(index);
  }
  /// How many numbers it has.
  size_t count(size_t index) const;
  std::optional<size_t> find(std::string_view key) const;

  /// Sets the setting `key`, or all that the pattern `key` matches: to a word,
  /// or to numbers with commas between them. After an error (Code::Usage, which
  /// says what is known or expected) nothing is changed.
  Status set(std::string_view key, std::string_view text);
  Status set(std::string_view key, std::span<const double> numbers);

  /// The first element: a number, or the position of a word.
  Result<double> get(std::string_view key) const;

  /// The value as `set` takes it; empty where the recipe gave none.
  Result<std::string> text(size_t index) const;

  /// Whether the values go together, as a recipe's must: Code::Usage says which
  /// do not. What a recipe did not give is out of its range.
  Status check() const;
  /// Variables of the schedule: no others are read by `check`.
  std::vector<size_t> checkedVariables() const;

private:
  Result<std::optional<double>> getGiven(std::string_view key) const;
  std::vector<size_t> match(std::string_view key) const;
  Status refuseKey(std::string_view key) const;
  std::string describeValues(size_t index) const;
  /// `store` writes the elements of one setting, or is false.
  template <typename Value, typename Store>
  Status setAll(std::string_view key, const Value &value,
                const std::string &text, Store store);

  const flatbuffers::Vector<flatbuffers::Offset<format::Setting>> *tables;
  Variables *variables;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_SETTINGS_H

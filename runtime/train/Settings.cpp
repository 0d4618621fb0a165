#include "runtime/train/Settings.h"

#include "runtime/base/Glob.h"
#include "runtime/base/NearestWord.h"
#include "runtime/package/ScheduleRules.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

size_t Settings::count(size_t index) const {
  size_t variable = describe(index).variable();
  return variables->byteCount(variable) /
         traitsOf(variables->describe(variable).dtype()).bytes;
}

std::optional<size_t> Settings::find(std::string_view key) const {
  for (size_t i = 0; i < size(); ++i)
    if (describe(i).key()->string_view() == key)
      return i;
  return std::nullopt;
}

std::vector<size_t> Settings::match(std::string_view key) const {
  if (auto index = find(key))
    return {*index};
  std::vector<size_t> found;
  for (size_t i = 0; i < size(); ++i)
    if (matchesGlob(key, describe(i).key()->string_view()))
      found.push_back(i);
  return found;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// NaN is in no range.
static bool contains(const format::Range &range, double value) {
  return (range.opens_at_min() ? value > range.min() : value >= range.min()) &&
         (range.opens_at_max() ? value < range.max() : value <= range.max());
}

// The value of a text or number; false if the type has none.

template <typename T> static bool convert(std::string_view text, T &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

template <typename T> static bool convert(double number, T &value) {
  constexpr double kEnd = 0x1p63;
  if (std::is_integral_v<T> &&
      !(std::trunc(number) == number && number >= -kEnd && number < kEnd))
    return false;
  value = static_cast<T>(number);
  return true;
}

template <typename T, typename Value>
static bool storeAs(const Value &from, const format::Range *range,
                    std::byte *to) {
  T value = 0;
  if (!convert(from, value) || (range && !contains(*range, double(value))))
    return false;
  std::memcpy(to, &value, sizeof(value));
  return true;
}

/// Stores one element, a number or the text of one; false unless the type and
/// the range, if there is one, have it.
template <typename Value>
static bool store(DType dtype, const Value &from, const format::Range *range,
                  std::byte *to) {
  switch (dtype) {
  case DType::f64:
    return storeAs<double>(from, range, to);
  case DType::f32:
    return storeAs<float>(from, range, to);
  default:
    return storeAs<int64_t>(from, range, to); // verified
  }
}

/// Stores the position of the word, if it is one.
static bool storeWord(const format::Setting &setting, DType dtype,
                      std::string_view word, std::byte *to) {
  const auto *words = setting.words();
  for (size_t i = 0; words && i < words->size(); ++i)
    if (words->Get(i)->string_view() == word)
      return store(dtype, static_cast<double>(i), nullptr, to);
  return false;
}

/// A word, or as many numbers as there are elements.
static bool storeText(const format::Setting &setting, DType dtype,
                      std::string_view text, std::span<std::byte> to) {
  if (storeWord(setting, dtype, text, to.data()))
    return true;
  if (!setting.range())
    return false;
  size_t step = traitsOf(dtype).bytes;
  for (size_t at = 0; at < to.size(); at += step) {
    size_t comma = text.find(',');
    bool isLast = at + step == to.size();
    if ((comma == text.npos) != isLast ||
        !store(dtype, text.substr(0, comma), setting.range(), to.data() + at))
      return false;
    text.remove_prefix(isLast ? text.size() : comma + 1);
  }
  return true;
}

static bool storeNumbers(const format::Setting &setting, DType dtype,
                         std::span<const double> numbers,
                         std::span<std::byte> to) {
  size_t step = traitsOf(dtype).bytes;
  if (!setting.range() || numbers.size() * step != to.size())
    return false;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!store(dtype, numbers[i], setting.range(), to.data() + i * step))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// "[0,inf)"
static std::string print(const format::Range &range) {
  char text[64];
  std::snprintf(text, sizeof(text), "%c%g,%g%c",
                range.opens_at_min() ? '(' : '[', range.min(), range.max(),
                range.opens_at_max() ? ')' : ']');
  return text;
}

std::string Settings::describeValues(size_t index) const {
  const format::Setting &setting = describe(index);
  std::string words;
  for (size_t i = 0; setting.words() && i < setting.words()->size(); ++i)
    words += concat(i ? " " : "", setting.words()->Get(i)->string_view());
  if (!setting.range())
    return concat("one of: ", words);
  std::string_view type =
      traitsOf(variables->describe(setting.variable()).dtype()).name;
  return concat(count(index) == 1 ? concat("a number (", type, ")")
                                  : concat(count(index), " numbers (", type,
                                           ") with commas between them"),
                " in ", print(*setting.range()),
                words.empty() ? "" : concat(", or ", words));
}

Status Settings::refuseKey(std::string_view key) const {
  std::vector<std::string> keys;
  for (size_t i = 0; i < size(); ++i)
    keys.push_back(describe(i).key()->str());
  std::string nearest = nearestWord(key, keys), known;
  for (const std::string &name : keys)
    known += concat(known.empty() ? "" : ", ", name);
  return makeError(Code::Usage, "'", key,
                   "' is no setting that changes at run time",
                   nearest.empty() ? concat("; these do: ", known)
                                   : concat(", did you mean '", nearest, "'?"));
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

template <typename Value, typename Store>
Status Settings::setAll(std::string_view key, const Value &value,
                        const std::string &text, Store store) {
  std::vector<size_t> found = match(key);
  if (found.empty())
    return refuseKey(key);
  std::vector<std::vector<std::byte>> elements;
  for (size_t index : found) {
    size_t variable = describe(index).variable();
    elements.emplace_back(variables->byteCount(variable));
    if (!store(describe(index), variables->describe(variable).dtype(), value,
               std::span(elements.back())))
      return makeError(Code::Usage, "'", text, "': expected ",
                       describeValues(index));
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (Status status =
            variables->write(describe(found[i]).variable(), elements[i]);
        !status.ok())
      return status;
  return Status();
}

Status Settings::set(std::string_view key, std::string_view text) {
  return setAll(key, text, concat(key, "=", text), storeText);
}

Status Settings::set(std::string_view key, std::span<const double> numbers) {
  return setAll(key, numbers, std::string(key), storeNumbers);
}

Result<double> Settings::get(std::string_view key) const {
  std::optional<size_t> index = find(key);
  if (!index)
    return refuseKey(key);
  size_t variable = describe(*index).variable();
  std::vector<std::byte> elements(variables->byteCount(variable));
  if (Status status = variables->read(variable, elements); !status.ok())
    return status;
  return readScalar(variables->describe(variable).dtype(), elements.data());
}

/// The shortest text that is read as the same number.
static std::string print(DType dtype, double number) {
  char text[32];
  auto print = [&](auto value) {
    return std::string(text, std::to_chars(text, std::end(text), value).ptr);
  };
  switch (dtype) {
  case DType::f64:
    return print(number);
  case DType::f32:
    return print(static_cast<float>(number));
  default:
    return print(static_cast<int64_t>(number)); // verified
  }
}

Result<std::string> Settings::text(size_t index) const {
  const format::Setting &setting = describe(index);
  size_t variable = setting.variable();
  DType dtype = variables->describe(variable).dtype();
  std::vector<std::byte> elements(variables->byteCount(variable));
  if (Status status = variables->read(variable, elements); !status.ok())
    return status;
  double first = readScalar(dtype, elements.data());
  const auto *words = setting.words();
  if (!setting.range() || !contains(*setting.range(), first)) {
    bool isWord = words && first >= 0 && first < words->size();
    return isWord ? words->Get(static_cast<uint32_t>(first))->str() : "";
  }
  std::string numbers = print(dtype, first);
  size_t step = traitsOf(dtype).bytes;
  for (size_t at = step; at < elements.size(); at += step)
    numbers +=
        concat(",", print(dtype, readScalar(dtype, elements.data() + at)));
  return numbers;
}

/// The number of a setting, where a value in its range has been given.
Result<std::optional<double>> Settings::getGiven(std::string_view key) const {
  std::optional<size_t> index = find(key);
  if (!index || !describe(*index).range())
    return std::optional<double>();
  Result<double> number = get(key);
  if (!number.ok())
    return number.takeStatus();
  bool isGiven = contains(*describe(*index).range(), *number);
  return isGiven ? std::optional(*number) : std::nullopt;
}

static constexpr std::string_view kScheduleTable = "schedule.";

std::vector<size_t> Settings::checkedVariables() const {
  std::vector<size_t> indices;
  for (size_t i = 0; i < size(); ++i)
    if (describe(i).key()->string_view().starts_with(kScheduleTable))
      indices.push_back(describe(i).variable());
  return indices;
}

Status Settings::check() const {
  std::optional<size_t> kind = find("schedule.kind");
  if (!kind || !describe(*kind).words())
    return Status();
  Result<double> position = get("schedule.kind");
  if (!position.ok())
    return position.takeStatus();
  const auto &words = *describe(*kind).words();
  if (!(*position >= 0 && *position < words.size()))
    return makeError(Code::Usage, "schedule.kind is ", *position, ", expected ",
                     describeValues(*kind));
  Status failure;
  auto read = [&](std::string_view key) {
    Result<std::optional<double>> number = getGiven(key);
    if (number.ok())
      return *number;
    failure = number.takeStatus();
    return std::optional<double>();
  };
  auto problems = format::checkSchedule(
      words.Get(static_cast<uint32_t>(*position))->string_view(), read);
  if (!failure.ok())
    return failure;
  std::string text;
  for (const format::ScheduleProblem &problem : problems)
    text += concat(text.empty() ? "" : "; ", problem.message);
  return text.empty() ? Status() : Status(Code::Usage, std::move(text));
}

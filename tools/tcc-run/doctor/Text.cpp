#include "tools/tcc-run/doctor/Text.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;

static constexpr std::string_view kSpace = " \t\n";

static std::string_view trim(std::string_view text) {
  size_t first = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

/// All of the text as a number.
template <typename Number>
static std::optional<Number> parseNumber(std::string_view text) {
  Number number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// Takes the first word off a text; empty if it has none.
static std::string_view takeWord(std::string_view &text) {
  text = trim(text);
  size_t end = std::min(text.find_first_of(kSpace), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<int64_t> doctor::parseInteger(std::string_view text) {
  return parseNumber<int64_t>(trim(text));
}

std::optional<std::vector<int64_t>> doctor::parseIntegers(std::string_view text,
                                                          size_t least) {
  std::vector<int64_t> numbers;
  for (std::string_view word; !(word = takeWord(text)).empty();) {
    auto number = parseNumber<int64_t>(word);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() < least)
    return std::nullopt;
  return numbers;
}

std::optional<std::string> doctor::parseChosen(std::string_view text) {
  std::optional<std::string> chosen;
  for (std::string_view word; !(word = takeWord(text)).empty();) {
    if (!word.starts_with('[') || !word.ends_with(']') || word.size() < 3)
      continue;
    if (chosen)
      return std::nullopt;
    chosen = word.substr(1, word.size() - 2);
  }
  return chosen;
}

std::optional<std::vector<int>> doctor::parseList(std::string_view text) {
  constexpr int kMost = 65536;
  std::vector<int> numbers;
  for (text = trim(text); !text.empty();) {
    std::string_view range = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
    size_t dash = range.find('-');
    auto first = parseNumber<int>(range.substr(0, dash));
    auto last = dash == std::string_view::npos
                    ? first
                    : parseNumber<int>(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMost)
      return std::nullopt;
    for (int number = *first; number <= *last; ++number)
      numbers.push_back(number);
  }
  if (numbers.empty() || numbers.size() > kMost)
    return std::nullopt;
  return numbers;
}

std::optional<std::string_view> doctor::findLine(std::string_view text,
                                                 std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(key))
      return trim(line.substr(key.size()));
  }
  return std::nullopt;
}

std::optional<uint64_t> doctor::findKibibytes(std::string_view text,
                                              std::string_view key) {
  std::string start(key);
  auto line = findLine(text, start += ':');
  if (!line || !line->ends_with(" kB"))
    return std::nullopt;
  auto number = parseNumber<uint64_t>(trim(line->substr(0, line->size() - 3)));
  if (!number || *number > UINT64_MAX / 1024)
    return std::nullopt;
  return *number * 1024;
}

std::optional<double> doctor::findPressure(std::string_view text) {
  auto line = findLine(text, "some avg10=");
  if (!line)
    return std::nullopt;
  auto percent = parseNumber<double>(takeWord(*line));
  if (!percent || !(*percent >= 0 && *percent <= 100))
    return std::nullopt;
  return percent;
}

bool doctor::hasWord(std::string_view text, std::string_view word) {
  for (std::string_view found; !(found = takeWord(text)).empty();)
    if (found == word)
      return true;
  return false;
}

std::string doctor::nameNumber(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", number);
  return text;
}

std::string doctor::namePercent(double percent) {
  return nameNumber(percent) + " %";
}

std::string doctor::nameBytes(uint64_t bytes) {
  constexpr const char *kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024)
    return concat(bytes, bytes == 1 ? " byte" : " bytes");
  auto number = static_cast<double>(bytes);
  size_t unit = 0;
  for (number /= 1024; number >= 1023.95 && unit + 1 < std::size(kUnits);
       ++unit)
    number /= 1024;
  std::string text = nameNumber(number);
  if (text.ends_with(".0"))
    text.resize(text.size() - 2);
  return concat(text, " ", kUnits[unit]);
}

#include "tools/cli/ModelFlags.h"

#include <charconv>

namespace tcc::tools {

namespace {

struct NamedText {
  std::string_view name, value;
};

} // namespace

/// Splits at the last '=': names of a model may have others.
static std::optional<NamedText> splitName(std::string_view text) {
  size_t place = text.rfind('=');
  if (place == std::string_view::npos || place == 0)
    return std::nullopt;
  return NamedText{text.substr(0, place), text.substr(place + 1)};
}

static std::optional<int64_t> parseSize(std::string_view text) {
  int64_t size = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 0)
    return std::nullopt;
  return size;
}

std::optional<DimBinding> parseDimBinding(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named)
    return std::nullopt;
  std::string_view range = named->value;
  size_t dots = range.find("..");
  bool isRange = dots != std::string_view::npos;
  std::optional<int64_t> step = 1;
  if (size_t colon = range.find(':'); isRange && colon != range.npos) {
    step = parseSize(range.substr(colon + 1));
    range = range.substr(0, colon);
  }
  std::optional<int64_t> min = parseSize(range.substr(0, dots));
  std::optional<int64_t> max =
      isRange ? parseSize(range.substr(dots + 2)) : min;
  if (!min || !max || *max < *min || !step || *step < 1)
    return std::nullopt;
  return DimBinding{std::string(named->name), *min, *max, *step};
}

std::optional<InputShape> parseInputShape(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named)
    return std::nullopt;
  InputShape shape{std::string(named->name), {}};
  std::string_view rest = named->value;
  while (!rest.empty()) {
    size_t place = rest.find('x');
    std::optional<int64_t> extent = parseSize(rest.substr(0, place));
    bool isLast = place == std::string_view::npos;
    if (!extent || (!isLast && place + 1 == rest.size()))
      return std::nullopt;
    shape.extents.push_back(*extent);
    rest = isLast ? std::string_view() : rest.substr(place + 1);
  }
  return shape;
}

std::optional<InputValue> parseInputValue(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named)
    return std::nullopt;
  return InputValue{std::string(named->name), std::string(named->value)};
}

std::optional<StatePair> parseStatePair(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named || named->value.empty())
    return std::nullopt;
  return StatePair{std::string(named->name), std::string(named->value)};
}

} // namespace tcc::tools

#include "tools/cli/ModelFlags.h"

#include <algorithm>
#include <charconv>
#include <numeric>

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

/// `64,128,256`
static std::optional<DimBinding> parseSizes(const NamedText &named) {
  DimBinding binding{std::string(named.name), 0, 0, 0};
  std::string_view rest = named.value;
  for (size_t comma = 0; comma != rest.npos; rest.remove_prefix(comma + 1)) {
    comma = rest.find(',');
    std::optional<int64_t> size = parseSize(rest.substr(0, comma));
    if (!size || *size == 0)
      return std::nullopt;
    binding.sizes.push_back(*size);
    binding.step = std::gcd(binding.step, *size);
    if (comma == rest.npos)
      break;
  }
  auto [min, max] = std::ranges::minmax(binding.sizes);
  binding.min = min;
  binding.max = max;
  return binding;
}

std::optional<DimBinding> parseDimBinding(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named)
    return std::nullopt;
  std::string_view range = named->value;
  if (range.find(',') != range.npos)
    return parseSizes(*named);
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

std::optional<InputLength> parseInputLength(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named)
    return std::nullopt;
  std::optional<int64_t> count = parseSize(named->value);
  if (!count && named->value != "none")
    return std::nullopt;
  return InputLength{std::string(named->name), count};
}

std::optional<SizeBound> parseSizeBound(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  std::optional<int64_t> max = named ? parseSize(named->value) : std::nullopt;
  if (!max)
    return std::nullopt;
  return SizeBound{std::string(named->name), *max};
}

std::optional<StatePair> parseStatePair(std::string_view text) {
  std::optional<NamedText> named = splitName(text);
  if (!named || named->value.empty())
    return std::nullopt;
  return StatePair{std::string(named->name), std::string(named->value)};
}

} // namespace tcc::tools

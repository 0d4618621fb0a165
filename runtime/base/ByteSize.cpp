#include "runtime/base/ByteSize.h"

#include <algorithm>
#include <charconv>

using namespace tcc;

std::optional<int64_t> tcc::parseByteSize(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {
      {"", 1},         {"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
      {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3},     {"MB", 1e6},
      {"GB", 1e9},     {"TB", 1e12},
  };
  constexpr double kMost = 1e18;
  size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + digits, number);
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' '))
    unit.remove_prefix(1);
  while (unit.ends_with(' '))
    unit.remove_suffix(1);
  auto found = std::ranges::find(kUnits, unit, &Unit::name);
  if (error != std::errc() || end != text.data() + digits ||
      found == std::end(kUnits) || number * found->bytes > kMost)
    return std::nullopt;
  return int64_t(number * found->bytes);
}

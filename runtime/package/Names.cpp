#include "runtime/package/Names.h"

#include "runtime/package/Program_generated.h"

#include <charconv>

using namespace tcc;

std::string format::nameOf(const Entry &entry) {
  return nameOf(entry.kind(), entry.variant());
}

std::optional<format::EntryName> format::parseEntryName(std::string_view name) {
  size_t dot = name.find('.');
  std::string_view kindName = name.substr(0, dot), number;
  uint16_t variant = 0;
  if (dot != name.npos) {
    number = name.substr(dot + 1);
    auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), variant);
    if (error != std::errc() || end != number.data() + number.size())
      return std::nullopt;
  }
  for (EntryKind kind : EnumValuesEntryKind())
    if (kindName == nameOf(kind) && name == nameOf(kind, variant))
      return EntryName{kind, variant};
  return std::nullopt;
}

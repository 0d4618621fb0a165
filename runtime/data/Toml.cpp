#include "runtime/data/Toml.h"

#include <cstdio>

using namespace tcc;

std::string runtime::printValue(const toml::node &node) {
  if (auto *text = node.as_string())
    return "'" + printText(text->get()) + "'";
  if (auto *integer = node.as_integer())
    return std::to_string(integer->get());
  if (auto *number = node.as_floating_point()) {
    char printed[32];
    std::snprintf(printed, sizeof(printed), "%g", number->get());
    return printed;
  }
  if (auto *flag = node.as_boolean())
    return flag->get() ? "true" : "false";
  if (node.is_array())
    return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

std::optional<double> runtime::readNumber(const toml::node &node) {
  if (const auto *integer = node.as_integer())
    return double(integer->get());
  if (const auto *number = node.as_floating_point())
    return number->get();
  return std::nullopt;
}

//===- Toml.h - toml++, as all of the house uses it -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_TOML_H
#define TCC_RUNTIME_DATA_TOML_H

#include <optional>
#include <string>
#include <string_view>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace tcc::runtime {

/// What stands in a file, which may be long and have anything in it, on one
/// line; dots say that more follows.
std::string printText(std::string_view text, size_t longest = 60);

/// A value as an error message names it: itself, or what kind of value it is.
std::string printValue(const toml::node &node);

/// An integer or a floating-point number.
std::optional<double> readNumber(const toml::node &node);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_TOML_H

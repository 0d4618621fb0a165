//===- Toml.h - toml++, as all of the house uses it -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_TOML_H
#define TCC_RUNTIME_DATA_TOML_H

#include "runtime/base/PrintText.h"

#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace tcc::runtime {

/// A value as an error message names it: itself, or what kind of value it is.
std::string printValue(const toml::node &node);

/// An integer or a floating-point number.
std::optional<double> readNumber(const toml::node &node);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_TOML_H

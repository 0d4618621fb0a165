//===- ModelFlags.h - The values of flags about a model ---------*- C++ -*-===//
//
// Each function reads the value of one flag; nullopt if it is malformed.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_CLI_MODELFLAGS_H
#define TCC_TOOLS_CLI_MODELFLAGS_H

#include "tcc/import_options.h"
#include <optional>
#include <string_view>

namespace tcc::tools {

/// `NAME=N`, `NAME=MIN..MAX`, `NAME=MIN..MAX:STEP` or `NAME=N,N,...`
std::optional<DimBinding> parseDimBinding(std::string_view text);
/// `NAME=1x3x224x224`; `NAME=` is a scalar.
std::optional<InputShape> parseInputShape(std::string_view text);
/// `NAME=V`; `NAME=` fixes an input without elements.
std::optional<InputValue> parseInputValue(std::string_view text);
/// `NAME=N` or `NAME=none`
std::optional<InputLength> parseInputLength(std::string_view text);
/// `NAME=N`
std::optional<SizeBound> parseSizeBound(std::string_view text);
/// `OUT=IN`
std::optional<StatePair> parseStatePair(std::string_view text);

} // namespace tcc::tools

#endif // TCC_TOOLS_CLI_MODELFLAGS_H

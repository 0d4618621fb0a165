//===- Json.h - JSON that is not trusted ------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PT2_JSON_H
#define TCC_FRONTENDS_PT2_JSON_H

#include "llvm/ADT/StringRef.h"
#include <nlohmann/json.hpp>
#include <optional>

namespace tcc::pt2 {

using Json = nlohmann::json;

/// Null if the text is not JSON, or nested too deeply for what reads it.
std::optional<Json> parseJson(llvm::StringRef text);

/// The member of an object; null if there is none, or it is null.
const Json *find(const Json &object, llvm::StringRef key);
/// The elements of a list; empty if it is none.
const std::vector<Json> &getList(const Json *list);
/// A member that is a string; empty if it is none.
std::string getText(const Json &object, llvm::StringRef key);
std::optional<int64_t> getInteger(const Json *number);
std::optional<double> getReal(const Json *number);

/// The key and value of an object with one member that is not null: how the
/// schema writes a choice.
struct Choice {
  std::string key;
  const Json *value = nullptr;
};
Choice getChoice(const Json &object);

} // namespace tcc::pt2

#endif // TCC_FRONTENDS_PT2_JSON_H

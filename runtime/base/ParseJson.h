//===- ParseJson.h - JSON of files that others wrote ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_PARSEJSON_H
#define TCC_RUNTIME_BASE_PARSEJSON_H

#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>

namespace tcc::runtime {

/// An object that is at most 64 deep: what copies or prints a value calls
/// itself for those in it. Nothing where the text is something else.
template <typename Json = nlohmann::json>
std::optional<Json> parseObject(std::string_view text) {
  constexpr int kDeepest = 64;
  bool isDeep = false;
  auto limit = [&](int depth, typename Json::parse_event_t, Json &) {
    isDeep |= depth > kDeepest;
    return !isDeep;
  };
  Json parsed = Json::parse(text, limit, /*allow_exceptions=*/false);
  if (isDeep || !parsed.is_object())
    return std::nullopt;
  return parsed;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_PARSEJSON_H

//===- Json.h - One JSON object on stdout -----------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_JSON_H
#define TCC_TOOLS_TCCRUN_JSON_H

#include <iostream>
#include <nlohmann/json.hpp>

namespace tcc::tools {

/// Names are the model's: bytes that are no UTF-8 become U+FFFD.
inline void printJson(const nlohmann::ordered_json &document) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  std::cout << document.dump(-1, ' ', false, kReplace) << '\n';
}

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_JSON_H

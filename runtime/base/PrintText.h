//===- PrintText.h - Texts of files in messages -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_PRINTTEXT_H
#define TCC_RUNTIME_BASE_PRINTTEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace tcc::runtime {

/// What stands in a file, which may be long and have anything in it, on one
/// line; dots say that more follows.
std::string printText(std::string_view text, size_t longest = 60);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_PRINTTEXT_H

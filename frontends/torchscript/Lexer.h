//===- Lexer.h - Tokens of Python -------------------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_LEXER_H
#define TCC_FRONTENDS_TORCHSCRIPT_LEXER_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tcc::torchscript {

struct Token {
  enum class Kind { name, number, string, sign, newline, indent, dedent, end };
  Kind kind;
  std::string text;
  int line;
};

/// The tokens of `text`, with those of its indentation; false and the reason if
/// it has what is none.
bool splitTokens(llvm::StringRef text, std::vector<Token> &tokens,
                 std::string &error);

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_LEXER_H

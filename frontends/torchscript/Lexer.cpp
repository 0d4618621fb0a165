#include "frontends/torchscript/Lexer.h"

#include "llvm/ADT/StringExtras.h"

namespace tcc::torchscript {

using llvm::StringRef;
using Kind = Token::Kind;

namespace {

class Lexer {
public:
  Lexer(StringRef text, std::vector<Token> &tokens)
      : rest(text), tokens(tokens) {}

  bool run(std::string &error);

private:
  bool startLine();
  bool takeToken();
  bool takeString();
  void add(Kind kind, StringRef text) {
    tokens.push_back({kind, text.str(), line});
  }
  bool fail(const char *what) {
    reason = "line " + std::to_string(line) + ": " + what;
    return false;
  }

  StringRef rest;
  std::vector<Token> &tokens;
  std::vector<size_t> indents = {0};
  std::string reason;
  int line = 1, depth = 0;
};

} // namespace

/// Indentation counts where a line has something on it.
bool Lexer::startLine() {
  size_t indent = 0;
  while (indent < rest.size() && rest[indent] == ' ')
    ++indent;
  StringRef content = rest.drop_front(indent);
  if (content.empty() || content[0] == '\n' || content[0] == '#')
    return true;
  rest = content;
  if (indent > indents.back()) {
    if (indents.size() > 100)
      return fail("the code is nested too deeply");
    indents.push_back(indent);
    add(Kind::indent, "");
  }
  while (indent < indents.back()) {
    indents.pop_back();
    add(Kind::dedent, "");
  }
  return indent == indents.back() || fail("the indentation is inconsistent");
}

static int getHexDigits(char escape) {
  return escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
}

bool Lexer::takeString() {
  char quote = rest[0];
  std::string text;
  size_t i = 1;
  for (; i < rest.size() && rest[i] != quote; ++i) {
    if (rest[i] == '\n')
      return fail("a string does not end");
    if (rest[i] != '\\') {
      text += rest[i];
      continue;
    }
    if (++i == rest.size())
      return fail("a string does not end");
    char escape = rest[i];
    if (int digits = getHexDigits(escape)) {
      unsigned code;
      if (rest.substr(i + 1, digits).getAsInteger(16, code))
        return fail("a string has a malformed escape");
      text += char(code < 128 ? code : '?'); // of messages alone
      i += digits;
    } else if (escape >= '0' && escape <= '7') {
      unsigned code = 0, count = 0;
      while (count < 3 && i < rest.size() && rest[i] >= '0' && rest[i] <= '7')
        code = code * 8 + (rest[i++] - '0'), ++count;
      --i;
      text += char(code);
    } else {
      text += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
    }
  }
  if (i == rest.size())
    return fail("a string does not end");
  add(Kind::string, text);
  rest = rest.drop_front(i + 1);
  return true;
}

bool Lexer::takeToken() {
  char c = rest[0];
  if (c == '"' || c == '\'')
    return takeString();
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (llvm::isDigit(c) ||
      (c == '.' && rest.size() > 1 && llvm::isDigit(rest[1]))) {
    size_t end = 1;
    while (end < rest.size() && (isWord(rest[end]) || rest[end] == '.' ||
                                 ((rest[end] == '-' || rest[end] == '+') &&
                                  llvm::toLower(rest[end - 1]) == 'e')))
      ++end;
    add(Kind::number, rest.take_front(end));
    rest = rest.drop_front(end);
    return true;
  }
  if (isWord(c)) {
    StringRef word = rest.take_while(isWord);
    add(Kind::name, word);
    rest = rest.drop_front(word.size());
    return true;
  }
  bool isPair = llvm::is_contained({"->", "==", "!=", "<=", ">=", "//", "**"},
                                   rest.take_front(2));
  size_t length = isPair ? 2 : 1;
  if (!isPair && !StringRef("()[]{}.,:=-+*/%@<>").contains(c))
    return fail("a character that TorchScript does not have");
  if (StringRef("([{").contains(c))
    ++depth;
  else if (StringRef(")]}").contains(c))
    --depth;
  add(Kind::sign, rest.take_front(length));
  rest = rest.drop_front(length);
  return true;
}

bool Lexer::run(std::string &error) {
  bool isWhole = startLine();
  while (isWhole && !rest.empty()) {
    char c = rest[0];
    if (c == '\n') {
      rest = rest.drop_front();
      bool isEnd = depth <= 0 && !tokens.empty() &&
                   tokens.back().kind != Kind::newline &&
                   tokens.back().kind != Kind::dedent &&
                   tokens.back().kind != Kind::indent;
      if (isEnd)
        add(Kind::newline, "");
      ++line;
      if (depth <= 0)
        isWhole = startLine();
    } else if (c == ' ') {
      rest = rest.drop_front();
    } else if (c == '#') {
      rest = rest.drop_while([](char c) { return c != '\n'; });
    } else {
      isWhole = takeToken();
    }
  }
  error = reason;
  if (!tokens.empty() && tokens.back().kind != Kind::newline)
    add(Kind::newline, "");
  for (size_t i = 1; i < indents.size(); ++i)
    add(Kind::dedent, "");
  add(Kind::end, "");
  return isWhole;
}

bool splitTokens(StringRef text, std::vector<Token> &tokens,
                 std::string &error) {
  return Lexer(text, tokens).run(error);
}

} // namespace tcc::torchscript

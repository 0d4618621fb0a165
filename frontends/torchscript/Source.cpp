#include "frontends/torchscript/Source.h"

#include "frontends/torchscript/Lexer.h"

namespace tcc::torchscript {

using llvm::StringRef;
using Kind = Node::Kind;
using NodePtr = std::unique_ptr<Node>;

namespace {

/// Recursive descent; a null node is a failure, and runs through: but for the
/// ends of a slice.
class Parser {
public:
  explicit Parser(const std::vector<Token> &tokens) : tokens(tokens) {}

  NodePtr parseFile();
  NodePtr parseResult(llvm::ArrayRef<std::string> parameters);
  const std::string &getError() const { return error; }

private:
  static constexpr int kMaxDepth = 200;

  const Token &peek() const { return tokens[position]; }
  bool at(StringRef text) const {
    return peek().kind != Token::Kind::string && peek().text == text;
  }
  bool atKind(Token::Kind kind) const { return peek().kind == kind; }
  void advance() {
    if (position + 1 < tokens.size())
      ++position;
  }
  bool consume(StringRef text);
  bool expect(StringRef text);
  bool expectKind(Token::Kind kind, const char *what);
  std::optional<std::string> takeName();
  NodePtr make(Kind kind, std::string text = "");
  NodePtr fail(const llvm::Twine &what);
  bool add(Node &parent, NodePtr child);

  NodePtr parseBlock();
  NodePtr parseStatement();
  NodePtr parseSimple();
  NodePtr parseDefinition();
  NodePtr parseFunction();
  NodePtr parseIf();
  NodePtr parseFor();
  NodePtr parseWith();
  bool parseParameters(Node &function);
  NodePtr parseExpressions(StringRef end);
  NodePtr parseExpression() { return parseOperations(0); }
  NodePtr parseOperations(size_t level);
  NodePtr parseUnary();
  NodePtr parseChain();
  NodePtr parseAtom();
  NodePtr parseSubscript(NodePtr object);
  NodePtr parseIndex();
  NodePtr parseCall(NodePtr callee);
  NodePtr parseSequence(Kind kind, StringRef end);
  NodePtr parseDictionary();

  const std::vector<Token> &tokens;
  size_t position = 0;
  int depth = 0;
  std::string error;
};

} // namespace

NodePtr Parser::make(Kind kind, std::string text) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->text = std::move(text);
  node->line = peek().line;
  return node;
}

NodePtr Parser::fail(const llvm::Twine &what) {
  if (error.empty())
    error = ("line " + llvm::Twine(peek().line) + ": " + what + ", found '" +
             peek().text + "'")
                .str();
  return nullptr;
}

bool Parser::add(Node &parent, NodePtr child) {
  if (child)
    parent.children.push_back(std::move(child));
  return error.empty();
}

bool Parser::consume(StringRef text) {
  bool isThere = at(text);
  if (isThere)
    advance();
  return isThere;
}

bool Parser::expect(StringRef text) {
  return consume(text) || fail("'" + text + "' is expected") != nullptr;
}

bool Parser::expectKind(Token::Kind kind, const char *what) {
  if (!atKind(kind))
    return fail(llvm::Twine(what) + " is expected") != nullptr;
  advance();
  return true;
}

std::optional<std::string> Parser::takeName() {
  std::string name = peek().text;
  if (!expectKind(Token::Kind::name, "a name"))
    return std::nullopt;
  return name;
}

// --- Expressions -------------------------------------------------------------

NodePtr Parser::parseSequence(Kind kind, StringRef end) {
  auto node = make(kind);
  advance(); // the bracket
  while (error.empty() && !at(end)) {
    if (!add(*node, parseExpression()))
      return nullptr;
    if (!consume(","))
      break;
    // A comma makes a tuple.
    node->text = ",";
  }
  if (!expect(end))
    return nullptr;
  bool isParenthesis =
      kind == Kind::tuple && node->size() == 1 && node->text.empty();
  return isParenthesis ? std::move(node->children[0]) : std::move(node);
}

NodePtr Parser::parseDictionary() {
  auto node = make(Kind::dictionary);
  advance();
  while (error.empty() && !at("}")) {
    if (!add(*node, parseExpression()) || !expect(":") ||
        !add(*node, parseExpression()))
      return nullptr;
    if (!consume(","))
      break;
  }
  return expect("}") ? std::move(node) : nullptr;
}

NodePtr Parser::parseAtom() {
  if (at("("))
    return parseSequence(Kind::tuple, ")");
  if (at("["))
    return parseSequence(Kind::list, "]");
  if (at("{"))
    return parseDictionary();
  Kind kind;
  if (atKind(Token::Kind::name))
    kind = Kind::name;
  else if (atKind(Token::Kind::number))
    kind = Kind::number;
  else if (atKind(Token::Kind::string))
    kind = Kind::string;
  else
    return fail("an expression is expected");
  auto node = make(kind, peek().text);
  advance();
  // Strings beside each other are one.
  while (kind == Kind::string && atKind(Token::Kind::string)) {
    node->text += peek().text;
    advance();
  }
  return node;
}

NodePtr Parser::parseCall(NodePtr callee) {
  auto node = make(Kind::call);
  advance();
  node->children.push_back(std::move(callee));
  while (error.empty() && !at(")")) {
    bool isKeyword = atKind(Token::Kind::name) &&
                     position + 1 < tokens.size() &&
                     tokens[position + 1].text == "=" &&
                     tokens[position + 1].kind == Token::Kind::sign;
    NodePtr argument;
    if (isKeyword) {
      argument = make(Kind::keyword, peek().text);
      advance();
      advance();
      if (!add(*argument, parseExpression()))
        return nullptr;
    } else {
      argument = parseExpression();
    }
    if (!add(*node, std::move(argument)))
      return nullptr;
    if (!consume(","))
      break;
  }
  return expect(")") ? std::move(node) : nullptr;
}

/// x[i], x[i:j] or x[i, j:k].
NodePtr Parser::parseSubscript(NodePtr object) {
  auto node = make(Kind::subscript);
  node->children.push_back(std::move(object));
  auto indices = make(Kind::tuple);
  advance();
  while (error.empty() && !at("]")) {
    if (!add(*indices, parseIndex()))
      return nullptr;
    if (!consume(","))
      break;
  }
  if (!expect("]"))
    return nullptr;
  bool isOne = indices->size() == 1;
  node->children.push_back(isOne ? std::move(indices->children[0])
                                 : std::move(indices));
  return node;
}

NodePtr Parser::parseIndex() {
  NodePtr start, end;
  if (!at(":") && !(start = parseExpression()))
    return nullptr;
  if (!at(":"))
    return start;
  auto node = make(Kind::slice);
  advance();
  if (!at(",") && !at("]") && !(end = parseExpression()))
    return nullptr;
  node->children.push_back(std::move(start));
  node->children.push_back(std::move(end));
  return node;
}

/// An atom and what follows it: attributes, calls, subscripts.
NodePtr Parser::parseChain() {
  NodePtr node = parseAtom();
  // Each link of a chain is a level of the tree.
  int links = 0;
  for (; node && error.empty(); ++links, ++depth) {
    if (depth >= kMaxDepth) {
      node = fail("the code is nested too deeply");
    } else if (consume(".")) {
      auto name = takeName();
      auto outer = make(Kind::attribute, name.value_or(""));
      outer->children.push_back(std::move(node));
      node = name ? std::move(outer) : nullptr;
    } else if (at("(")) {
      node = parseCall(std::move(node));
    } else if (at("[")) {
      node = parseSubscript(std::move(node));
    } else {
      break;
    }
  }
  depth -= links;
  return node;
}

/// -x, or x ** y, which binds closer to x than a minus does.
NodePtr Parser::parseUnary() {
  if (depth >= kMaxDepth)
    return fail("the code is nested too deeply");
  ++depth;
  NodePtr node;
  if (at("-")) {
    node = make(Kind::minus);
    advance();
    if (!add(*node, parseUnary()))
      node = nullptr;
  } else if ((node = parseChain()) && at("**")) {
    auto power = make(Kind::operation, "pow");
    advance();
    power->children.push_back(std::move(node));
    node = add(*power, parseUnary()) ? std::move(power) : nullptr;
  }
  --depth;
  return node;
}

namespace {
/// An operator of two operands, and the name of torch's function of them.
struct Operation {
  llvm::StringLiteral sign, function;
  size_t level; // higher ones bind closer
};
} // namespace

static constexpr size_t kLevels = 3;
static constexpr Operation kOperations[] = {
    {"==", "eq", 0},       {"!=", "ne", 0},     {"<", "lt", 0},
    {"<=", "le", 0},       {">", "gt", 0},      {">=", "ge", 0},
    {"+", "add", 1},       {"-", "sub", 1},     {"*", "mul", 2},
    {"//", "floordiv", 2}, {"/", "div", 2},     {"%", "remainder", 2},
    {"@", "matmul", 2},    {"is", "__is__", 0},
};

NodePtr Parser::parseOperations(size_t level) {
  if (level == kLevels)
    return parseUnary();
  NodePtr node = parseOperations(level + 1);
  int links = 0;
  for (; node && error.empty(); ++links, ++depth) {
    auto found = llvm::find_if(kOperations, [&](const Operation &operation) {
      return operation.level == level && at(operation.sign);
    });
    if (found == std::end(kOperations))
      break;
    if (depth >= kMaxDepth) {
      node = fail("the code is nested too deeply");
      break;
    }
    auto outer = make(Kind::operation, found->function.str());
    advance();
    if (found->sign == "is" && consume("not"))
      outer->text = "__isnot__";
    outer->children.push_back(std::move(node));
    node = add(*outer, parseOperations(level + 1)) ? std::move(outer) : nullptr;
  }
  depth -= links;
  return node;
}

/// One expression, or several with commas between as a tuple.
NodePtr Parser::parseExpressions(StringRef end) {
  NodePtr first = parseExpression();
  if (!first || !at(","))
    return first;
  auto tuple = make(Kind::tuple);
  tuple->children.push_back(std::move(first));
  while (consume(",")) {
    if (at(end) || atKind(Token::Kind::newline))
      break;
    if (!add(*tuple, parseExpression()))
      return nullptr;
  }
  return tuple;
}

// --- Statements --------------------------------------------------------------

NodePtr Parser::parseBlock() {
  auto block = make(Kind::block);
  if (!expect(":"))
    return nullptr;
  // `class A(Module): pass` and the like stay on one line nowhere.
  if (!expectKind(Token::Kind::newline, "a new line"))
    return nullptr;
  if (!atKind(Token::Kind::indent))
    return block; // a function without statements
  advance();
  if (depth >= kMaxDepth)
    return fail("the code is nested too deeply");
  ++depth;
  while (error.empty() && !atKind(Token::Kind::dedent) &&
         !atKind(Token::Kind::end))
    if (!add(*block, parseStatement()))
      return nullptr;
  --depth;
  if (atKind(Token::Kind::dedent))
    advance();
  return block;
}

bool Parser::parseParameters(Node &function) {
  if (!expect("("))
    return false;
  while (error.empty() && !at(")")) {
    auto name = takeName();
    if (!name)
      return false;
    auto parameter = make(Kind::parameter, *name);
    if (consume(":")) {
      if (!add(*parameter, parseExpression()))
        return false;
    } else if (!add(*parameter, make(Kind::name, "self"))) {
      return false;
    }
    if (consume("=") && !add(*parameter, parseExpression()))
      return false;
    function.children.push_back(std::move(parameter));
    if (!consume(","))
      break;
  }
  return expect(")");
}

NodePtr Parser::parseFunction() {
  advance();
  auto name = takeName();
  auto node = make(Kind::function, name.value_or(""));
  if (!name || !parseParameters(*node))
    return nullptr;
  if (consume("->") && !parseExpression())
    return nullptr;
  return add(*node, parseBlock()) ? std::move(node) : nullptr;
}

NodePtr Parser::parseDefinition() {
  advance();
  auto name = takeName();
  auto node = make(Kind::definition, name.value_or(""));
  auto bases = make(Kind::tuple);
  if (!name)
    return nullptr;
  if (at("("))
    bases = parseSequence(Kind::tuple, ")");
  if (!bases)
    return nullptr;
  if (bases->kind != Kind::tuple) {
    auto tuple = make(Kind::tuple);
    tuple->children.push_back(std::move(bases));
    bases = std::move(tuple);
  }
  node->children.push_back(std::move(bases));
  return add(*node, parseBlock()) ? std::move(node) : nullptr;
}

NodePtr Parser::parseIf() {
  auto node = make(Kind::branch);
  advance();
  if (!add(*node, parseExpression()) || !add(*node, parseBlock()))
    return nullptr;
  auto other = make(Kind::block);
  if (at("elif")) {
    if (depth >= kMaxDepth)
      return fail("the code is nested too deeply");
    ++depth;
    bool isWhole = add(*other, parseIf());
    --depth;
    if (!isWhole)
      return nullptr;
  } else if (consume("else")) {
    other = parseBlock();
  }
  return add(*node, std::move(other)) ? std::move(node) : nullptr;
}

NodePtr Parser::parseFor() {
  auto node = make(Kind::loop);
  advance();
  if (!add(*node, parseExpression()) || !expect("in") ||
      !add(*node, parseExpression()) || !add(*node, parseBlock()))
    return nullptr;
  return node;
}

/// with torch.no_grad() as x: what it does to gradients does not matter here.
NodePtr Parser::parseWith() {
  auto node = make(Kind::scope);
  advance();
  if (!add(*node, parseExpression()))
    return nullptr;
  if (consume("as") && !takeName())
    return nullptr;
  return add(*node, parseBlock()) ? std::move(node) : nullptr;
}

NodePtr Parser::parseSimple() {
  NodePtr node;
  if (consume("pass")) {
    node = make(Kind::pass);
  } else if (at("return")) {
    node = make(Kind::result);
    advance();
    if (!atKind(Token::Kind::newline) && !add(*node, parseExpressions("")))
      return nullptr;
  } else {
    NodePtr first = parseExpressions("=");
    if (!first)
      return nullptr;
    if (consume(":")) {
      node = make(Kind::declare);
      node->children.push_back(std::move(first));
      if (!add(*node, parseExpression()) ||
          (consume("=") && !add(*node, parseExpressions(""))))
        return nullptr;
    } else if (at("=")) {
      node = make(Kind::assign);
      node->children.push_back(std::move(first));
      while (consume("="))
        if (!add(*node, parseExpressions("=")))
          return nullptr;
    } else {
      node = make(Kind::expression);
      node->children.push_back(std::move(first));
    }
  }
  bool hasEnd = atKind(Token::Kind::end) ||
                expectKind(Token::Kind::newline, "a new line");
  return hasEnd ? std::move(node) : nullptr;
}

NodePtr Parser::parseStatement() {
  if (at("class"))
    return parseDefinition();
  if (at("def"))
    return parseFunction();
  if (at("if"))
    return parseIf();
  if (at("for"))
    return parseFor();
  if (at("with"))
    return parseWith();
  if (!at("while"))
    return parseSimple();
  auto node = make(Kind::repeat);
  advance();
  if (!add(*node, parseExpression()) || !add(*node, parseBlock()))
    return nullptr;
  return node;
}

NodePtr Parser::parseFile() {
  auto file = make(Kind::block);
  while (error.empty() && !atKind(Token::Kind::end))
    if (!add(*file, parseStatement()))
      return nullptr;
  return error.empty() ? std::move(file) : nullptr;
}

NodePtr Parser::parseResult(llvm::ArrayRef<std::string> parameters) {
  auto function = make(Kind::function);
  for (const std::string &name : parameters) {
    auto parameter = make(Kind::parameter, name);
    parameter->children.push_back(make(Kind::name, "self"));
    function->children.push_back(std::move(parameter));
  }
  auto block = make(Kind::block);
  auto result = make(Kind::result);
  if (!add(*result, parseExpressions("")))
    return nullptr;
  block->children.push_back(std::move(result));
  function->children.push_back(std::move(block));
  if (atKind(Token::Kind::newline))
    advance();
  if (!atKind(Token::Kind::end))
    return fail("the end is expected");
  return function;
}

NodePtr parseExpression(StringRef text, llvm::ArrayRef<std::string> parameters,
                        std::string &error) {
  std::vector<Token> tokens;
  if (!splitTokens(text, tokens, error))
    return nullptr;
  Parser parser(tokens);
  NodePtr function = parser.parseResult(parameters);
  error = parser.getError();
  return function;
}

NodePtr parseSource(StringRef text, std::string &error) {
  std::vector<Token> tokens;
  if (!splitTokens(text, tokens, error))
    return nullptr;
  Parser parser(tokens);
  NodePtr file = parser.parseFile();
  error = parser.getError();
  return file;
}

} // namespace tcc::torchscript

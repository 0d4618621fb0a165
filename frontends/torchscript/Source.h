//===- Source.h - The code in a TorchScript archive -------------*- C++ -*-===//
//
// PyTorch prints modules as a small part of Python: assignments, calls, if,
// for over a range, while, with, return. It writes calls for operators but a
// minus, and for slices; authors of operators (tcc/op.h) write those, too.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_SOURCE_H
#define TCC_FRONTENDS_TORCHSCRIPT_SOURCE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tcc::torchscript {

/// A statement or an expression; what the children are stands beside the kind.
struct Node {
  enum class Kind {
    // Expressions.
    name,      // text
    number,    // text
    string,    // text, unescaped
    attribute, // of child 0, text
    call,      // child 0 of the others; keyword children are named
    keyword,   // text = child 0
    subscript, // child 0 at child 1
    list,
    tuple,
    dictionary, // key, value, key, value...
    minus,      // child 0
    operation,  // text, the name of torch's function, of children 0 and 1
    slice,      // in a subscript: from child 0 to child 1, either may be null
    // Statements.
    assign,     // the last child to all others
    declare,    // name child 0 of type child 1, and its value, if there is one
    expression, // child 0
    branch,     // if child 0, block child 1, block child 2
    loop,       // for child 0 in child 1: block child 2
    repeat,     // while child 0: block child 1
    scope,      // with: block, the last child
    result,     // return child 0, if there is one
    pass,
    block,
    function,  // text; parameters, then the block
    parameter, // text; the type, and the default if there is one
    definition // class text; its bases are children of child 0, block child 1
  };

  Kind kind;
  std::string text;
  int line = 0;
  std::vector<std::unique_ptr<Node>> children;

  const Node &operator[](size_t i) const { return *children[i]; }
  size_t size() const { return children.size(); }
};

/// The functions and classes of a file; null and "line N: reason" if it cannot
/// be parsed.
std::unique_ptr<Node> parseSource(llvm::StringRef text, std::string &error);
/// A function of `parameters` that returns the expression `text`, or a tuple of
/// several with commas between.
std::unique_ptr<Node> parseExpression(llvm::StringRef text,
                                      llvm::ArrayRef<std::string> parameters,
                                      std::string &error);

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_SOURCE_H

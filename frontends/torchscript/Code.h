//===- Code.h - Classes and functions of an archive -------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_CODE_H
#define TCC_FRONTENDS_TORCHSCRIPT_CODE_H

#include "frontends/Archive.h"
#include "frontends/torchscript/Source.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::torchscript {

/// The code of an archive: code/__torch__/nets.py defines __torch__.nets.Net.
/// Or functions that an operator's author wrote.
class Code {
public:
  /// False and the reason if a file cannot be parsed.
  bool read(const Archive &archive, std::string &error);
  /// Adds functions in `text`, of which messages speak as `file`; they are
  /// found under their names. False and the reason if it cannot be parsed.
  bool add(llvm::StringRef text, const std::string &file, std::string &error);

  /// A class or function; null if there is none of this name.
  const Node *find(llvm::StringRef name) const;
  /// A function of a class; null if it has none of this name.
  const Node *findMethod(llvm::StringRef className, llvm::StringRef name) const;
  /// The value of a constant of a class, such as in_features : Final[int] = 3.
  const Node *findConstant(llvm::StringRef className,
                           llvm::StringRef name) const;
  /// The strings of a list of a class, such as __parameters__.
  std::vector<std::string> getNames(llvm::StringRef className,
                                    llvm::StringRef list) const;
  /// FILE:LINE of a node of the function `function`.
  std::string getPlace(const Node &function, int line) const;

  /// A function of `parameters` that returns the expression `text`; null and
  /// the reason if it is none.
  const Node *addExpression(llvm::StringRef text,
                            llvm::ArrayRef<std::string> parameters,
                            const std::string &file, std::string &error);

private:
  void define(std::unique_ptr<Node> tree, const std::string &prefix,
              const std::string &file);

  std::vector<std::unique_ptr<Node>> files; // and expressions
  llvm::StringMap<const Node *> definitions;
  llvm::DenseMap<const Node *, std::string> fileOf;
};

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_CODE_H

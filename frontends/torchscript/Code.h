//===- Code.h - Classes and functions of an archive -------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_CODE_H
#define TCC_FRONTENDS_TORCHSCRIPT_CODE_H

#include "frontends/Archive.h"
#include "frontends/torchscript/Source.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::torchscript {

/// The code of an archive: code/__torch__/nets.py defines __torch__.nets.Net.
class Code {
public:
  /// False and the reason if a file cannot be parsed.
  bool read(const Archive &archive, std::string &error);

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

private:
  std::vector<std::unique_ptr<Node>> files;
  llvm::StringMap<const Node *> definitions;
  llvm::DenseMap<const Node *, std::string> fileOf;
};

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_CODE_H

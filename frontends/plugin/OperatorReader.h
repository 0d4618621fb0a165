//===- OperatorReader.h - One operator's description ------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PLUGIN_OPERATORREADER_H
#define TCC_FRONTENDS_PLUGIN_OPERATORREADER_H

#include "frontends/plugin/Operator.h"

namespace tcc::plugin {

/// Reads one operator of the library `path`; what is wrong goes to the
/// problems.
class OperatorReader {
public:
  OperatorReader(const std::string &path, size_t number, Problems &problems)
      : path(path), subject("operator " + std::to_string(number)),
        problems(problems) {}

  /// Null if anything is wrong.
  std::unique_ptr<Operator> read(const tcc_op_v1 &given);
  void report(const llvm::Twine &message);

private:
  std::optional<llvm::StringRef> readText(const char *text,
                                          llvm::StringRef field);
  std::string readName(const char *text, llvm::StringRef field);
  void readExpressions(const char *text, llvm::StringRef field, Operator &op,
                       std::vector<Expression> &expressions);
  /// Exactly one, or `fallback` for a null text.
  void readExpression(const char *text, llvm::StringRef field,
                      const char *fallback, Operator &op,
                      std::vector<Expression> &expressions);
  const torchscript::Node *readFunction(const char *text, llvm::StringRef field,
                                        size_t parameterCount, Operator &op);
  void readTypes(const char *text, const Operator &op, Kernel &kernel);
  void checkForms(const Kernel &kernel);
  void readBlock(const tcc_op_kernel_v1 &given, Kernel &kernel);
  void readKernel(const tcc_op_kernel_v1 &given, Operator &op);
  void readCode(const tcc_op_code_v1 &given, Kernel &kernel);
  bool readSignature(const tcc_op_v1 &given, Operator &op);

  const std::string &path;
  std::string subject;
  Problems &problems;
  bool isValid = true;
};

} // namespace tcc::plugin

#endif // TCC_FRONTENDS_PLUGIN_OPERATORREADER_H

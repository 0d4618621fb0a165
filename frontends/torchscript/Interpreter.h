//===- Interpreter.h - Runs TorchScript code at import ----------*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_INTERPRETER_H
#define TCC_FRONTENDS_TORCHSCRIPT_INTERPRETER_H

#include "frontends/aten/Numbers.h"
#include "frontends/plugin/Operator.h"
#include "frontends/torchscript/Code.h"
#include "frontends/torchscript/Values.h"

namespace tcc::torchscript {

/// Runs functions on values of which tensors are values of the module under
/// construction: calls are inlined, what does not depend on data is computed,
/// and what is left are the calls of the tracer.
class Interpreter {
public:
  using Item = aten::Item;

  Interpreter(const Code &code, aten::Tracer &tracer, Problems &problems,
              std::vector<Item> constants)
      : code(code), tracer(tracer), problems(problems),
        constants(std::move(constants)) {}

  /// The result of a method; nullopt after reporting.
  std::optional<Item> callMethod(const Item &self, const Node &function,
                                 llvm::ArrayRef<Item> arguments);
  /// The result of a function for the node `site`; nullopt after reporting.
  std::optional<Item> call(const Node &function, llvm::ArrayRef<Item> arguments,
                           std::string site);
  /// An expression that is a default: it reads no names.
  std::optional<Item> evaluateDefault(const Node &expression);
  /// Attributes that the code assigned, in their order.
  using Attribute = std::pair<std::shared_ptr<Instance>, std::string>;
  llvm::ArrayRef<Attribute> getAssigned() const { return assigned; }

private:
  enum class Flow { next, result, failure };

  /// A function that runs.
  struct Frame {
    const Node *function;
    llvm::StringMap<Item> names;
    Item result;
    std::string site; // the path of the module
  };
  /// Arguments of a call, evaluated.
  struct Arguments {
    llvm::SmallVector<Item, 8> positional;
    llvm::SmallVector<std::pair<std::string, Item>, 4> named;
  };

  std::optional<Item> fail(ProblemClass kind, const llvm::Twine &message);
  std::optional<Item> unsupported(const llvm::Twine &what);
  std::optional<Item> malformed(const llvm::Twine &what);

  // Statements.
  Flow runBlock(const Node &block);
  Flow run(const Node &statement);
  Flow runIf(const Node &statement);
  Flow branchAtRunTime(const Node &statement, aten::Variable &condition);
  Flow runFor(const Node &statement);
  Flow runWhile(const Node &statement);
  Flow loopAtRunTime(const Node &statement);
  bool assign(const Node &target, const Item &value);

  // Expressions.
  std::optional<Item> evaluate(const Node &expression);
  std::optional<Item> evaluateAll(const Node &expression, Item::Kind kind);
  std::optional<Item> evaluateNumber(const Node &expression);
  std::optional<Item> evaluateName(const Node &expression);
  std::optional<Item> evaluateSubscript(const Node &expression);
  std::optional<Item> takeIndex(const Item &object, const Node &index,
                                int64_t &axis);
  std::optional<Item> evaluateOperation(const Node &expression,
                                        llvm::StringRef function);
  std::optional<Item> evaluateCall(const Node &expression);
  std::optional<Item> getAttribute(const Item &object, const std::string &name);
  std::optional<Item> getTensorAttribute(const Item &tensor,
                                         llvm::StringRef name);
  bool evaluateArguments(const Node &call, Arguments &arguments);

  // Calls.
  std::optional<Item> callFunction(const Node &function,
                                   const Arguments &arguments,
                                   std::string site);
  std::optional<Item> callSpecial(const Node &call, llvm::StringRef name);
  std::optional<Item> convert(llvm::StringRef type, const Item &item);
  std::optional<Item> callPath(llvm::StringRef name, Arguments &arguments);
  const plugin::Operator *findCustom(llvm::StringRef path) const;
  std::optional<Item> construct(llvm::StringRef name, const Node &definition,
                                const Arguments &arguments);
  std::optional<Item> callPrim(llvm::StringRef name, Arguments &arguments);
  std::optional<Item> callTorch(llvm::StringRef name, Arguments &arguments);
  /// Functions of lists, dictionaries, strings and sizes; `isKnown` is false
  /// where it is a function of tensors.
  std::optional<Item> callBuiltin(llvm::StringRef name, Arguments &arguments,
                                  bool &isKnown);
  std::optional<Item> callList(llvm::StringRef name, Arguments &arguments,
                               bool &isKnown);
  std::optional<Item> changeList(llvm::StringRef name, Arguments &arguments,
                                 bool &isKnown);
  std::optional<Item> callDictionary(llvm::StringRef name,
                                     Dictionary &dictionary,
                                     Arguments &arguments, bool &isKnown);
  std::optional<Item> callShape(llvm::StringRef name, Arguments &arguments,
                                bool &isKnown);
  std::optional<Item> callRange(llvm::StringRef name,
                                llvm::ArrayRef<Item> items);
  std::optional<Item> makeTensor(const Arguments &arguments);
  aten::Request makeRequest(llvm::StringRef name);
  Item ofInteger(int64_t value);
  Item ofBoolean(bool value);

  static constexpr int kMaxDepth = 128;
  /// Statements, and what an operator of the program is worth.
  static constexpr int64_t kMaxSteps = 1 << 22, kOperatorSteps = 16;

  const Code &code;
  aten::Tracer &tracer;
  Problems &problems;
  std::vector<Item> constants;
  std::vector<Attribute> assigned;
  Frame *frame = nullptr;
  int line = 0, depth = 0;
  int64_t steps = 0;
  /// Writes to lists, dictionaries and attributes: a branch at run time may not
  /// make any.
  int64_t mutations = 0;
  std::map<std::string, int> counts;
};

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_INTERPRETER_H

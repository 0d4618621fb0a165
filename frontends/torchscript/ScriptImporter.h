//===- ScriptImporter.h - One import of a TorchScript model -----*- C++ -*-===//
#ifndef TCC_FRONTENDS_TORCHSCRIPT_SCRIPTIMPORTER_H
#define TCC_FRONTENDS_TORCHSCRIPT_SCRIPTIMPORTER_H

#include "frontends/MainFunction.h"
#include "frontends/torchscript/Interpreter.h"
#include "frontends/torchscript/Pickle.h"
#include <set>

namespace tcc::torchscript {

/// What an attribute holds between calls of forward.
struct Kept {
  mlir::RankedTensorType type; // of a state
  aten::Item item;             // of one that is no tensor
  bool operator==(const Kept &other) const {
    return type == other.type && (type || isSame(item, other.item));
  }
};
/// By the attribute's path.
using Attributes = std::map<std::string, Kept>;

/// What one import finds out and the next one begins with.
struct Findings {
  Attributes attributes;
  /// Inputs that nothing gives a type and that index something.
  std::set<std::string> indices;
};

class ScriptImporter {
public:
  ScriptImporter(const Archive &archive, const ImportOptions &options,
                 const plugin::Operators &operators, mlir::MLIRContext *context,
                 Problems &problems, const Findings &before)
      : archive(archive), options(options), problems(problems), before(before),
        builder(context), sizes(context, options.bounds),
        tracer(builder, sizes, model.weights, problems, options.trains) {
    tracer.setOperators(&operators);
  }

  mlir::FailureOr<Model> run();
  /// What is known now, if it is not what this import began with.
  const std::optional<Findings> &getChanged() const { return changed; }
  /// Whether some state is not zero in the archive, as a package's are at
  /// first.
  bool startsOtherwise() const { return isOtherwise; }

private:
  using Item = aten::Item;

  bool readArchive();
  bool checkFormat();
  std::optional<Item> unpickle(const std::string &folder, bool readsWeights);
  void readExamples();
  void namePlaces(const Item &item, const std::string &path, int depth);
  void nameTensor(const Item &item, const Instance &owner,
                  const std::string &name, const std::string &path);
  void declareTensor(const std::string &name, mlir::RankedTensorType traced,
                     Signature &signature);
  void declareInputs(const Node &forward, Signature &signature);
  std::optional<Item> readFixed(const Node &parameter);
  void replaceStates(llvm::ArrayRef<ModelInput> inputs);
  Item *findAttribute(llvm::StringRef path);
  bool addOutputs(const Item &result, const std::string &name);
  bool addOutput(const Item &item, const std::string &name);
  std::vector<Item> makeArguments(const Node &forward,
                                  llvm::ArrayRef<ModelInput> inputs,
                                  Interpreter &interpreter);
  Attributes finishStates(const Interpreter &interpreter);
  void compareFindings(llvm::ArrayRef<ModelInput> inputs, Attributes left);
  bool isZero(const Item &item, mlir::RankedTensorType type);
  void fail(ProblemClass kind, const llvm::Twine &message);

  const Archive &archive;
  const ImportOptions &options;
  Problems &problems;
  const Findings &before;
  mlir::OpBuilder builder;
  Sizes sizes;
  Model model;
  aten::Tracer tracer;
  Code code;
  Item root;
  std::vector<Item> constants;
  std::optional<MainFunction> main;
  /// Types of the inputs that a traced model was traced with.
  std::vector<mlir::RankedTensorType> examples;
  /// Inputs of which nothing says the element type.
  std::set<std::string> untyped;
  std::vector<std::string> outputNames;
  llvm::SmallVector<mlir::Value> outputs;
  std::vector<StatePair> states;
  std::vector<Alias> aliases;
  /// Attributes that are tensors, as the archive has them.
  std::map<std::string, Item> initial;
  std::optional<Findings> changed;
  bool isOtherwise = false;
};

} // namespace tcc::torchscript

#endif // TCC_FRONTENDS_TORCHSCRIPT_SCRIPTIMPORTER_H

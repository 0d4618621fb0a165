//===- Tracer.h - Runs calls of operators -----------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATEN_TRACER_H
#define TCC_FRONTENDS_ATEN_TRACER_H

#include "frontends/KnownValues.h"
#include "frontends/Problems.h"
#include "frontends/aten/Call.h"

namespace tcc::plugin {
class Operators;
}

namespace tcc::aten {

/// A call as a file has it: arguments by position, then by name.
struct Request {
  llvm::StringRef name; // "add", or "add_" in place
  llvm::SmallVector<Item, 8> positional;
  llvm::SmallVector<std::pair<llvm::StringRef, Item>, 4> named;
  /// For messages: the node, and where its author wrote it.
  std::string node, place;
  /// The path of the module that it is of.
  std::string site;
};

/// Imports calls into the function under construction; owns the variables.
class Tracer {
public:
  Tracer(mlir::OpBuilder &builder, Sizes &sizes, WeightStore &weights,
         Problems &problems, bool isTraining)
      : builder(builder), sizes(sizes), weights(weights), problems(problems),
        isTraining(isTraining), known(weights) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  Sizes &getSizes() { return sizes; }
  Problems &getProblems() { return problems; }
  bool trains() const { return isTraining; }
  /// Operators that plugins define, which outlive the tracer.
  void setOperators(const plugin::Operators *custom) { operators = custom; }
  const plugin::Operators *getOperators() const { return operators; }
  int64_t numberRandom() { return randomCount++; }
  /// The module that the current call is of.
  const std::string &getSite() const { return site; }
  /// Stored tensors become values at the start of `block`.
  void setEntry(mlir::Block *block) { entry = block; }

  Variable *makeVariable(mlir::Value value);
  /// Inputs whose element types the file does not say: they are floats, unless
  /// they turn out to be indices.
  void addUntyped(mlir::Value input) { untyped.insert(input); }
  /// Notes that `value` is used as indices; false if it is not such an input.
  bool noteIndices(mlir::Value value);
  bool isIndices(mlir::Value input) const { return indices.contains(input); }
  Variable *makeStored(Weight weight);
  /// To be called before ops are erased.
  void forgetEvaluated() { known.forget(); }
  /// A tensor of rank 0 that holds a number.
  Variable *makeNumber(Item number);

  /// The variable's value now; null after failing the emitter.
  mlir::Value materialize(Emitter &emitter, Variable &variable);
  /// The type without making a value.
  mlir::RankedTensorType getType(Variable &variable);
  /// The elements of a tensor that depends on no input; null if it does.
  const HostTensor *getElements(Variable &variable);
  /// The number that a tensor of one element is known to hold.
  std::optional<Item> getNumber(Variable &variable);

  /// An if at run time: `body` runs the code of one branch and gives a list of
  /// what it computes. Tensors that a branch writes to are results too. None
  /// stands for results of the branches that are not of one type.
  std::optional<Item>
  branch(const Request &request, Variable &condition,
         llvm::function_ref<std::optional<Item>(bool isThen)> body);

  /// A loop at run time while `condition`, on `carried`; `body` gives the next
  /// condition and values.
  std::optional<Item>
  loop(const Request &request, const Item &condition,
       llvm::ArrayRef<Item> carried,
       llvm::function_ref<std::optional<Item>(llvm::ArrayRef<Item>)> body);

  /// While one lives, all that calls make is of the node `request`: they are of
  /// the body of its operator.
  class Within {
  public:
    Within(Tracer &tracer, const Request &request);
    ~Within();
    Within(const Within &) = delete;
    /// Not nested too deeply.
    bool isAllowed() const { return tracer.bodyDepth <= kMaxBodies; }

  private:
    static constexpr int kMaxBodies = 16;
    Tracer &tracer;
    std::optional<mlir::Location> outer;
  };

  /// The arguments of a call in the schema's order; false and the reason if
  /// they do not fit.
  bool bind(const Schema &schema, const Request &request,
            llvm::SmallVectorImpl<Item> &arguments, std::string &refusal);

  /// The location of what a call makes.
  mlir::Location getLocation(const Request &request) const;

  /// Runs a call; nullopt after reporting why it cannot be imported.
  std::optional<Item> run(const Request &request);
  /// Reports a call that cannot be imported.
  void report(const Request &request, ProblemClass kind, std::string message);

private:
  const Overload *select(const Request &request,
                         llvm::ArrayRef<Overload> overloads,
                         llvm::SmallVectorImpl<Item> &arguments,
                         std::string &refusal);
  struct Branch;
  bool runBranch(const Request &request, Branch &branch,
                 llvm::function_ref<std::optional<Item>()> body);
  llvm::SmallVector<mlir::Value> yield(Emitter &emitter, Branch &branch,
                                       llvm::ArrayRef<Variable *> written);
  bool writeResult(Call &call, const Item &self);
  Item takeResults(const Call &call, llvm::ArrayRef<Item> arguments);
  mlir::Value makeStoredValue(Emitter &emitter, Weight weight);

  mlir::OpBuilder &builder;
  Sizes &sizes;
  WeightStore &weights;
  Problems &problems;
  bool isTraining;
  const plugin::Operators *operators = nullptr;
  /// The node whose operator's body runs.
  std::optional<mlir::Location> enclosing;
  int bodyDepth = 0;
  mlir::Block *entry = nullptr;
  mlir::Operation *lastStored = nullptr;
  KnownValues known;
  std::deque<Variable> variables;
  std::string site;
  int64_t randomCount = 0;
  llvm::DenseSet<mlir::Value> untyped, indices;
};

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_TRACER_H

//===- Variables.h - The state of a training program ------------*- C++ -*-===//
//
// Variables are what the entry points of a package share, updated in place:
// parameters, buffers, slots of the optimizer, accumulated gradients, the
// step's state and settings. The table declares them; each entry point is a
// function that reads and writes some of them.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_VARIABLES_H
#define TCC_COMPILER_TRAIN_VARIABLES_H

#include "dialects/graph/GraphOps.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <string>

namespace tcc::train {

using format::StepField;

/// Emits a variable's first value.
using Initial = std::function<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                          mlir::RankedTensorType)>;

struct Variable {
  std::string name;
  graph::VariableKind kind;
  mlir::RankedTensorType type;
  Initial initial;
  bool isZero = false;                 ///< all of it, at first
  std::string parameter = {};          ///< that a slot or gradient belongs to
  std::optional<StepField> field = {}; ///< of the step
  graph::SettingAttr setting = {};     ///< null if it is none
  std::optional<int64_t> bucket = {};  ///< that it lies in, with its neighbours
  std::optional<int64_t> room = {};    ///< bytes to the next one, if not least
  /// The tensors in it, if each rank has a part of it.
  llvm::SmallVector<graph::PieceAttr> pieces = {};
};

class VariableTable {
public:
  /// A name that is taken keeps its variable and is noted.
  void declare(Variable variable);
  /// All elements are `value` at first.
  void declare(std::string name, graph::VariableKind kind,
               mlir::RankedTensorType type, double value,
               std::string parameter = "");
  /// A scalar of the step.
  void declare(StepField field, mlir::Type elementType, double value);
  const Variable &get(llvm::StringRef name) const;
  /// Moves these variables behind all others, as one bucket, each with as many
  /// bytes as `rooms` says if it is not empty. No StepFunction is under
  /// construction.
  void moveToBucket(llvm::ArrayRef<std::string> names, int64_t bucket,
                    llvm::ArrayRef<int64_t> rooms = {});
  /// Some variable is declared before.
  mlir::MLIRContext *getContext() const {
    return variables.front().type.getContext();
  }
  llvm::ArrayRef<Variable> getAll() const { return variables; }
  /// As the module lists them.
  mlir::ArrayAttr describe() const;
  /// The names that were declared again.
  llvm::ArrayRef<std::string> getClashes() const { return clashes; }

private:
  std::vector<Variable> variables;
  std::vector<std::string> clashes;
  llvm::StringMap<size_t> places;
  llvm::StringSet<> pieces; ///< the names of all pieces
};

/// A constant with `type`, all elements equal.
Initial makeSplat(double value);

/// An entry point under construction: a function whose first arguments and
/// results are the caller's.
class StepFunction {
public:
  /// Adds the function of the entry point, without arguments and results, to
  /// `module`.
  StepFunction(mlir::ModuleOp module, format::EntryKind entry,
               const VariableTable &table, uint16_t variant = 0);

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() { return function.getLoc(); }
  mlir::Block &getBody() { return function.getBody().front(); }

  /// Inputs of the caller, in order, before any variable is read; outputs.
  mlir::Value addInput(mlir::RankedTensorType type,
                       mlir::DictionaryAttr attributes);
  void addOutput(llvm::StringRef name, mlir::Value value);
  void addOutput(format::Metric metric, mlir::Value value) {
    addOutput(format::nameOf(metric), value);
  }

  /// The variable's value: the one last written here, or that of the call.
  mlir::Value read(llvm::StringRef name);
  mlir::Value read(StepField field) { return read(format::variableOf(field)); }
  void write(llvm::StringRef name, mlir::Value value);
  void write(StepField field, mlir::Value value) {
    write(format::variableOf(field), value);
  }
  /// The variable's value of the call with the element type of `type`: the same
  /// one each time.
  mlir::Value readAs(llvm::StringRef name, mlir::RankedTensorType type);

  /// The variable whose value of the call `value` is, if it is one.
  std::optional<llvm::StringRef> findName(mlir::Value value) const;

  /// The ops that were emitted since the last call are of the phase.
  void endPhase(format::Phase phase);

  /// Ends the function: variables that were read become its last arguments,
  /// those that were written its last results.
  void finish();

private:
  struct Output {
    std::string name;
    mlir::Value value;
  };

  const VariableTable &table;
  mlir::func::FuncOp function;
  mlir::OpBuilder builder;
  mlir::Operation *phaseEnd = nullptr; ///< the last op that has a phase
  std::vector<Output> outputs;
  llvm::MapVector<llvm::StringRef, mlir::Value> arguments, results;
  llvm::StringMap<mlir::Value> casts;
};

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_VARIABLES_H

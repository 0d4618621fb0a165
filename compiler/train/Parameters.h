//===- Parameters.h - What of a model is trained ----------------*- C++ -*-===//
//
// The parameter table: the tensors of a model under the names that its author
// knows. An exporter may have stored the transpose of a parameter under a name
// of its own; the table has the parameter.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_PARAMETERS_H
#define TCC_COMPILER_TRAIN_PARAMETERS_H

#include "compiler/train/Recipe.h"
#include "frontends/WeightStore.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace tcc::train {

enum class Role { Parameter, Buffer, Constant };

struct Parameter {
  ParameterTraits traits;
  Role role = Role::Constant;
  /// Why it has this role.
  std::string reason;
  /// Names in the weight store: the first holds the value, others the same one.
  std::vector<std::string> weights;
  /// The type of these.
  mlir::RankedTensorType type;
  /// They hold the transpose of the parameter.
  bool isTransposed = false;
  bool isTrained = false;

  const std::string &getName() const { return traits.name; }
};

/// One line for the user.
std::string describe(const Parameter &row);

/// The tensors of floats that @main of `module` reads, in order of first use.
/// Tensors that share storage are one. What cannot be told, or cannot be
/// trained though the recipe says so, is added to `problems`.
std::vector<Parameter> buildParameterTable(mlir::ModuleOp module,
                                           const WeightStore &weights,
                                           const ParamsRecipe &recipe,
                                           Problems &problems);

/// GraphDialect::kStoredTensorsAttr: where the model's file has parameters and
/// buffers under other names than their own, or transposed.
mlir::ArrayAttr describeStoredTensors(llvm::ArrayRef<Parameter> table,
                                      mlir::Builder &builder);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_PARAMETERS_H

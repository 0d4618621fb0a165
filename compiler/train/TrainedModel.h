//===- TrainedModel.h - A model inside the steps ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_TRAINEDMODEL_H
#define TCC_COMPILER_TRAIN_TRAINEDMODEL_H

#include "compiler/train/BatchNorms.h"
#include "compiler/train/Loss.h"
#include "compiler/train/Parameters.h"
#include "compiler/train/Variables.h"

#include "mlir/IR/IRMapping.h"

namespace tcc::train {

/// A model in a function.
struct Forward {
  llvm::SmallVector<mlir::Value> results;
  LossOperands operands; ///< of its loss
  std::vector<StatisticUpdate> statistics;
};

/// The model that is trained, to be put into the functions of its program: its
/// parameters and buffers are variables there.
class TrainedModel {
public:
  /// All arguments outlive the model.
  TrainedModel(mlir::func::FuncOp main, const Recipe &recipe,
               llvm::ArrayRef<Parameter> table, Problems &problems);

  /// Finds what the loss is computed of; false after adding to the problems.
  bool check();
  /// What to note of the axis of classes, if an input of integers says that it
  /// may be another one; else nothing.
  std::string noteClassAxis();
  /// The type of the variable: the parameter's own layout, in the precision of
  /// the recipe.
  mlir::RankedTensorType getVariableType(const Parameter &parameter) const;
  /// The same, or a narrower one where the recipe wants no master.
  mlir::RankedTensorType getStoredType(const Parameter &parameter) const;

  /// The model's inputs and outputs become those of `step`.
  void emitPrediction(StepFunction &step);
  /// The model and what its loss is of, with the target and, where the recipe
  /// pads, the weights of the samples as further inputs. In training batch
  /// norms follow the batch, of all ranks if `hasRanks` and the recipe says so,
  /// and dropouts drop.
  Forward emit(StepFunction &step, bool isTraining, bool hasRanks = false);
  /// Erases the function that the model came in.
  void erase() { main.erase(); }

private:
  void checkBatch();
  bool findLogits();
  mlir::RankedTensorType getLogitsType(); ///< once they are found
  mlir::BlockArgument findInput(llvm::StringRef name);
  void checkTarget();
  void checkWeights();
  mlir::IRMapping addInputs(StepFunction &step);
  mlir::Value addTarget(StepFunction &step, const mlir::IRMapping &inputs);
  mlir::Value addWeights(StepFunction &step);
  void mapWeights(StepFunction &step, mlir::IRMapping &mapping);
  llvm::SmallVector<mlir::Value>
  cloneModel(StepFunction &step, mlir::IRMapping mapping, bool isTraining);
  bool isTrainedNorm(StepFunction &step, graph::BatchNormOp op);

  mlir::func::FuncOp main;
  const Recipe &recipe;
  Problems &problems;
  llvm::StringMap<const Parameter *> variables; ///< by names of weights
  unsigned logits = 0;                          ///< a result of main
  mlir::RankedTensorType target; ///< null: the model computes the loss
  int64_t classCount = 0;        ///< 0: targets are no classes
};

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_TRAINEDMODEL_H

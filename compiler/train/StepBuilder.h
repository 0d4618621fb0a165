//===- StepBuilder.h - The entry points of training, in parts ---*- C++ -*-===//
//
// BuildSteps.cpp has the steps of a process alone, RankSteps.cpp those of
// several ranks.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_STEPBUILDER_H
#define TCC_COMPILER_TRAIN_STEPBUILDER_H

#include "compiler/train/Dropouts.h"
#include "compiler/train/Parts.h"
#include "compiler/train/RowChunks.h"
#include "compiler/train/TrainedModel.h"
#include "compiler/train/Update.h"

namespace tcc::train {

/// A batch of a step that trains: its forward, its loss and the gradients of
/// the parameters that are trained.
struct BatchGradients {
  Forward forward;
  Loss loss;
  std::vector<TrainedParameter> parameters;
};

/// The steps of one model: those that take a batch for each of its variants,
/// which differ in sizes alone and share all variables.
class StepBuilder {
public:
  StepBuilder(mlir::ModuleOp module, const Recipe &recipe,
              std::vector<Parameter> &table, bool inChunks, Problems &problems);

  mlir::LogicalResult run();
  llvm::ArrayRef<DropoutSite> getDropouts() const { return dropouts; }
  bool canChunk() const { return hasChunks; }
  std::vector<std::string> takeNotes() { return std::move(notes); }

private:
  void declareParameters();
  void declareStepState();
  void setVariables();

  /// Calls a function, which may fail, for each variant in turn.
  mlir::LogicalResult
      forVariants(mlir::LogicalResult (StepBuilder::*build)(uint16_t));
  Loss emitLoss(StepFunction &step, const Forward &forward) const;
  mlir::FailureOr<LossGradients> emitLossGradients(StepFunction &step,
                                                   const Forward &forward);
  mlir::FailureOr<std::vector<TrainedParameter>>
  emitGradients(StepFunction &step, const LossGradients &start);
  mlir::FailureOr<BatchGradients> emitBatch(StepFunction &step,
                                            uint16_t variant, bool hasRanks);
  void noteOrder(llvm::ArrayRef<TrainedParameter> parameters);
  void writeStatistics(StepFunction &step, const Forward &forward,
                       mlir::TypedValue<mlir::RankedTensorType> isVoid);
  void addMetrics(StepFunction &step, const Metrics &metrics);

  void buildInit();
  mlir::LogicalResult buildTrainStep(uint16_t variant);
  mlir::LogicalResult buildAccumulateStep(uint16_t variant);
  void buildApply();
  bool mayHaveRanks();
  void declareTree(int64_t leaves);
  mlir::LogicalResult buildExactSteps();
  mlir::LogicalResult buildFreeSteps();
  mlir::LogicalResult buildStepsOfRanks();
  std::vector<std::string> listSums() const;
  void declareBuckets();
  void declareParts();
  void checkNames();
  mlir::LogicalResult buildReduceStep(uint16_t variant);
  void buildReduceApply();
  Metrics emitUpdateOfAll(StepFunction &step, NamedValues values);
  mlir::LogicalResult buildEval(uint16_t variant);
  mlir::LogicalResult buildPredict(uint16_t variant);

  auto getTrained() const {
    return llvm::make_filter_range(
        table, [](const Parameter &row) { return row.isTrained; });
  }
  mlir::Value toF64(StepFunction &step, mlir::Value scalar);

  mlir::ModuleOp module;
  const Recipe &recipe;
  std::vector<Parameter> &table;
  bool inChunks, hasChunks = false;
  Problems &problems;
  std::vector<DropoutSite> dropouts;
  std::vector<TrainedModel> models; ///< of each variant
  VariableTable variables;
  /// The number of targets in a batch of the first variant: gradients of all
  /// batches are over it, so that they can be summed.
  int64_t nominalCount = 1;
  std::vector<std::string> notes;
  std::vector<std::string> ready;   ///< gradients, in the order of a step
  std::vector<Bucket> buckets;      ///< of all that each rank gets the sums of
  std::vector<DividedBucket> parts; ///< of all that it updates a part of
};

/// The variable of the gradient that is accumulated for a parameter.
inline std::string getGradient(const std::string &parameter) {
  return "gradient/" + parameter;
}

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_STEPBUILDER_H

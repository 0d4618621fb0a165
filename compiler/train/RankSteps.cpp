// The steps of several ranks.

#include "compiler/train/BatchTree.h"
#include "compiler/train/MicroBatches.h"
#include "compiler/train/StepBuilder.h"
#include "dialects/graph/Variables.h"
#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::format::EntryKind;
using tcc::format::Phase;

namespace tcc::train {

void StepBuilder::declareTree(int64_t leaves) {
  std::vector<std::string> summed = {format::variableOf(StepField::loss),
                                     format::variableOf(StepField::count)};
  for (const Parameter &row : getTrained())
    summed.push_back(getGradient(row.getName()));
  notes.push_back(declareBatchTree(module, variables, summed, leaves));
}

/// Whether there are entry points of several ranks.
bool StepBuilder::mayHaveRanks() {
  const ParallelRecipe &parallel = recipe.parallel;
  if (parallel.data || recipe.synchronisesBatchNorms)
    return parallel.reduces();
  for (const Variable &variable : variables.getAll()) {
    Type element = variable.type.getElementType();
    if (variable.kind != VariableKind::gradient || isSummed(element))
      continue;
    std::string text;
    llvm::raw_string_ostream(text)
        << "one rank alone trains this package: ranks add up f32 and f64, and "
           "its gradients are "
        << element;
    notes.push_back(std::move(text));
    return false;
  }
  return true;
}

/// All that ranks sum, in order.
std::vector<std::string> StepBuilder::listSums() const {
  std::vector<std::string> names = {format::variableOf(StepField::loss),
                                    format::variableOf(StepField::count)};
  llvm::append_range(names, ready);
  return names;
}

/// The loss and the number of targets are known before any gradient.
void StepBuilder::declareBuckets() {
  buckets = {{format::variableOf(StepField::loss),
              format::variableOf(StepField::count)}};
  bool divides = recipe.parallel.getParts() > 0;
  if (!divides)
    llvm::append_range(
        buckets,
        divideIntoBuckets(variables, ready, recipe.parallel.bucket.bytes));
  for (auto [number, bucket] : llvm::enumerate(buckets)) {
    variables.moveToBucket(bucket, int64_t(number));
    noteBucket(module, bucket, getBytes(variables, bucket), "summed together");
  }
  if (divides)
    declareParts();
}

void StepBuilder::declareParts() {
  llvm::StringMap<ParameterTraits> owners;
  for (const Parameter &row : getTrained())
    owners[getGradient(row.getName())] = row.traits;
  std::vector<DividedParameter> parameters;
  for (const std::string &gradient : ready)
    parameters.push_back({owners.lookup(gradient), gradient});
  int64_t ranks = recipe.parallel.getParts();
  parts = divideAmongRanks(variables, recipe, parameters);
  placeDivided(variables, parts, ranks, int64_t(buckets.size()));
  for (const DividedBucket &part : parts) {
    declareSlots(variables, recipe, part);
    noteBucket(module, part.gradients, countBytes(part.type) * ranks,
               recipe.parallel.exact ? "summed together" : "summed in parts");
    if (recipe.parallel.exact) // all ranks have the sums of the tree
      buckets.push_back(part.gradients);
  }
}

/// The update from `values` of this rank, one for each variable of a bucket,
/// all of which begin again.
Metrics StepBuilder::emitUpdateOfAll(StepFunction &step, NamedValues values) {
  emitSums(step, buckets, recipe.parallel.exact.has_value(), values);
  bool isExact = recipe.parallel.exact.has_value();
  std::vector<TrainedParameter> parameters;
  SmallVector<Value> whole;
  for (const DividedBucket &part : parts)
    parameters.push_back({part.traits,
                          isExact ? emitPartOfSums(step, part, values)
                                  : emitSumOfPart(step, part, values),
                          &part});
  for (const Parameter &row : getTrained()) {
    Value gradient = values.lookup(getGradient(row.getName()));
    if (parts.empty())
      parameters.push_back({row.traits, gradient});
    else if (isExact)
      whole.push_back(gradient);
  }
  Metrics metrics = emitUpdate(
      step, recipe,
      {parameters, values.lookup(format::variableOf(StepField::loss)),
       values.lookup(format::variableOf(StepField::count)), nominalCount,
       whole});
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  for (const std::string &name : listSums())
    step.write(name, emitter.splat(variables.get(name).type, 0.0));
  addMetrics(step, metrics);
  return metrics;
}

/// What earlier batches left in the variables is added where the value of this
/// batch is computed.
LogicalResult StepBuilder::buildReduceStep(uint16_t variant) {
  StepFunction step(module, EntryKind::reduce_step, variables, variant);
  FailureOr<BatchGradients> batch = emitBatch(step, variant, /*hasRanks=*/true);
  if (failed(batch))
    return failure();
  NamedValues values;
  auto add = [&](const std::string &name, Value value) {
    OpBuilder builder(step.getBuilder());
    builder.setInsertionPointAfterValue(value);
    TensorEmitter emitter(builder, step.getLoc());
    Value sum = step.read(name);
    values[name] = emitter.emit<AddOp>(
        sum, emitter.castTo(value, cast<RankedTensorType>(sum.getType())));
  };
  add(format::variableOf(StepField::loss), batch->loss.total);
  add(format::variableOf(StepField::count), batch->loss.count);
  for (const TrainedParameter &parameter : batch->parameters)
    add(getGradient(parameter.traits.name), parameter.gradient);
  step.endPhase(Phase::backward);
  emitNextPlace(step);
  Metrics metrics = emitUpdateOfAll(step, std::move(values));
  writeStatistics(step, batch->forward,
                  cast<TypedValue<RankedTensorType>>(metrics.isVoid));
  step.endPhase(Phase::optimizer);
  step.finish();
  return success();
}

void StepBuilder::buildReduceApply() {
  StepFunction step(module, EntryKind::reduce_apply, variables);
  NamedValues values;
  for (const std::string &name : listSums())
    values[name] = step.read(name);
  emitUpdateOfAll(step, std::move(values));
  step.endPhase(Phase::optimizer);
  step.finish();
}

/// A batch is computed by the same kernels whatever its place is.
LogicalResult StepBuilder::buildExactSteps() {
  declareTree(*recipe.parallel.exact);
  if (failed(forVariants(&StepBuilder::buildAccumulateStep)))
    return failure();
  declareBuckets();
  buildReduceApply();
  checkSums(module, recipe.parallel.getParts(), problems);
  return success();
}

LogicalResult StepBuilder::buildStepsOfRanks() {
  declareBuckets();
  if (failed(forVariants(&StepBuilder::buildReduceStep)))
    return failure();
  buildReduceApply();
  checkSums(module, recipe.parallel.getParts(), problems);
  return success();
}

} // namespace tcc::train

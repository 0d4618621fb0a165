#include "compiler/train/BuildSteps.h"

#include "compiler/decisions/Decisions.h"
#include "compiler/train/BatchTree.h"
#include "compiler/train/EvalMetrics.h"
#include "compiler/train/Initialize.h"
#include "compiler/train/Keys.h"
#include "compiler/train/LossScale.h"
#include "compiler/train/MicroBatches.h"
#include "compiler/train/StepBuilder.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Variables.h"
#include "dialects/graph/Variants.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "runtime/package/VariableKinds.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::format::EntryKind;
using tcc::format::Metric;
using tcc::format::Phase;

namespace tcc::train {

StepBuilder::StepBuilder(ModuleOp module, const Recipe &recipe,
                         std::vector<Parameter> &table, bool inChunks,
                         Problems &problems)
    : module(module), recipe(recipe), table(table), inChunks(inChunks),
      problems(problems) {
  for (func::FuncOp main : getMains(module)) {
    Problems others; // are those of the first
    bool isFirst = models.empty();
    auto sites = findDropouts(main, recipe, isFirst ? problems : others);
    if (isFirst)
      dropouts = std::move(sites);
    models.emplace_back(main, recipe, table, problems);
  }
}

LogicalResult
StepBuilder::forVariants(LogicalResult (StepBuilder::*build)(uint16_t)) {
  for (size_t variant = 0; variant < models.size(); ++variant)
    if (failed((this->*build)(uint16_t(variant))))
      return failure();
  return success();
}

// --- Variables ---------------------------------------------------------------

void StepBuilder::declareParameters() {
  std::vector<ParameterTraits> known;
  for (const Parameter &row : table) {
    if (row.role == Role::Constant)
      continue;
    known.push_back(row.traits);
    Initial initial = makeInitial(recipe, row.traits, problems);
    if (!initial)
      initial = makeModelValue(row);
    auto kind = row.role == Role::Buffer ? VariableKind::buffer
                                         : VariableKind::parameter;
    variables.declare({row.getName(), kind, models[0].getStoredType(row),
                       narrow(initial, models[0].getVariableType(row))});
  }
  for (const Parameter &row : getTrained())
    variables.declare(getGradient(row.getName()), VariableKind::gradient,
                      models[0].getVariableType(row), 0.0, row.getName());
  llvm::SetVector<StringRef> nodes;
  getMains(module)[0].walk([&](Operation *op) {
    llvm::SetVector<StringRef> names = getNodeNames(op->getLoc());
    nodes.insert(names.begin(), names.end());
  });
  checkPatterns(recipe, known, nodes.getArrayRef(), problems);
}

void StepBuilder::declareStepState() {
  Builder builder(module.getContext());
  for (StepField field :
       {StepField::iteration, StepField::updates, StepField::fault})
    variables.declare(field, builder.getI64Type(), 0);
  declareSeed(variables, recipe.seed, builder);
  declareMicroBatches(variables, builder);
  for (StepField field : {StepField::count, StepField::loss})
    variables.declare(field, builder.getF64Type(), 0);
  std::vector<TrainedType> trained;
  if (recipe.parallel.getParts() == 0) // else of parts: declareParts
    for (const Parameter &row : getTrained())
      trained.push_back({row.traits, models[0].getVariableType(row)});
  declareUpdate(variables, recipe, trained);
  declareDropouts(variables, dropouts);
}

void StepBuilder::setVariables() {
  Builder builder(module.getContext());
  if (int64_t ranks = recipe.parallel.getParts())
    module->setAttr(GraphDialect::kRanksAttr, builder.getI64IntegerAttr(ranks));
  module->setAttr(GraphDialect::kVariablesAttr, variables.describe());
  module->setAttr(GraphDialect::kRecipeAttr,
                  builder.getStringAttr(listCompiledKeys(recipe)));
  module->setAttr(GraphDialect::kStoredTensorsAttr,
                  describeStoredTensors(table, builder));
}

// --- Parts of steps ----------------------------------------------------------

Loss StepBuilder::emitLoss(StepFunction &step, const Forward &forward) const {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  return train::emitLoss(Settings(step, emitter), recipe.loss,
                         forward.operands);
}

Value StepBuilder::toF64(StepFunction &step, Value scalar) {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  return emitter.castTo(
      scalar, RankedTensorType::get({}, step.getBuilder().getF64Type()));
}

/// The sum of the losses and its gradients over the nominal count, times the
/// scale. A mean of means is no sum over rows.
FailureOr<LossGradients>
StepBuilder::emitLossGradients(StepFunction &step, const Forward &forward) {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  auto getScale = [&] {
    return LossScale(step, Settings(step, emitter), emitter).get().value;
  };
  std::optional<RowTail> tail = RowTail::find(forward.operands.logits);
  bool canChunk = tail && hasTarget(recipe.loss) &&
                  recipe.loss.reduction != LossReduction::MeanOfMeans;
  hasChunks |= canChunk;
  if (canChunk && inChunks) {
    DecisionLog(module, "chunk-loss")
        .add(forward.operands.logits.getDefiningOp(), "in chunks",
             "the loss and the gradients of some logits before the next",
             {{"rows", double(tail->getRowCount())},
              {"chunks", double(tail->getChunkCount())}});
    return emitInChunks(Settings(step, emitter), recipe.loss, forward.operands,
                        *tail, getScale(), nominalCount);
  }
  Loss loss = emitLoss(step, forward);
  auto type = cast<RankedTensorType>(loss.total.getType());
  Expr seed{emitter.castTo(getScale(), type), &emitter};
  seed = seed * (1.0 / double(nominalCount));
  return LossGradients{loss, {loss.total}, {seed.value}};
}

FailureOr<std::vector<TrainedParameter>>
StepBuilder::emitGradients(StepFunction &step, const LossGradients &start) {
  SmallVector<Value> inputs, gradients;
  for (const Parameter &row : getTrained())
    inputs.push_back(
        step.readAs(row.getName(), models[0].getVariableType(row)));
  if (failed(differentiate(step.getBuilder(), start.values, start.gradients,
                           inputs, gradients)))
    return failure();
  std::vector<TrainedParameter> parameters;
  for (auto [row, input, gradient] :
       llvm::zip_equal(getTrained(), inputs, gradients)) {
    if (!gradient)
      problems.add(ProblemClass::unsupported,
                   "the loss does not depend on parameter '" + row.getName() +
                       "': freeze it");
    parameters.push_back({row.traits, gradient});
  }
  return parameters;
}

FailureOr<BatchGradients>
StepBuilder::emitBatch(StepFunction &step, uint16_t variant, bool hasRanks) {
  Forward forward = models[variant].emit(step, /*isTraining=*/true, hasRanks);
  FailureOr<LossGradients> start = emitLossGradients(step, forward);
  if (failed(start))
    return failure();
  step.endPhase(Phase::forward);
  auto parameters = emitGradients(step, *start);
  if (failed(parameters) || !problems.empty())
    return failure();
  step.endPhase(Phase::backward);
  return BatchGradients{std::move(forward), start->loss,
                        std::move(*parameters)};
}

void StepBuilder::noteOrder(ArrayRef<TrainedParameter> parameters) {
  std::vector<NamedValue> gradients;
  for (const TrainedParameter &parameter : parameters)
    gradients.emplace_back(getGradient(parameter.traits.name),
                           parameter.gradient);
  ready = listByReadiness(gradients);
}

/// Running statistics follow the batch unless the step is void.
void StepBuilder::writeStatistics(StepFunction &step, const Forward &forward,
                                  TypedValue<RankedTensorType> isVoid) {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  for (const StatisticUpdate &update : forward.statistics) {
    auto type = cast<RankedTensorType>(update.next.getType());
    auto booleans = withElementType(type, isVoid.getType().getElementType());
    Value condition = emitter.emit<BroadcastOp>(booleans, isVoid);
    step.write(*step.findName(update.running),
               emitter.emit<SelectOp>(condition, update.running, update.next));
  }
}

void StepBuilder::addMetrics(StepFunction &step, const Metrics &metrics) {
  step.addOutput(Metric::loss, metrics.loss);
  step.addOutput(Metric::grad_norm, metrics.gradNorm);
  if (metrics.gradNorms)
    step.addOutput(Metric::grad_norms, metrics.gradNorms);
  step.addOutput(Metric::lr, metrics.lr);
  step.addOutput(Metric::loss_scale, metrics.lossScale);
  step.addOutput(Metric::skipped, metrics.skipped);
}

// --- Steps -------------------------------------------------------------------

static bool isCleared(const Variable &variable) {
  return variable.isZero && format::isCleared(variable.kind);
}

void StepBuilder::buildInit() {
  StepFunction step(module, EntryKind::init, variables);
  for (const Variable &variable : variables.getAll())
    if (!isCleared(variable))
      step.write(variable.name, variable.initial(step.getBuilder(),
                                                 step.getLoc(), variable.type));
  step.finish();
}

LogicalResult StepBuilder::buildTrainStep(uint16_t variant) {
  StepFunction step(module, EntryKind::train_step, variables, variant);
  FailureOr<BatchGradients> batch =
      emitBatch(step, variant, /*hasRanks=*/false);
  if (failed(batch))
    return failure();
  const Loss &loss = batch->loss;
  emitNextPlace(step);
  Metrics metrics = emitUpdate(step, recipe,
                               {batch->parameters, toF64(step, loss.total),
                                toF64(step, loss.count), nominalCount});
  writeStatistics(step, batch->forward,
                  cast<TypedValue<RankedTensorType>>(metrics.isVoid));
  addMetrics(step, metrics);
  step.endPhase(Phase::optimizer);
  step.finish();
  return success();
}

/// Sums over micro-batches. A loss that is not finite shows in its sum, and so
/// does whatever gradient is not: the update checks both.
LogicalResult StepBuilder::buildAccumulateStep(uint16_t variant) {
  StepFunction step(module, EntryKind::accumulate_step, variables, variant);
  FailureOr<BatchGradients> batch = emitBatch(step, variant, /*hasRanks=*/true);
  if (failed(batch))
    return failure();
  if (variant == 0)
    noteOrder(batch->parameters);
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  std::optional<BatchTree> tree;
  if (recipe.parallel.exact)
    tree.emplace(step, emitter, *recipe.parallel.exact);
  auto accumulate = [&](const std::string &name, Value value) {
    if (tree)
      return tree->add(name, value);
    step.write(name, emitter.emit<AddOp>(step.read(name), value));
  };
  for (const TrainedParameter &parameter : batch->parameters)
    accumulate(getGradient(parameter.traits.name), parameter.gradient);
  Value total = toF64(step, batch->loss.total);
  accumulate(format::variableOf(StepField::loss), total);
  accumulate(format::variableOf(StepField::count),
             toF64(step, batch->loss.count));
  emitNextPlace(step);
  Value fault = step.read(StepField::fault);
  Value isFaulty = emitter.emit<CompareOp>(CompareKind::ne, fault,
                                           emitter.splat(fault, 0.0));
  // x - x is 0 where x is finite.
  Value difference = emitter.emit<SubOp>(total, total);
  Value isBad = emitter.emit<CompareOp>(CompareKind::ne, difference,
                                        emitter.splat(total, 0.0));
  writeStatistics(
      step, batch->forward,
      cast<TypedValue<RankedTensorType>>(emitter.emit<OrOp>(isFaulty, isBad)));
  step.endPhase(Phase::backward);
  step.finish();
  return success();
}

void StepBuilder::buildApply() {
  StepFunction step(module, EntryKind::apply, variables);
  std::vector<TrainedParameter> parameters;
  for (const Parameter &row : getTrained())
    parameters.push_back({row.traits, step.read(getGradient(row.getName()))});
  addMetrics(step, emitUpdate(step, recipe,
                              {parameters, step.read(StepField::loss),
                               step.read(StepField::count), nominalCount}));
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  auto clear = [&](const std::string &name) {
    step.write(name, emitter.splat(variables.get(name).type, 0.0));
  };
  for (const TrainedParameter &parameter : parameters)
    clear(getGradient(parameter.traits.name));
  clear(format::variableOf(StepField::loss));
  clear(format::variableOf(StepField::count));
  step.endPhase(Phase::optimizer);
  step.finish();
}

LogicalResult StepBuilder::buildEval(uint16_t variant) {
  StepFunction step(module, EntryKind::eval, variables, variant);
  Loss loss = emitLoss(step, models[variant].emit(step, /*isTraining=*/false));
  emitMetrics(step, module, recipe, loss, problems);
  if (variant == 0)
    nominalCount = loss.nominalCount;
  step.finish();
  return success(problems.empty());
}

LogicalResult StepBuilder::buildPredict(uint16_t variant) {
  StepFunction step(module, EntryKind::predict, variables, variant);
  models[variant].emitPrediction(step);
  step.finish();
  return success();
}

LogicalResult StepBuilder::buildFreeSteps() {
  // One rank alone has no place for the whole state of the optimizer.
  bool runsAlone = recipe.parallel.getParts() == 0;
  if (runsAlone && failed(forVariants(&StepBuilder::buildTrainStep)))
    return failure();
  if (failed(forVariants(&StepBuilder::buildAccumulateStep)))
    return failure();
  if (runsAlone)
    buildApply();
  return mayHaveRanks() ? buildStepsOfRanks() : success();
}

void StepBuilder::checkNames() {
  for (const std::string &name : variables.getClashes())
    problems.add(ProblemClass::unsupported,
                 "two tensors are called '" + name +
                     "': export with optimize=False");
}

LogicalResult StepBuilder::run() {
  for (TrainedModel &model : models)
    if (!model.check() || !problems.empty())
      return failure();
  if (std::string note = models.front().noteClassAxis(); !note.empty())
    notes.push_back(std::move(note));
  declareParameters();
  declareStepState();
  checkNames();
  if (!problems.empty())
    return failure();
  buildInit();
  if (failed(forVariants(&StepBuilder::buildPredict)) ||
      failed(forVariants(&StepBuilder::buildEval)))
    return failure();
  if (failed(recipe.parallel.exact ? buildExactSteps() : buildFreeSteps()))
    return failure();
  checkNames(); // of parts, which the steps declare
  if (!problems.empty())
    return failure();
  setVariables();
  for (TrainedModel &model : models)
    model.erase();
  return success();
}

FailureOr<Steps> buildSteps(ModuleOp module, const WeightStore &weights,
                            const Recipe &recipe, bool inChunks,
                            Problems &problems) {
  std::vector<Parameter> table =
      buildParameterTable(module, weights, recipe.params, problems);
  auto isTrained = [](const Parameter &row) { return row.isTrained; };
  if (llvm::none_of(table, isTrained))
    problems.add(ProblemClass::unsupported,
                 "the model has no parameter that is trained");
  StepBuilder builder(module, recipe, table, inChunks, problems);
  if (failed(builder.run()))
    return failure();
  Steps steps;
  for (const Parameter &row : table)
    steps.lines.push_back(describe(row));
  for (const DropoutSite &site : builder.getDropouts())
    steps.lines.push_back(describe(site));
  steps.hasChunks = builder.canChunk();
  steps.notes = builder.takeNotes();
  return steps;
}

} // namespace tcc::train

#include "compiler/train/BuildSteps.h"

#include "compiler/decisions/Decisions.h"
#include "compiler/train/BatchTree.h"
#include "compiler/train/Buckets.h"
#include "compiler/train/Dropouts.h"
#include "compiler/train/EvalMetrics.h"
#include "compiler/train/Initialize.h"
#include "compiler/train/Keys.h"
#include "compiler/train/LossScale.h"
#include "compiler/train/MicroBatches.h"
#include "compiler/train/RowChunks.h"
#include "compiler/train/TrainedModel.h"
#include "compiler/train/Update.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Variables.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "runtime/package/VariableKinds.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::format::EntryKind;
using tcc::format::Metric;

namespace tcc::train {

namespace {

/// A batch of a step that trains: its forward, its loss and the gradients of
/// the parameters that are trained.
struct BatchGradients {
  Forward forward;
  Loss loss;
  std::vector<TrainedParameter> parameters;
};

/// The steps of one model.
class StepBuilder {
public:
  StepBuilder(ModuleOp module, const Recipe &recipe,
              std::vector<Parameter> &table, bool inChunks, Problems &problems)
      : module(module), recipe(recipe), table(table), inChunks(inChunks),
        problems(problems), main(module.lookupSymbol<func::FuncOp>(
                                format::nameOf(EntryKind::main))),
        dropouts(findDropouts(main, recipe, problems)),
        model(main, recipe, table, problems) {}

  LogicalResult run();
  ArrayRef<DropoutSite> getDropouts() const { return dropouts; }
  bool canChunk() const { return hasChunks; }
  std::vector<std::string> takeNotes() { return std::move(notes); }

private:
  void declareParameters();
  void declareStepState();
  void setVariables();

  Loss emitLoss(StepFunction &step, const Forward &forward) const {
    TensorEmitter emitter(step.getBuilder(), step.getLoc());
    return train::emitLoss(Settings(step, emitter), recipe.loss,
                           forward.operands);
  }
  FailureOr<LossGradients> emitLossGradients(StepFunction &step,
                                             const Forward &forward);
  FailureOr<std::vector<TrainedParameter>>
  emitGradients(StepFunction &step, const LossGradients &start);
  FailureOr<BatchGradients> emitBatch(StepFunction &step, bool hasRanks);
  void noteOrder(ArrayRef<TrainedParameter> parameters);
  void writeStatistics(StepFunction &step, const Forward &forward,
                       TypedValue<RankedTensorType> isVoid);
  void addMetrics(StepFunction &step, const Metrics &metrics);

  void buildInit();
  LogicalResult buildTrainStep();
  LogicalResult buildAccumulateStep();
  void buildApply();
  bool mayHaveRanks();
  void declareTree(int64_t leaves);
  LogicalResult buildExactSteps();
  LogicalResult buildFreeSteps();
  LogicalResult buildStepsOfRanks();
  std::vector<std::string> listSums() const;
  void declareBuckets();
  void declareParts();
  void checkNames();
  LogicalResult buildReduceStep();
  void buildReduceApply();
  Metrics emitUpdateOfAll(StepFunction &step, NamedValues values);
  void buildEval();
  void buildPredict();

  auto getTrained() const {
    return llvm::make_filter_range(
        table, [](const Parameter &row) { return row.isTrained; });
  }
  Value toF64(StepFunction &step, Value scalar);

  ModuleOp module;
  const Recipe &recipe;
  std::vector<Parameter> &table;
  bool inChunks, hasChunks = false;
  Problems &problems;
  func::FuncOp main;
  std::vector<DropoutSite> dropouts;
  TrainedModel model;
  VariableTable variables;
  int64_t nominalCount = 1;
  std::vector<std::string> notes;
  std::vector<std::string> ready;   ///< gradients, in the order of a step
  std::vector<Bucket> buckets;      ///< of all that each rank gets the sums of
  std::vector<DividedBucket> parts; ///< of all that it updates a part of
};

} // namespace

// --- Variables ---------------------------------------------------------------

/// The variable of the gradient that is accumulated for a parameter.
static std::string getGradient(const std::string &parameter) {
  return "gradient/" + parameter;
}

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
    variables.declare({row.getName(), kind, model.getStoredType(row),
                       narrow(initial, model.getVariableType(row))});
  }
  for (const Parameter &row : getTrained())
    variables.declare(getGradient(row.getName()), VariableKind::gradient,
                      model.getVariableType(row), 0.0, row.getName());
  llvm::SetVector<StringRef> nodes;
  main.walk([&](Operation *op) {
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
      trained.push_back({row.traits, model.getVariableType(row)});
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
  hasChunks = tail && hasTarget(recipe.loss) &&
              recipe.loss.reduction != LossReduction::MeanOfMeans;
  if (hasChunks && inChunks) {
    DecisionLog(module, "chunk-loss")
        .add(forward.operands.logits.getDefiningOp(), "in chunks",
             "the loss and the gradients of some logits before the next",
             {{"rows", double(tail->getRowCount())},
              {"chunks", double(tail->getChunkCount())}});
    return emitInChunks(Settings(step, emitter), recipe.loss, forward.operands,
                        *tail, getScale());
  }
  Loss loss = emitLoss(step, forward);
  auto type = cast<RankedTensorType>(loss.total.getType());
  Expr seed{emitter.castTo(getScale(), type), &emitter};
  seed = seed * (1.0 / double(loss.nominalCount));
  return LossGradients{loss, {loss.total}, {seed.value}};
}

FailureOr<std::vector<TrainedParameter>>
StepBuilder::emitGradients(StepFunction &step, const LossGradients &start) {
  SmallVector<Value> inputs, gradients;
  for (const Parameter &row : getTrained())
    inputs.push_back(step.readAs(row.getName(), model.getVariableType(row)));
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

FailureOr<BatchGradients> StepBuilder::emitBatch(StepFunction &step,
                                                 bool hasRanks) {
  Forward forward = model.emit(step, /*isTraining=*/true, hasRanks);
  FailureOr<LossGradients> start = emitLossGradients(step, forward);
  if (failed(start))
    return failure();
  auto parameters = emitGradients(step, *start);
  if (failed(parameters) || !problems.empty())
    return failure();
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

LogicalResult StepBuilder::buildTrainStep() {
  StepFunction step(module, EntryKind::train_step, variables);
  FailureOr<BatchGradients> batch = emitBatch(step, /*hasRanks=*/false);
  if (failed(batch))
    return failure();
  const Loss &loss = batch->loss;
  emitNextPlace(step);
  Metrics metrics = emitUpdate(step, recipe,
                               {batch->parameters, toF64(step, loss.total),
                                toF64(step, loss.count), loss.nominalCount});
  writeStatistics(step, batch->forward,
                  cast<TypedValue<RankedTensorType>>(metrics.isVoid));
  addMetrics(step, metrics);
  step.finish();
  return success();
}

/// Sums over micro-batches. A loss that is not finite shows in its sum, and so
/// does whatever gradient is not: the update checks both.
LogicalResult StepBuilder::buildAccumulateStep() {
  StepFunction step(module, EntryKind::accumulate_step, variables);
  FailureOr<BatchGradients> batch = emitBatch(step, /*hasRanks=*/true);
  if (failed(batch))
    return failure();
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
  step.finish();
}

// --- Steps of several ranks --------------------------------------------------

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
LogicalResult StepBuilder::buildReduceStep() {
  StepFunction step(module, EntryKind::reduce_step, variables);
  FailureOr<BatchGradients> batch = emitBatch(step, /*hasRanks=*/true);
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
  emitNextPlace(step);
  Metrics metrics = emitUpdateOfAll(step, std::move(values));
  writeStatistics(step, batch->forward,
                  cast<TypedValue<RankedTensorType>>(metrics.isVoid));
  step.finish();
  return success();
}

void StepBuilder::buildReduceApply() {
  StepFunction step(module, EntryKind::reduce_apply, variables);
  NamedValues values;
  for (const std::string &name : listSums())
    values[name] = step.read(name);
  emitUpdateOfAll(step, std::move(values));
  step.finish();
}

void StepBuilder::buildEval() {
  StepFunction step(module, EntryKind::eval, variables);
  Loss loss = emitLoss(step, model.emit(step, /*isTraining=*/false));
  emitMetrics(step, module, recipe, loss, problems);
  nominalCount = loss.nominalCount;
  step.finish();
}

void StepBuilder::buildPredict() {
  StepFunction step(module, EntryKind::predict, variables);
  model.emitPrediction(step);
  step.finish();
}

/// A batch is computed by the same kernels whatever its place is.
LogicalResult StepBuilder::buildExactSteps() {
  declareTree(*recipe.parallel.exact);
  if (failed(buildAccumulateStep()))
    return failure();
  declareBuckets();
  buildReduceApply();
  checkSums(module, recipe.parallel.getParts(), problems);
  return success();
}

LogicalResult StepBuilder::buildStepsOfRanks() {
  declareBuckets();
  if (failed(buildReduceStep()))
    return failure();
  buildReduceApply();
  checkSums(module, recipe.parallel.getParts(), problems);
  return success();
}

LogicalResult StepBuilder::buildFreeSteps() {
  // One rank alone has no place for the whole state of the optimizer.
  bool runsAlone = recipe.parallel.getParts() == 0;
  if (runsAlone && failed(buildTrainStep()))
    return failure();
  if (failed(buildAccumulateStep()))
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
  if (!model.check() || !problems.empty())
    return failure();
  declareParameters();
  declareStepState();
  checkNames();
  if (!problems.empty())
    return failure();
  buildInit();
  buildPredict();
  buildEval();
  if (failed(recipe.parallel.exact ? buildExactSteps() : buildFreeSteps()))
    return failure();
  checkNames(); // of parts, which the steps declare
  if (!problems.empty())
    return failure();
  setVariables();
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

#include "compiler/train/BuildSteps.h"

#include "compiler/train/BatchNorms.h"
#include "compiler/train/Loss.h"
#include "compiler/train/Update.h"
#include "compiler/train/Variables.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

namespace {

/// The steps of one model.
class StepBuilder {
public:
  StepBuilder(ModuleOp module, const Recipe &recipe,
              std::vector<Parameter> &table, Problems &problems)
      : module(module), main(module.lookupSymbol<func::FuncOp>("main")),
        recipe(recipe), table(table), problems(problems) {}

  LogicalResult run();

private:
  /// The model in a function, with its loss.
  struct Forward {
    SmallVector<Value> results;
    Loss loss;
    std::vector<StatisticUpdate> statistics;
  };

  bool findLogits();
  void checkBatch();
  void declareParameters();
  void declareStepState();
  void setVariables();

  IRMapping addInputs(StepFunction &step);
  void mapWeights(StepFunction &step, IRMapping &mapping);
  SmallVector<Value> cloneModel(StepFunction &step, IRMapping mapping);
  Value addTarget(StepFunction &step, const IRMapping &inputs);
  bool isTrainedNorm(StepFunction &step, BatchNormOp op);
  Forward emitForward(StepFunction &step, bool isTraining);
  FailureOr<std::vector<TrainedParameter>> emitGradients(StepFunction &step,
                                                         const Loss &loss);
  void writeStatistics(StepFunction &step, const Forward &forward,
                       TypedValue<RankedTensorType> isVoid);
  void addMetrics(StepFunction &step, const Metrics &metrics);

  void buildInit();
  LogicalResult buildTrainStep();
  LogicalResult buildAccumulateStep();
  void buildApply();
  void buildEval();
  void buildPredict();

  RankedTensorType getVariableType(const Parameter &parameter) const;
  const Parameter *findParameter(StringRef weight) const;
  auto getTrained() const {
    return llvm::make_filter_range(
        table, [](const Parameter &row) { return row.isTrained; });
  }
  Value toF64(StepFunction &step, Value scalar);

  ModuleOp module;
  func::FuncOp main;
  const Recipe &recipe;
  std::vector<Parameter> &table;
  Problems &problems;
  VariableTable variables;
  llvm::StringMap<const Parameter *> parameters; ///< by names of weights
  unsigned logits = 0;                           ///< a result of main
  RankedTensorType target; ///< null: the model computes the loss
  int64_t classCount = 0;  ///< 0: targets are no classes
  int64_t nominalCount = 1;
};

} // namespace

// --- What there is -----------------------------------------------------------

static StringAttr getResultName(func::FuncOp function, unsigned index) {
  return cast<StringAttr>(
      function.getResultAttr(index, GraphDialect::kNameAttr));
}

/// What was compiled for another number of samples than the recipe's.
void StepBuilder::checkBatch() {
  if (!recipe.batch.micro)
    return;
  for (BlockArgument argument : main.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    auto name = cast<StringAttr>(
        main.getArgAttr(argument.getArgNumber(), GraphDialect::kNameAttr));
    if (type.getRank() > 0 && type.getDimSize(0) != *recipe.batch.micro)
      problems.add(ProblemClass::usage,
                   "[batch]: micro is " + std::to_string(*recipe.batch.micro) +
                       ", but input '" + name.str() + "' has " +
                       std::to_string(type.getDimSize(0)) + " samples");
  }
}

bool StepBuilder::findLogits() {
  std::string names;
  bool isFound = false;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    StringRef name = getResultName(main, i);
    names += (i ? ", '" : "'") + name.str() + "'";
    if (recipe.loss.logits.empty() ? main.getNumResults() == 1
                                   : name == recipe.loss.logits) {
      logits = i;
      isFound = true;
    }
  }
  if (!isFound) {
    problems.add(ProblemClass::usage,
                 (recipe.loss.logits.empty()
                      ? "[loss]: logits must name one of the outputs "
                      : "[loss]: there is no output '" + recipe.loss.logits +
                            "' among ") +
                     names);
    return false;
  }
  size_t before = problems.get().size();
  auto type = cast<RankedTensorType>(main.getResultTypes()[logits]);
  target = getTargetType(recipe.loss, type, problems);
  if (target && isa<IntegerType>(target.getElementType()))
    classCount = type.getDimSize(getClassAxis(recipe.loss, type));
  return problems.get().size() == before;
}

RankedTensorType
StepBuilder::getVariableType(const Parameter &parameter) const {
  SmallVector<int64_t> shape(parameter.type.getShape());
  if (parameter.isTransposed)
    std::swap(shape[0], shape[1]);
  Type element = parameter.type.getElementType();
  if (recipe.compute == ComputeType::F64 && element.isF32())
    element = Float64Type::get(element.getContext());
  return RankedTensorType::get(shape, element);
}

const Parameter *StepBuilder::findParameter(StringRef weight) const {
  return parameters.lookup(weight);
}

// --- Variables ---------------------------------------------------------------

void StepBuilder::declareParameters() {
  for (const Parameter &row : table) {
    if (row.role == Role::Constant)
      continue;
    for (const std::string &weight : row.weights)
      parameters[weight] = &row;
    auto initial = [&row](OpBuilder &builder, Location loc,
                          RankedTensorType type) {
      TensorEmitter emitter(builder, loc);
      Value value = emitter.emit<WeightOp>(row.type, row.weights.front());
      if (row.isTransposed)
        value = emitter.emit<TransposeOp>(value, ArrayRef<int64_t>{1, 0});
      return emitter.castTo(value, type);
    };
    auto kind = row.role == Role::Buffer ? VariableKind::buffer
                                         : VariableKind::parameter;
    variables.declare({row.getName(), kind, getVariableType(row), "", initial});
  }
  for (const Parameter &row : getTrained())
    variables.declare("gradient/" + row.getName(), VariableKind::gradient,
                      getVariableType(row), 0.0, row.getName());
}

void StepBuilder::declareStepState() {
  Builder builder(module.getContext());
  auto i64 = RankedTensorType::get({}, builder.getI64Type());
  auto f64 = RankedTensorType::get({}, builder.getF64Type());
  auto declare = [&](const char *name, RankedTensorType type, double value) {
    variables.declare(std::string("step/") + name, VariableKind::step, type,
                      value);
  };
  declare("iteration", i64, 0);
  declare("updates", i64, 0);
  declare("fault", i64, 0);
  declare("seed", i64, double(recipe.seed));
  declare("count", f64, 0);
  declare("loss", f64, 0);
  std::vector<TrainedType> trained;
  for (const Parameter &row : getTrained())
    trained.push_back({row.traits, getVariableType(row)});
  declareUpdate(variables, recipe, trained);
}

void StepBuilder::setVariables() {
  SmallVector<Attribute> attributes;
  Builder builder(module.getContext());
  for (const Variable &variable : variables.getAll())
    attributes.push_back(VariableAttr::get(
        module.getContext(), builder.getStringAttr(variable.name),
        variable.kind, variable.type, builder.getStringAttr(variable.owner)));
  module->setAttr(GraphDialect::kVariablesAttr,
                  builder.getArrayAttr(attributes));
}

// --- The model in a step -----------------------------------------------------

/// A weight that is a variable has its value, and so has the wide form of one
/// that is kept wide.
void StepBuilder::mapWeights(StepFunction &step, IRMapping &mapping) {
  main.walk([&](WeightOp op) {
    const Parameter *row = findParameter(op.getName());
    if (!row)
      return;
    TensorEmitter emitter(step.getBuilder(), op.getLoc());
    Value value = step.read(row->getName());
    if (row->isTransposed)
      value = emitter.emit<TransposeOp>(value, ArrayRef<int64_t>{1, 0});
    for (Operation *user : op->getUsers())
      if (auto cast = dyn_cast<CastOp>(user))
        if (cast.getType() == value.getType())
          mapping.map(cast.getResult(), value);
    mapping.map(op.getResult(), emitter.castTo(value, op.getType()));
  });
}

IRMapping StepBuilder::addInputs(StepFunction &step) {
  IRMapping mapping;
  for (BlockArgument argument : main.getArguments())
    mapping.map(argument,
                step.addInput(cast<RankedTensorType>(argument.getType()),
                              main.getArgAttrDict(argument.getArgNumber())));
  return mapping;
}

/// What main returns, computed in the step.
SmallVector<Value> StepBuilder::cloneModel(StepFunction &step,
                                           IRMapping mapping) {
  mapWeights(step, mapping);
  Block &body = main.getBody().front();
  for (Operation &op : body.without_terminator())
    if (op.getNumResults() == 0 || !mapping.contains(op.getResult(0)))
      step.getBuilder().clone(op, mapping);
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookup(value); });
}

/// The input that holds the targets: one of the model's, if it has the name.
Value StepBuilder::addTarget(StepFunction &step, const IRMapping &inputs) {
  Builder &builder = step.getBuilder();
  auto name = builder.getStringAttr(recipe.loss.target);
  for (BlockArgument argument : main.getArguments())
    if (main.getArgAttr(argument.getArgNumber(), GraphDialect::kNameAttr) ==
        name)
      return inputs.lookup(argument);
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr(GraphDialect::kNameAttr, name)};
  if (classCount)
    attributes.push_back(builder.getNamedAttr(
        "graph.index_range", builder.getI64ArrayAttr({0, classCount - 1})));
  return step.addInput(target, builder.getDictionaryAttr(attributes));
}

/// The value that was converted to a narrower float to be returned.
static Value lookThroughNarrowing(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  if (cast && getElementTypeOrSelf(cast.getX()).isF64() &&
      getElementTypeOrSelf(value).isF32())
    return cast.getX();
  return value;
}

StepBuilder::Forward StepBuilder::emitForward(StepFunction &step,
                                              bool isTraining) {
  IRMapping inputs = addInputs(step);
  Value targets = target ? addTarget(step, inputs) : Value();
  Forward forward;
  forward.results = cloneModel(step, inputs);
  if (isTraining)
    forward.statistics = trainBatchNorms(
        step.getBody(), [&](BatchNormOp op) { return isTrainedNorm(step, op); },
        problems);
  Value output = lookThroughNarrowing(forward.results[logits]);
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  bool isFloat = targets && isa<FloatType>(getElementTypeOrSelf(targets));
  if (isFloat)
    targets = emitter.castTo(targets, cast<RankedTensorType>(output.getType()));
  forward.loss =
      emitLoss(step.getBuilder(), step.getLoc(), recipe.loss, output, targets);
  return forward;
}

/// A batch norm whose statistics are variables that the recipe trains.
bool StepBuilder::isTrainedNorm(StepFunction &step, BatchNormOp op) {
  std::optional<StringRef> mean = step.findName(op.getMean());
  std::optional<StringRef> variance = step.findName(op.getVariance());
  ParameterTraits traits;
  traits.name = mean.value_or("").str();
  return mean && variance && matchesAny(recipe.batchNorm, traits);
}

// --- Parts of steps ----------------------------------------------------------

Value StepBuilder::toF64(StepFunction &step, Value scalar) {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  return emitter.castTo(
      scalar, RankedTensorType::get({}, step.getBuilder().getF64Type()));
}

/// The gradients of the sum of the losses over the nominal count.
FailureOr<std::vector<TrainedParameter>>
StepBuilder::emitGradients(StepFunction &step, const Loss &loss) {
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  SmallVector<Value> inputs, gradients;
  for (const Parameter &row : getTrained())
    inputs.push_back(step.read(row.getName()));
  Value seed = emitter.splat(loss.total, 1.0 / double(loss.nominalCount));
  if (failed(differentiate(step.getBuilder(), loss.total, seed, inputs,
                           gradients)))
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
  step.addOutput("loss", metrics.loss);
  step.addOutput("grad_norm", metrics.gradNorm);
  step.addOutput("lr", metrics.lr);
  step.addOutput("loss_scale", metrics.lossScale);
  step.addOutput("skipped", metrics.skipped);
}

// --- Steps -------------------------------------------------------------------

void StepBuilder::buildInit() {
  StepFunction step(module, "init", variables);
  for (const Variable &variable : variables.getAll())
    step.write(variable.name, variable.initial(step.getBuilder(), step.getLoc(),
                                               variable.type));
  step.finish();
}

LogicalResult StepBuilder::buildTrainStep() {
  StepFunction step(module, "train_step", variables);
  Forward forward = emitForward(step, /*isTraining=*/true);
  auto parameters = emitGradients(step, forward.loss);
  if (failed(parameters) || !problems.empty())
    return failure();
  Metrics metrics =
      emitUpdate(step, recipe, *parameters, toF64(step, forward.loss.total),
                 toF64(step, forward.loss.count), forward.loss.nominalCount);
  writeStatistics(step, forward,
                  cast<TypedValue<RankedTensorType>>(metrics.skipped));
  addMetrics(step, metrics);
  step.finish();
  return success();
}

/// Sums over micro-batches. A loss that is not finite shows in its sum, and so
/// does whatever gradient is not: the update checks both.
LogicalResult StepBuilder::buildAccumulateStep() {
  StepFunction step(module, "accumulate_step", variables);
  Forward forward = emitForward(step, /*isTraining=*/true);
  auto parameters = emitGradients(step, forward.loss);
  if (failed(parameters))
    return failure();
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  auto accumulate = [&](const std::string &name, Value value) {
    step.write(name, emitter.emit<AddOp>(step.read(name), value));
  };
  for (const TrainedParameter &parameter : *parameters)
    accumulate("gradient/" + parameter.traits.name, parameter.gradient);
  Value total = toF64(step, forward.loss.total);
  accumulate("step/loss", total);
  accumulate("step/count", toF64(step, forward.loss.count));
  Value fault = step.read("step/fault");
  Value isFaulty = emitter.emit<CompareOp>(CompareKind::ne, fault,
                                           emitter.splat(fault, 0.0));
  // x - x is 0 where x is finite.
  Value difference = emitter.emit<SubOp>(total, total);
  Value isBad = emitter.emit<CompareOp>(CompareKind::ne, difference,
                                        emitter.splat(total, 0.0));
  writeStatistics(
      step, forward,
      cast<TypedValue<RankedTensorType>>(emitter.emit<OrOp>(isFaulty, isBad)));
  step.finish();
  return success();
}

void StepBuilder::buildApply() {
  StepFunction step(module, "apply", variables);
  std::vector<TrainedParameter> parameters;
  for (const Parameter &row : getTrained())
    parameters.push_back({row.traits, step.read("gradient/" + row.getName())});
  addMetrics(step, emitUpdate(step, recipe, parameters, step.read("step/loss"),
                              step.read("step/count"), nominalCount));
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  auto clear = [&](const std::string &name) {
    step.write(name, emitter.splat(variables.get(name).type, 0.0));
  };
  for (const TrainedParameter &parameter : parameters)
    clear("gradient/" + parameter.traits.name);
  clear("step/loss");
  clear("step/count");
  step.finish();
}

void StepBuilder::buildEval() {
  StepFunction step(module, "eval", variables);
  Forward forward = emitForward(step, /*isTraining=*/false);
  step.addOutput("loss", toF64(step, forward.loss.total));
  step.addOutput("count", toF64(step, forward.loss.count));
  if (forward.loss.correct)
    step.addOutput("correct", forward.loss.correct);
  nominalCount = forward.loss.nominalCount;
  step.finish();
}

void StepBuilder::buildPredict() {
  StepFunction step(module, "predict", variables);
  SmallVector<Value> results = cloneModel(step, addInputs(step));
  for (auto [i, value] : llvm::enumerate(results))
    step.addOutput(getResultName(main, i), value);
  step.finish();
}

LogicalResult StepBuilder::run() {
  checkBatch();
  if (!findLogits() || !problems.empty())
    return failure();
  declareParameters();
  declareStepState();
  setVariables();
  buildInit();
  buildPredict();
  buildEval();
  if (failed(buildTrainStep()) || failed(buildAccumulateStep()))
    return failure();
  buildApply();
  main.erase();
  return success();
}

FailureOr<std::vector<Parameter>> buildSteps(ModuleOp module,
                                             const WeightStore &weights,
                                             const Recipe &recipe,
                                             Problems &problems) {
  std::vector<Parameter> table =
      buildParameterTable(module, weights, recipe.params, problems);
  auto isTrained = [](const Parameter &row) { return row.isTrained; };
  if (llvm::none_of(table, isTrained))
    problems.add(ProblemClass::unsupported,
                 "the model has no parameter that is trained");
  if (failed(StepBuilder(module, recipe, table, problems).run()))
    return failure();
  return table;
}

} // namespace tcc::train

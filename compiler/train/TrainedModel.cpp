#include "compiler/train/TrainedModel.h"

#include "compiler/train/Dropouts.h"
#include "dialects/graph/NodeNames.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "runtime/package/Format.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

TrainedModel::TrainedModel(func::FuncOp main, const Recipe &recipe,
                           ArrayRef<Parameter> table, Problems &problems)
    : main(main), recipe(recipe), problems(problems) {
  for (const Parameter &row : table)
    if (row.role != Role::Constant)
      for (const std::string &weight : row.weights)
        variables[weight] = &row;
}

// --- What there is -----------------------------------------------------------

static StringAttr getResultName(func::FuncOp function, unsigned index) {
  return cast<StringAttr>(
      function.getResultAttr(index, GraphDialect::kNameAttr));
}

/// What was compiled for another number of samples than the recipe's.
void TrainedModel::checkBatch() {
  if (!recipe.batch.micro)
    return;
  for (BlockArgument argument : main.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    auto name = cast<StringAttr>(
        main.getArgAttr(argument.getArgNumber(), GraphDialect::kNameAttr));
    if (type.getRank() == 0 || type.getDimSize(0) == *recipe.batch.micro)
      continue;
    std::string found = type.isDynamicDim(0)
                            ? "an open number of"
                            : std::to_string(type.getDimSize(0));
    problems.add(ProblemClass::usage, "[batch]: micro is " +
                                          std::to_string(*recipe.batch.micro) +
                                          ", but input '" + name.str() +
                                          "' has " + found + " samples");
  }
}

RankedTensorType TrainedModel::getLogitsType() {
  return cast<RankedTensorType>(main.getResultTypes()[logits]);
}

bool TrainedModel::check() {
  checkBatch();
  return findLogits();
}

bool TrainedModel::findLogits() {
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
  RankedTensorType type = getLogitsType();
  target = getTargetType(recipe.loss, type, problems);
  if (target && isa<IntegerType>(target.getElementType()))
    classCount = type.getDimSize(getClassAxis(recipe.loss, type));
  checkTarget();
  checkWeights();
  return problems.get().size() == before;
}

/// The model's input of a name, or null.
BlockArgument TrainedModel::findInput(StringRef name) {
  auto attribute = StringAttr::get(main.getContext(), name);
  for (BlockArgument argument : main.getArguments())
    if (main.getArgAttr(argument.getArgNumber(), GraphDialect::kNameAttr) ==
        attribute)
      return argument;
  return nullptr;
}

/// An input that serves as the target must be one.
void TrainedModel::checkTarget() {
  BlockArgument input = target ? findInput(recipe.loss.target) : nullptr;
  if (!input || input.getType() == target)
    return;
  std::string text;
  llvm::raw_string_ostream(text)
      << "[loss]: target '" << recipe.loss.target << "' is the input "
      << input.getType() << ", expected " << target;
  if (mayMistakePositions(recipe.loss, getLogitsType(), input.getType()))
    text += std::string("; ") + kLossOfPositions;
  problems.add(ProblemClass::usage, text);
}

std::string TrainedModel::noteClassAxis() {
  RankedTensorType type = getLogitsType();
  auto isPositions = [&](BlockArgument input) {
    return isa<IntegerType>(getElementTypeOrSelf(input)) &&
           mayMistakePositions(recipe.loss, type, input.getType());
  };
  auto *input = llvm::find_if(main.getArguments(), isPositions);
  if (input == main.getArguments().end())
    return "";
  auto name = cast<StringAttr>(
      main.getArgAttr(input->getArgNumber(), GraphDialect::kNameAttr));
  std::string text;
  llvm::raw_string_ostream(text)
      << "[loss]: axis 1 of the logits, " << type << ", has the "
      << type.getDimSize(1) << " classes, as many as input '" << name.str()
      << "' has positions; " << kLossOfPositions;
  return text;
}

/// An input of the weights' name is taken for them when batches are filled.
void TrainedModel::checkWeights() {
  bool isTarget = target && recipe.loss.target == format::kSampleWeight;
  if (isTarget || findInput(format::kSampleWeight))
    problems.add(ProblemClass::unsupported,
                 std::string("the name '") + format::kSampleWeight +
                     "' is that of the weights of samples: give the input " +
                     "another one");
  if (recipe.batch.last == LastBatch::Pad && !hasTarget(recipe.loss))
    problems.add(ProblemClass::unsupported,
                 "[batch]: last = 'pad' gives samples weights, which a loss "
                 "that the model computes does not take");
}

RankedTensorType
TrainedModel::getVariableType(const Parameter &parameter) const {
  SmallVector<int64_t> shape(parameter.type.getShape());
  if (parameter.isTransposed)
    std::swap(shape[0], shape[1]);
  Type element = parameter.type.getElementType();
  if (recipe.compute == Precision::F64 && element.isF32())
    element = Float64Type::get(element.getContext());
  return RankedTensorType::get(shape, element);
}

RankedTensorType TrainedModel::getStoredType(const Parameter &parameter) const {
  RankedTensorType type = getVariableType(parameter);
  if (recipe.masterWeights || !parameter.isTrained || type.getRank() < 2 ||
      !type.getElementType().isF32())
    return type;
  MLIRContext *context = type.getContext();
  return recipe.compute == Precision::F16
             ? withElementType(type, Float16Type::get(context))
             : withElementType(type, BFloat16Type::get(context));
}

// --- In a function -----------------------------------------------------------

/// A weight that is a variable has its value, and so has the wide form of one
/// that is kept wide.
void TrainedModel::mapWeights(StepFunction &step, IRMapping &mapping) {
  main.walk([&](WeightOp op) {
    const Parameter *row = variables.lookup(op.getName());
    if (!row)
      return;
    TensorEmitter emitter(step.getBuilder(), op.getLoc());
    Value value = step.readAs(row->getName(), getVariableType(*row));
    if (row->isTransposed)
      value = emitter.emit<TransposeOp>(value, ArrayRef<int64_t>{1, 0});
    for (Operation *user : op->getUsers())
      if (auto cast = dyn_cast<CastOp>(user))
        if (cast.getType() == value.getType())
          mapping.map(cast.getResult(), value);
    mapping.map(op.getResult(), emitter.castTo(value, op.getType()));
  });
}

IRMapping TrainedModel::addInputs(StepFunction &step) {
  IRMapping mapping;
  for (BlockArgument argument : main.getArguments())
    mapping.map(argument,
                step.addInput(cast<RankedTensorType>(argument.getType()),
                              main.getArgAttrDict(argument.getArgNumber())));
  return mapping;
}

/// What main returns, computed in the step.
SmallVector<Value> TrainedModel::cloneModel(StepFunction &step,
                                            IRMapping mapping,
                                            bool isTraining) {
  mapWeights(step, mapping);
  Block &body = main.getBody().front();
  for (Operation &op : body.without_terminator())
    if (op.getNumResults() == 0 || !mapping.contains(op.getResult(0)))
      step.getBuilder().clone(op, mapping);
  // Holds the results while dropouts are replaced.
  Operation *end = step.getBuilder().clone(*body.getTerminator(), mapping);
  if (isTraining)
    applyDropouts(step, recipe);
  else
    eraseDropouts(step);
  SmallVector<Value> results(end->getOperands());
  end->erase();
  return results;
}

/// The input that holds the targets: one of the model's, if it has the name.
Value TrainedModel::addTarget(StepFunction &step, const IRMapping &inputs) {
  Builder &builder = step.getBuilder();
  auto name = builder.getStringAttr(recipe.loss.target);
  if (BlockArgument input = findInput(recipe.loss.target))
    return inputs.lookup(input);
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr(GraphDialect::kNameAttr, name)};
  if (classCount)
    attributes.push_back(builder.getNamedAttr(
        "graph.index_range", builder.getI64ArrayAttr({0, classCount - 1})));
  return step.addInput(target, builder.getDictionaryAttr(attributes));
}

Value TrainedModel::addWeights(StepFunction &step) {
  if (recipe.batch.last != LastBatch::Pad)
    return nullptr;
  Builder &builder = step.getBuilder();
  auto type =
      RankedTensorType::get({target.getDimSize(0)}, builder.getF32Type());
  auto name = builder.getNamedAttr(
      GraphDialect::kNameAttr, builder.getStringAttr(format::kSampleWeight));
  return step.addInput(type, builder.getDictionaryAttr(name));
}

/// The value that was converted to a narrower float to be returned.
static Value lookThroughNarrowing(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  if (cast && getElementTypeOrSelf(cast.getX()).isF64() &&
      getElementTypeOrSelf(value).isF32())
    return cast.getX();
  return value;
}

Forward TrainedModel::emit(StepFunction &step, bool isTraining, bool hasRanks) {
  IRMapping inputs = addInputs(step);
  Value targets = target ? addTarget(step, inputs) : Value();
  Value weights = addWeights(step);
  Forward forward;
  forward.results = cloneModel(step, inputs, isTraining);
  bool synchronises = hasRanks && recipe.synchronisesBatchNorms;
  if (isTraining)
    forward.statistics = trainBatchNorms(
        step.getBody(), [&](BatchNormOp op) { return isTrainedNorm(step, op); },
        synchronises ? step.read(StepField::world) : Value(), problems);
  Value output = lookThroughNarrowing(forward.results[logits]);
  TensorEmitter emitter(step.getBuilder(), step.getLoc());
  bool isFloat = targets && isa<FloatType>(getElementTypeOrSelf(targets));
  if (isFloat)
    targets = emitter.castTo(targets, cast<RankedTensorType>(output.getType()));
  forward.operands = {output, targets, weights};
  return forward;
}

/// A batch norm whose statistics are variables that the recipe trains.
bool TrainedModel::isTrainedNorm(StepFunction &step, BatchNormOp op) {
  std::optional<StringRef> mean = step.findName(op.getMean());
  std::optional<StringRef> variance = step.findName(op.getVariance());
  ParameterTraits traits;
  traits.name = mean.value_or("").str();
  bool isTrained = mean && variance && matchesAny(recipe.batchNorm, traits);
  if (isTrained && recipe.parallel.exact)
    problems.add(
        {ProblemClass::unsupported, getNodeName(op), "BatchNormalization",
         "parallel.exact: what a batch norm in training learns depends "
         "on the number of ranks; freeze it (batchnorm.mode)"});
  return isTrained;
}

void TrainedModel::emitPrediction(StepFunction &step) {
  SmallVector<Value> results = cloneModel(step, addInputs(step),
                                          /*isTraining=*/false);
  for (auto [i, value] : llvm::enumerate(results))
    step.addOutput(getResultName(main, i), value);
}

} // namespace tcc::train

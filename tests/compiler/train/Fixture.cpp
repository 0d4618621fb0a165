#include "tests/compiler/train/Fixture.h"

#include "compiler/train/MicroBatches.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::train;
using namespace tcc::graph;

Recipe tcc::train::parseRecipe(const std::string &text) {
  Problems problems;
  std::optional<Recipe> recipe = readRecipe(text, "r.toml", problems);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  problems.print(stream);
  EXPECT_TRUE(recipe.has_value()) << messages;
  return recipe.value_or(Recipe());
}

UpdateProgram::UpdateProgram(const std::string &text,
                             std::vector<Parameter> parameters)
    : recipe(parseRecipe(text)), parameters(std::move(parameters)) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, GraphDialect>();
  registerEvaluatorDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = ModuleOp::create(UnknownLoc::get(&context));
  declare();
  build();
  call("init", {});
}

void UpdateProgram::declare() {
  Builder builder(&context);
  std::vector<TrainedType> trained;
  for (Parameter &parameter : parameters) {
    Type element = recipe.compute == Precision::F64 ? builder.getF64Type()
                                                    : builder.getF32Type();
    auto type = RankedTensorType::get(parameter.shape, element);
    parameter.traits.rank = type.getRank();
    HostTensor tensor{type, {}};
    for (double value : parameter.values)
      tensor.elements.push_back(roundTo(element, Scalar{.f = value}));
    auto emit = [value = makeAttribute(tensor)](OpBuilder &b, Location loc,
                                                RankedTensorType) {
      return b.create<ConstantOp>(loc, value).getResult();
    };
    table.declare({parameter.traits.name, VariableKind::parameter, type, emit});
    trained.push_back({parameter.traits, type});
  }
  for (StepField field : {StepField::iteration, StepField::updates,
                          StepField::fault, StepField::seed})
    table.declare(field, builder.getI64Type(), 0);
  declareMicroBatches(table, builder);
  declareUpdate(table, recipe, trained);
}

void UpdateProgram::build() {
  StepFunction init(*module, format::EntryKind::init, table);
  for (const Variable &variable : table.getAll())
    init.write(variable.name, variable.initial(init.getBuilder(), init.getLoc(),
                                               variable.type));
  init.finish();
  StepFunction apply(*module, format::EntryKind::apply, table);
  auto empty = DictionaryAttr::get(&context);
  auto f64 = RankedTensorType::get({}, Float64Type::get(&context));
  std::vector<TrainedParameter> trained;
  for (const Parameter &parameter : parameters) {
    auto type = table.get(parameter.traits.name).type;
    trained.push_back({parameter.traits, apply.addInput(type, empty)});
  }
  Value count = apply.addInput(f64, empty), loss = apply.addInput(f64, empty);
  Metrics metrics = emitUpdate(apply, recipe, {trained, loss, count, kNominal});
  apply.addOutput("loss", metrics.loss);
  apply.addOutput("grad_norm", metrics.gradNorm);
  apply.addOutput("lr", metrics.lr);
  apply.addOutput("loss_scale", metrics.lossScale);
  apply.addOutput("skipped", metrics.skipped);
  apply.finish();
}

static HostTensor makeTensor(Type type, const Values &values) {
  HostTensor tensor{cast<RankedTensorType>(type), {}};
  for (double value : values)
    tensor.elements.push_back(tensor.isFloat() ? Scalar{.f = value}
                                               : Scalar{.i = int64_t(value)});
  return tensor;
}

void UpdateProgram::call(StringRef name, const std::vector<Values> &inputs) {
  auto function = module->lookupSymbol<func::FuncOp>(name);
  Evaluator::Tensors arguments;
  for (BlockArgument argument : function.getArguments()) {
    auto variable = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), GraphDialect::kVariableAttr);
    arguments.push_back(makeTensor(argument.getType(),
                                   variable ? state.at(variable.str())
                                            : inputs[argument.getArgNumber()]));
  }
  auto results = Evaluator().evaluate(function, arguments);
  if (!results) {
    ADD_FAILURE() << toString(results.takeError());
    return;
  }
  for (auto [index, tensor] : llvm::enumerate(*results)) {
    Values values;
    for (Scalar element : tensor.elements)
      values.push_back(tensor.isFloat() ? element.f : double(element.i));
    if (auto variable = function.getResultAttrOfType<StringAttr>(
            index, GraphDialect::kVariableAttr))
      state[variable.str()] = values;
    else
      metrics[function
                  .getResultAttrOfType<StringAttr>(index,
                                                   GraphDialect::kNameAttr)
                  .str()] = values[0];
  }
}

void UpdateProgram::apply(const std::vector<Values> &gradients, double count,
                          double lossTotal) {
  std::vector<Values> inputs = gradients;
  inputs.push_back({count});
  inputs.push_back({lossTotal});
  call("apply", inputs);
}

std::string UpdateProgram::describeSetting(const std::string &key) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << Attribute(table.get("set/" + key).setting);
  return text.substr(text.find('<'));
}

void UpdateProgram::set(const std::string &name, Values values) {
  EXPECT_TRUE(has(name)) << name;
  state[name] = std::move(values);
}

//===- Import.cpp - An exported program to a module -----------------------===//

#include "frontends/Importers.h"

#include "frontends/MainFunction.h"
#include "frontends/aten/Numbers.h"
#include "frontends/pt2/GraphRunner.h"
#include "frontends/pt2/Program.h"
#include "frontends/pt2/Types.h"
#include "runtime/package/Names.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using tcc::aten::Item;

namespace tcc::pt2 {

bool isProgram(const Archive &archive) {
  return archive.find("archive_format") != nullptr;
}

namespace {

/// Builds the module of one program.
class ProgramImporter {
public:
  ProgramImporter(const Archive &archive, const ImportOptions &options,
                  const plugin::Operators &operators, MLIRContext *context,
                  Problems &problems)
      : options(options), problems(problems), builder(context),
        sizes(context, options.bounds), program(archive, context, problems),
        tracer(builder, sizes, model.weights, problems, options.trains),
        runner(tracer, problems) {
    tracer.setOperators(&operators);
  }

  FailureOr<Model> run();

private:
  void declareInputs(Signature &signature);
  void declareInput(Signature &signature, const Json &spec);
  std::optional<SmallVector<Dim>> readDims(const std::string &name,
                                           const Json &meta);
  Dim readSymbol(const std::string &expression, const std::string &fallback);
  void addArguments(ArrayRef<ModelInput> inputs);
  void importOutputs();
  bool importOutput(const Json &spec);

  const ImportOptions &options;
  Problems &problems;
  OpBuilder builder;
  Sizes sizes;
  Model model;
  Program program;
  aten::Tracer tracer;
  GraphRunner runner;
  std::optional<MainFunction> main;
  Scope scope;
  /// The name of each symbol: its first place in the inputs.
  llvm::StringMap<std::string> symbols;
  std::vector<std::string> outputNames;
  llvm::StringSet<> takenNames;
  /// The copies of each value among the outputs.
  llvm::StringMap<int> returned;
  SmallVector<Value> outputs;
};

} // namespace

// --- Inputs ------------------------------------------------------------------

/// A dimension that is a symbol of its own, "Symbol('s77', ...)".
Dim ProgramImporter::readSymbol(const std::string &expression,
                                const std::string &fallback) {
  StringRef text = expression;
  StringRef name = text.split('\'').second.split('\'').first;
  bool isSymbol = text.starts_with("Symbol('") && text.count('(') == 1;
  if (!isSymbol)
    problems.add(ProblemClass::unsupported,
                 "dimension '" + fallback +
                     "' is an expression of others, which is not supported");
  auto [entry, isNew] = symbols.try_emplace(name, fallback);
  Dim dim{entry->second};
  const Json *ranges = program.getRanges();
  const Json *range = ranges ? find(*ranges, name) : nullptr;
  if (range) {
    dim.min =
        std::max<int64_t>(0, getInteger(find(*range, "min_val")).value_or(0));
    dim.max = getInteger(find(*range, "max_val")).value_or(kMaxElements);
  }
  return dim;
}

std::optional<SmallVector<Dim>>
ProgramImporter::readDims(const std::string &name, const Json &meta) {
  SmallVector<Dim> dims;
  for (const Json &size : getList(find(meta, "sizes"))) {
    std::string fallback = name + "." + std::to_string(dims.size());
    const Json *expression = find(size, "as_expr");
    auto extent = getInteger(find(size, "as_int"));
    if (expression)
      dims.push_back(readSymbol(getText(*expression, "expr_str"), fallback));
    else if (extent && *extent >= 0)
      dims.push_back({"", *extent});
    else
      return std::nullopt;
  }
  return dims;
}

void ProgramImporter::declareInput(Signature &signature, const Json &spec) {
  const Json *argument = find(spec, "arg");
  auto [kind, value] = argument ? getChoice(*argument) : Choice();
  std::string name = value ? getText(*value, "name") : "";
  if (kind != "as_tensor") {
    // A number that the program was exported with.
    return problems.add(ProblemClass::unsupported,
                        "an input of kind '" + kind + "' is not supported");
  }
  const Json *values = find(program.getGraph(), "tensor_values");
  const Json *meta = values ? find(*values, name) : nullptr;
  auto dims = meta ? readDims(name, *meta) : std::nullopt;
  if (!dims)
    return problems.add(ProblemClass::badBytes,
                        "input '" + name + "' has no valid shape");
  Type type =
      getElementType(getInteger(find(*meta, "dtype")), builder.getContext());
  if (!type)
    return problems.add(ProblemClass::unsupported,
                        "input '" + name +
                            "' has an element type that is not "
                            "supported");
  signature.add({name, type, std::move(dims)});
}

void ProgramImporter::declareInputs(Signature &signature) {
  llvm::StringSet<> names;
  for (const Json &spec :
       getList(find(program.getSignature(), "input_specs"))) {
    auto [kind, value] = getChoice(spec);
    if (kind != "user_input")
      continue;
    const Json *argument = find(*value, "arg");
    const Json *tensor = argument ? getChoice(*argument).value : nullptr;
    if (tensor && !names.insert(getText(*tensor, "name")).second)
      problems.add(ProblemClass::badBytes, "an input is listed twice");
    else
      declareInput(signature, *value);
  }
}

void ProgramImporter::addArguments(ArrayRef<ModelInput> inputs) {
  for (auto [i, input] : llvm::enumerate(inputs))
    scope.items[input.name] = Item::of(tracer.makeVariable(main->getInput(i)));
  // Arguments that share a tensor share the variable.
  llvm::StringMap<aten::Variable *> variables;
  for (StoredTensor &stored : program.getTensors()) {
    std::string name = stored.weight.name;
    aten::Variable *&variable = variables[name];
    if (!variable)
      variable = tracer.makeStored(std::move(stored.weight));
    scope.items[stored.argument] = Item::of(variable);
  }
}

// --- Outputs -----------------------------------------------------------------

/// False for an output that is none of the model's.
bool ProgramImporter::importOutput(const Json &spec) {
  auto [kind, value] = getChoice(spec);
  const Json *argument = value ? find(*value, "arg") : nullptr;
  if (kind != "user_output" || !argument) {
    problems.add(ProblemClass::unsupported,
                 "an output of kind '" + kind +
                     "' (the program changes its own tensors) is not "
                     "supported");
    return false;
  }
  auto [form, tensor] = getChoice(*argument);
  std::string name = tensor ? getText(*tensor, "name") : "";
  if (form == "as_none")
    return true;
  auto item = runner.getItem(*argument, scope);
  if (!item)
    return false;
  if (!item->is(Item::Kind::tensor)) {
    problems.add(ProblemClass::unsupported, "output '" + name + "' is " +
                                                aten::getKindName(*item).str() +
                                                ", not a tensor");
    return false;
  }
  auto loc = NameLoc::get(builder.getStringAttr(name));
  Emitter emitter(builder, loc, sizes);
  outputs.push_back(tracer.materialize(emitter, *item->tensor));
  if (emitter.hasFailed())
    problems.add(emitter.isUnsupported() ? ProblemClass::unsupported
                                         : ProblemClass::badBytes,
                 "output '" + name + "': " + emitter.getMessage());
  // One value may be returned twice.
  std::string unique = name;
  int &count = returned[name];
  while (!takenNames.insert(unique).second)
    unique = name + "#" + std::to_string(++count + 1);
  outputNames.push_back(unique);
  return true;
}

void ProgramImporter::importOutputs() {
  Json named = Json::array();
  for (const std::string &name : options.outputs)
    named.push_back(
        {{"user_output", {{"arg", {{"as_tensor", {{"name", name}}}}}}}});
  const Json *specs = options.outputs.empty()
                          ? find(program.getSignature(), "output_specs")
                          : &named;
  for (const std::string &name : options.outputs)
    if (!scope.items.contains(name))
      problems.add(ProblemClass::usage,
                   "output '" + name + "' is not a value of the graph");
  if (!problems.empty())
    return;
  for (const Json &spec : getList(specs))
    importOutput(spec);
  if (problems.empty() && outputs.empty())
    problems.add(ProblemClass::badBytes, "the program has no outputs");
}

FailureOr<Model> ProgramImporter::run() {
  if (!program.read(options.readWeights))
    return failure();
  Signature signature(options, sizes, problems, model.notes);
  declareInputs(signature);
  std::vector<ModelInput> inputs = signature.resolve();
  model.batch = signature.getBatch();
  model.variants = signature.takeVariants();
  main.emplace(builder, format::nameOf(format::EntryKind::main), inputs);
  tracer.setEntry(main->getEntry());
  addArguments(inputs);
  runner.run(program.getGraph(), scope);
  if (problems.empty())
    importOutputs();
  if (!problems.empty())
    return failure();
  main->setResults(outputNames, outputs);
  main->setStates(options.states, problems);
  if (!problems.empty())
    return failure();
  model.module = main->take(sizes, problems, model.notes);
  model.addAliases(program.getAliases());
  return std::move(model);
}

FailureOr<Model> importArchive(const Archive &archive,
                               const ImportOptions &options,
                               const plugin::Operators &operators,
                               MLIRContext *context, Problems &problems) {
  return ProgramImporter(archive, options, operators, context, problems).run();
}

} // namespace tcc::pt2

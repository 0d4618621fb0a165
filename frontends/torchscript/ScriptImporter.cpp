#include "frontends/torchscript/ScriptImporter.h"
#include "runtime/package/Names.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tcc::torchscript {

using Kind = aten::Item::Kind;
using llvm::StringRef;

constexpr int kMaxModuleDepth = 100;
constexpr size_t kMaxOutputs = 1024;

void ScriptImporter::fail(ProblemClass kind, const llvm::Twine &message) {
  problems.add(kind, message.str());
}

// --- The archive -------------------------------------------------------------

bool ScriptImporter::checkFormat() {
  std::string error;
  const Archive::Entry *version = archive.find("version");
  if (!version)
    version = archive.find(".data/version");
  const Archive::Entry *order = archive.find("byteorder");
  auto number = version ? archive.read(*version, error) : std::nullopt;
  auto text = order ? archive.read(*order, error) : std::nullopt;
  int64_t value = 0;
  if (!number || StringRef(*number).trim().getAsInteger(10, value))
    fail(ProblemClass::badBytes, "has no version");
  else if (value < 3 || value > 10)
    fail(ProblemClass::unsupported,
         "is of version " + llvm::Twine(value) + "; 3 to 10 are supported");
  else if (order && (!text || StringRef(*text).trim() != "little"))
    fail(ProblemClass::unsupported, "is not in little-endian byte order");
  return problems.empty();
}

std::optional<aten::Item> ScriptImporter::unpickle(const std::string &folder,
                                                   bool readsWeights) {
  std::string error = "is not there";
  const Archive::Entry *entry = archive.find(folder + ".pkl");
  auto text = entry ? archive.read(*entry, error) : std::nullopt;
  std::optional<Item> item;
  if (text)
    item = Unpickler(archive, folder, tracer, readsWeights).read(*text, error);
  if (!item)
    fail(ProblemClass::badBytes, "'" + folder + ".pkl' " + error);
  return item;
}

/// {'forward': [tensors]} of a traced model: their types, without elements.
void ScriptImporter::readExamples() {
  if (!archive.find("traced_inputs.pkl"))
    return;
  auto item = unpickle("traced_inputs", false);
  auto methods = item ? getAs<Dictionary>(*item) : nullptr;
  for (const auto &[key, value] :
       methods ? methods->entries : decltype(methods->entries)())
    if (key.text == "forward" && value.isSequence())
      for (const Item &example : *value.items)
        examples.push_back(example.is(Kind::tensor)
                               ? tracer.getType(*example.tensor)
                               : nullptr);
}

bool ScriptImporter::readArchive() {
  std::string error;
  if (!checkFormat())
    return false;
  if (!code.read(archive, error)) {
    fail(ProblemClass::badBytes, error);
    return false;
  }
  auto data = unpickle("data", options.readWeights);
  auto values =
      data ? unpickle("constants", options.readWeights) : std::nullopt;
  if (!values)
    return false;
  root = *data;
  if (!values->isSequence() || !getAs<Instance>(root)) {
    fail(ProblemClass::badBytes, "is not a module");
    return false;
  }
  constants = *values->items;
  for (auto [i, item] : llvm::enumerate(constants))
    if (item.is(Kind::tensor) && item.tensor->stored) {
      item.tensor->stored->name = "CONSTANTS.c" + std::to_string(i);
      item.tensor->stored->role = WeightRole::constant;
    }
  namePlaces(root, "", 0);
  readExamples();
  return problems.empty();
}

// --- Names -------------------------------------------------------------------

/// Names a stored tensor; a tied one keeps its first name.
void ScriptImporter::nameTensor(const Item &item, const Instance &owner,
                                const std::string &name,
                                const std::string &path) {
  if (!item.tensor->stored)
    return;
  Weight &weight = *item.tensor->stored;
  bool isTied =
      weight.role == WeightRole::parameter || weight.role == WeightRole::buffer;
  if (isTied && weight.name != path)
    aliases.push_back({path, weight.name});
  if (weight.role != WeightRole::unknown)
    return;
  weight.name = path;
  auto parameters = code.getNames(owner.className, "__parameters__");
  auto buffers = code.getNames(owner.className, "__buffers__");
  weight.role = llvm::is_contained(parameters, name) ? WeightRole::parameter
                : llvm::is_contained(buffers, name)  ? WeightRole::buffer
                                                     : WeightRole::constant;
}

/// Modules and tensors get the names that they have in a state_dict.
void ScriptImporter::namePlaces(const Item &item, const std::string &path,
                                int depth) {
  auto instance = getAs<Instance>(item);
  if (!instance || depth > kMaxModuleDepth)
    return;
  if (depth > 0 && !instance->path.empty())
    return; // named already
  instance->path = path;
  for (auto &[name, value] : instance->attributes) {
    std::string inner = path.empty() ? name : path + "." + name;
    if (value.is(Kind::tensor)) {
      nameTensor(value, *instance, name, inner);
      initial[inner] = value;
    }
    if (name == "training")
      value = Item::ofBoolean(sizes.constant(0));
    else
      namePlaces(value, inner, depth + 1);
  }
}

// --- Inputs ------------------------------------------------------------------

/// A number that forward takes: what --input-value gives.
std::optional<aten::Item> ScriptImporter::readFixed(const Node &parameter) {
  StringRef type = parameter[0].text;
  auto given = llvm::find_if(options.inputValues, [&](const InputValue &value) {
    return value.name == parameter.text;
  });
  if (given == options.inputValues.end()) {
    fail(ProblemClass::usage, "input '" + parameter.text +
                                  "' is a number on which code may depend; "
                                  "give --input-value");
    return std::nullopt;
  }
  int64_t integer = 0;
  double real = 0;
  StringRef text = given->text;
  bool isTrue = text == "true" || text == "1";
  if (type == "bool")
    return Item::ofBoolean(sizes.constant(isTrue));
  if (type == "int" && !text.getAsInteger(10, integer))
    return Item::ofInteger(sizes.constant(integer));
  if (type == "float" && !text.getAsDouble(real))
    return Item::ofReal(real);
  fail(ProblemClass::usage,
       "'" + text + "' is not a value of input '" + parameter.text + "'");
  return std::nullopt;
}

/// A tensor as it was traced; else what indexes is of integers.
void ScriptImporter::declareTensor(const std::string &name,
                                   RankedTensorType traced,
                                   Signature &signature) {
  Builder types(builder.getContext());
  bool isIndices = before.indices.count(name) != 0;
  DeclaredInput input{
      name, isIndices ? Type(types.getI64Type()) : Type(types.getF32Type()),
      std::nullopt};
  if (!traced && !isIndices)
    untyped.insert(name);
  if (!traced)
    return signature.add(std::move(input));
  input.elementType = traced.getElementType();
  bool isGiven = llvm::any_of(options.inputShapes, [&](const auto &shape) {
    return shape.name == name;
  });
  if (!isGiven)
    input.dims.emplace();
  for (int64_t extent : isGiven ? ArrayRef<int64_t>() : traced.getShape())
    input.dims->push_back({"", extent});
  signature.add(std::move(input));
}

void ScriptImporter::declareInputs(const Node &forward, Signature &signature) {
  Builder types(builder.getContext());
  size_t example = 0;
  for (size_t i = 1; i + 1 < forward.size(); ++i) {
    const Node &parameter = forward[i];
    StringRef type = parameter[0].text;
    if (type == "Tensor") {
      declareTensor(parameter.text,
                    example < examples.size() ? examples[example] : nullptr,
                    signature);
      ++example;
    } else if (type == "int" || type == "float" || type == "bool") {
      Type element = type == "int"     ? Type(types.getI64Type())
                     : type == "float" ? Type(types.getF32Type())
                                       : Type(types.getI1Type());
      readFixed(parameter);
      signature.add({parameter.text, element, SmallVector<Dim>()});
    } else if (parameter.size() < 2) {
      fail(ProblemClass::unsupported,
           "input '" + parameter.text +
               "' is neither a tensor nor a number, which is not supported");
    }
  }
  for (const auto &[path, kept] : before.attributes)
    if (kept.type) {
      SmallVector<Dim> dims;
      for (int64_t extent : kept.type.getShape())
        dims.push_back({"", extent});
      signature.add({path, kept.type.getElementType(), dims});
    }
}

aten::Item *ScriptImporter::findAttribute(StringRef path) {
  auto instance = getAs<Instance>(root);
  while (instance) {
    // A module's own name has no dots.
    auto found = instance->attributes.find(path.str());
    if (found != instance->attributes.end())
      return &found->second;
    auto [name, rest] = path.split('.');
    found = instance->attributes.find(name.str());
    if (found == instance->attributes.end())
      return nullptr;
    instance = getAs<Instance>(found->second);
    path = rest;
  }
  return nullptr;
}

/// States are inputs; other attributes have what the last import left.
void ScriptImporter::replaceStates(ArrayRef<ModelInput> inputs) {
  for (const auto &[path, kept] : before.attributes) {
    Item *attribute = findAttribute(path);
    if (!attribute)
      continue;
    *attribute = kept.item;
    for (auto [i, input] : llvm::enumerate(inputs))
      if (kept.type && input.name == path)
        *attribute = Item::of(tracer.makeVariable(main->getInput(i)));
  }
}

// --- Outputs -----------------------------------------------------------------

bool ScriptImporter::addOutput(const Item &item, const std::string &name) {
  if (item.is(Kind::none))
    return true;
  auto loc = NameLoc::get(builder.getStringAttr(name));
  Emitter emitter(builder, loc, sizes);
  const Item &tensor =
      item.isNumber() ? Item::of(tracer.makeNumber(item)) : item;
  if (!tensor.is(Kind::tensor)) {
    fail(ProblemClass::unsupported, "output '" + name + "' is " +
                                        aten::getKindName(item) +
                                        ", which is not supported");
    return false;
  }
  outputs.push_back(tracer.materialize(emitter, *tensor.tensor));
  outputNames.push_back(name);
  if (emitter.hasFailed())
    fail(emitter.isUnsupported() ? ProblemClass::unsupported
                                 : ProblemClass::badBytes,
         "output '" + name + "': " + emitter.getMessage());
  return outputs.back() != nullptr;
}

/// Tensors of tuples, lists and dictionaries, by their names or positions.
bool ScriptImporter::addOutputs(const Item &result, const std::string &name) {
  if (outputNames.size() > kMaxOutputs || name.size() > kMaxOutputs) {
    fail(ProblemClass::badBytes,
         "returns too many values, or a list that holds itself");
    return false;
  }
  if (auto dictionary = getAs<Dictionary>(result)) {
    for (const auto &[key, value] : dictionary->entries)
      if (!addOutputs(value, key.is(Kind::text) ? key.text : name))
        return false;
    return true;
  }
  if (!result.isSequence())
    return addOutput(result, name);
  auto names = getAs<TupleNames>(result);
  for (auto [i, item] : llvm::enumerate(*result.items)) {
    bool isNamed = names && i < names->names.size();
    if (!addOutputs(item,
                    isNamed ? names->names[i] : name + "." + std::to_string(i)))
      return false;
  }
  return true;
}

// --- States ------------------------------------------------------------------

bool ScriptImporter::isZero(const Item &item, RankedTensorType type) {
  if (!item.is(Kind::tensor) || tracer.getType(*item.tensor) != type)
    return false;
  if (item.tensor->stored && !item.tensor->value)
    return llvm::all_of(item.tensor->stored->bytes,
                        [](char byte) { return byte == 0; });
  const HostTensor *known = tracer.getElements(*item.tensor);
  return known && llvm::all_of(known->elements, [&](Scalar element) {
           return known->isFloat() ? element.f == 0 : element.i == 0;
         });
}

/// What forward leaves in attributes: tensors are outputs, too.
Attributes ScriptImporter::finishStates(const Interpreter &interpreter) {
  Attributes left;
  for (const auto &[instance, name] : interpreter.getAssigned()) {
    bool isModel = instance == getAs<Instance>(root);
    if (!isModel && instance->path.empty())
      continue; // an object of this call
    std::string path = isModel ? name : instance->path + "." + name;
    const Item &item = instance->attributes[name];
    if (item.is(Kind::tensor))
      left[path] = {tracer.getType(*item.tensor), {}};
    else if (item.isNumber() || item.is(Kind::none) || item.is(Kind::text))
      left[path] = {nullptr, item};
    else
      fail(ProblemClass::unsupported,
           "attribute '" + path + "', which forward changes, is " +
               aten::getKindName(item) + "; this is not supported");
  }
  // Attributes forward assigned in an import before, and may in a call before.
  left.insert(before.attributes.begin(), before.attributes.end());
  // Buffers that it wrote to in place.
  for (const auto &[path, before] : initial) {
    const Item *item = findAttribute(path);
    bool isTensor = item && item->is(Kind::tensor);
    aten::Variable *base = isTensor ? item->tensor->getRoot() : nullptr;
    if (base && (base->version != 0 || base->isUnknown))
      left[path] = {tracer.getType(*item->tensor), {}};
  }
  for (const auto &[path, kept] : left) {
    if (!kept.type)
      continue;
    if (!kept.type.hasStaticShape())
      fail(ProblemClass::unsupported,
           "state '" + path + "' has no static shape");
    auto first = initial.find(path);
    isOtherwise |= first != initial.end() && !isZero(first->second, kept.type);
    if (addOutput(*findAttribute(path), path + ".next"))
      states.push_back({path + ".next", path});
  }
  return left;
}

/// Inputs that have turned out to be indices make the import begin again.
void ScriptImporter::compareFindings(ArrayRef<ModelInput> inputs,
                                     Attributes left) {
  Findings now{std::move(left), before.indices};
  for (auto [position, input] : llvm::enumerate(inputs))
    if (tracer.isIndices(main->getInput(position)))
      now.indices.insert(input.name);
  if (now.indices != before.indices)
    now.attributes = before.attributes;
  else if (now.attributes == before.attributes)
    return;
  changed = std::move(now);
}

// --- All of it ---------------------------------------------------------------

/// Inputs, what is fixed, and defaults.
std::vector<aten::Item>
ScriptImporter::makeArguments(const Node &forward, ArrayRef<ModelInput> inputs,
                              Interpreter &interpreter) {
  std::vector<Item> arguments;
  for (size_t i = 1; i + 1 < forward.size() && problems.empty(); ++i) {
    const Node &parameter = forward[i];
    std::optional<Item> argument;
    for (auto [position, input] : llvm::enumerate(inputs)) {
      if (input.name != parameter.text)
        continue;
      Value value = main->getInput(position);
      argument = Item::of(tracer.makeVariable(value));
      if (untyped.count(input.name))
        tracer.addUntyped(value);
    }
    if (argument && parameter[0].text != "Tensor")
      argument = readFixed(parameter);
    if (!argument && parameter.size() == 2)
      argument = interpreter.evaluateDefault(parameter[1]);
    if (argument)
      arguments.push_back(*argument);
  }
  return arguments;
}

FailureOr<Model> ScriptImporter::run() {
  if (!readArchive())
    return failure();
  auto instance = getAs<Instance>(root);
  const Node *forward = code.findMethod(instance->className, "forward");
  if (!forward || forward->size() < 2) {
    fail(ProblemClass::unsupported, "has no method forward");
    return failure();
  }
  Signature signature(options, sizes, problems, model.notes);
  declareInputs(*forward, signature);
  std::vector<ModelInput> inputs = signature.resolve();
  model.batch = signature.getBatch();
  model.variants = signature.takeVariants();
  main.emplace(builder, format::nameOf(format::EntryKind::main), inputs);
  tracer.setEntry(main->getEntry());
  replaceStates(inputs);
  Interpreter interpreter(code, tracer, problems, constants);
  std::vector<Item> arguments = makeArguments(*forward, inputs, interpreter);
  if (!problems.empty())
    return failure();
  auto result = interpreter.callMethod(root, *forward, arguments);
  if (!result || !problems.empty())
    return failure();
  addOutputs(*result, "output");
  compareFindings(inputs, finishStates(interpreter));
  if (problems.empty() &&
      (outputs.empty() || llvm::is_contained(outputs, Value())))
    fail(ProblemClass::badBytes, "forward returns nothing");
  if (!problems.empty())
    return failure();
  main->setResults(outputNames, outputs);
  if (!changed) {
    llvm::append_range(states, options.states);
    main->setStates(states, problems);
  }
  if (!problems.empty())
    return failure();
  model.module = main->take(sizes, problems, model.notes);
  model.addAliases(aliases);
  for (const std::string &name : untyped)
    model.notes.push_back("input '" + name +
                          "' is taken as f32: the model has no type for it");
  return std::move(model);
}

} // namespace tcc::torchscript

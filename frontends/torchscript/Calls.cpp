//===- Calls.cpp - Functions, methods and operators -----------------------===//

#include "frontends/torchscript/Interpreter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tcc::torchscript {

using Kind = aten::Item::Kind;
using llvm::StringRef;

/// Nodes are named by the module that they are of and their op, numbered where
/// there are several.
aten::Request Interpreter::makeRequest(StringRef name) {
  steps += kOperatorSteps;
  aten::Request request;
  request.name = name;
  request.site = frame ? frame->site : "";
  request.place = frame ? code.getPlace(*frame->function, line) : "";
  std::string node =
      request.site.empty() ? name.str() : request.site + "." + name.str();
  int count = counts[node]++;
  request.node = count == 0 ? node : node + "#" + std::to_string(count + 1);
  return request;
}

// --- Functions of the archive ------------------------------------------------

std::optional<aten::Item> Interpreter::callFunction(const Node &function,
                                                    const Arguments &arguments,
                                                    std::string site) {
  if (depth >= kMaxDepth)
    return unsupported("code that calls itself, or calls nested so deeply,");
  Frame callee{&function, {}, {}, std::move(site)};
  const auto &children = function.children; // parameters, then the block
  size_t count = children.size() - 1;
  if (arguments.positional.size() > count)
    return malformed("a call has too many arguments");
  for (size_t i = 0; i < count; ++i) {
    const Node &parameter = *children[i];
    auto named = llvm::find_if(arguments.named, [&](const auto &argument) {
      return argument.first == parameter.text;
    });
    std::optional<Item> item;
    if (i < arguments.positional.size())
      item = arguments.positional[i];
    else if (named != arguments.named.end())
      item = named->second;
    else if (parameter.size() == 2)
      item = evaluateDefault(parameter[1]);
    else
      return malformed("a call lacks argument '" + parameter.text + "'");
    if (!item)
      return std::nullopt;
    callee.names[parameter.text] = *item;
  }
  Frame *caller = frame;
  int callLine = line;
  frame = &callee;
  ++depth;
  Flow flow = runBlock(*children.back());
  --depth;
  frame = caller;
  line = callLine;
  if (flow == Flow::failure)
    return std::nullopt;
  return callee.result;
}

std::optional<aten::Item> Interpreter::callMethod(const Item &self,
                                                  const Node &function,
                                                  ArrayRef<Item> arguments) {
  Arguments all;
  all.positional.push_back(self);
  all.positional.append(arguments.begin(), arguments.end());
  auto instance = getAs<Instance>(self);
  return callFunction(function, all, instance ? instance->path : "");
}

std::optional<aten::Item> Interpreter::call(const Node &function,
                                            ArrayRef<Item> arguments,
                                            std::string site) {
  Arguments all;
  all.positional.append(arguments.begin(), arguments.end());
  return callFunction(function, all, std::move(site));
}

bool Interpreter::evaluateArguments(const Node &call, Arguments &arguments) {
  for (size_t i = 1; i < call.size(); ++i) {
    bool isNamed = call[i].kind == Node::Kind::keyword;
    auto item = evaluate(isNamed ? call[i][0] : call[i]);
    if (!item)
      return false;
    if (isNamed)
      arguments.named.push_back({call[i].text, std::move(*item)});
    else
      arguments.positional.push_back(std::move(*item));
  }
  return true;
}

/// A new instance, whose __init__ runs; or a named tuple.
std::optional<aten::Item> Interpreter::construct(StringRef name,
                                                 const Node &definition,
                                                 const Arguments &arguments) {
  const Node &bases = definition[0];
  bool isTuple = bases.size() == 1 && bases[0].text == "NamedTuple";
  if (isTuple) {
    auto names = std::make_shared<TupleNames>();
    for (const auto &member : definition[1].children)
      if (member->kind == Node::Kind::declare)
        names->names.push_back((*member)[0].text);
    Item tuple = Item::ofItems(Kind::tuple, {arguments.positional.begin(),
                                             arguments.positional.end()});
    tuple.object = names;
    return tuple;
  }
  auto instance = std::make_shared<Instance>();
  instance->className = name.str();
  Item item = aten::Item::ofObject(instance);
  const Node *init = code.findMethod(name, "__init__");
  if (!init)
    return item;
  Arguments all = arguments;
  all.positional.insert(all.positional.begin(), item);
  if (!callFunction(*init, all, frame ? frame->site : ""))
    return std::nullopt;
  return item;
}

// --- Calls -------------------------------------------------------------------

/// int(x), float(x), bool(x): of a tensor the number that it holds, or a tensor
/// of rank 0 that goes on standing for it.
std::optional<aten::Item> Interpreter::convert(StringRef type,
                                               const Item &item) {
  std::optional<Item> number = item;
  if (item.is(Kind::tensor))
    number = tracer.getNumber(*item.tensor);
  if (!number) {
    aten::Request request = makeRequest("to");
    int64_t scalarType = type == "int" ? 4 : type == "float" ? 6 : 11;
    request.positional = {item, ofInteger(scalarType)};
    return tracer.run(request);
  }
  if (type == "str")
    return Item::ofText("");
  if (number->is(Kind::text)) {
    double real;
    if (StringRef(number->text).getAsDouble(real))
      return malformed("'" + number->text + "' is no number");
    number = Item::ofReal(real);
  }
  if (!number->isNumber())
    return malformed(aten::getKindName(item) + " is no number");
  StringRef function = type == "int"     ? "Int"
                       : type == "float" ? "Float"
                                         : "Bool";
  if (type == "bool" && number->is(Kind::boolean))
    return number;
  std::string refusal;
  auto result = aten::computeNumber(tracer, function, *number, refusal);
  if (!result && type == "float")
    return number; // a size goes on as it is
  return result ? result : unsupported(type + " of a symbolic size");
}

/// Names that are no values.
std::optional<aten::Item> Interpreter::callSpecial(const Node &call,
                                                   StringRef name) {
  bool isCast = name == "annotate" || name == "unchecked_cast";
  if (isCast && call.size() == 3)
    return evaluate(call[2]);
  if (name == "uninitialized")
    return Item();
  if (name == "isinstance")
    return unsupported("isinstance");
  Arguments arguments;
  if (!evaluateArguments(call, arguments))
    return std::nullopt;
  ArrayRef<Item> items = arguments.positional;
  if (name == "getattr" && items.size() == 2 && items[1].is(Kind::text))
    return getAttribute(items[0], items[1].text);
  bool isType = llvm::StringSwitch<bool>(name)
                    .Cases("int", "float", "bool", "str", true)
                    .Default(false);
  if (isType && items.size() == 1)
    return convert(name, items[0]);
  bool isFunction = llvm::StringSwitch<bool>(name)
                        .Cases("abs", "len", "max", "min", true)
                        .Default(false);
  if (isFunction)
    return callTorch(name, arguments);
  return malformed("'" + name + "' cannot be called");
}

std::optional<aten::Item> Interpreter::evaluateCall(const Node &call) {
  const Node &callee = call[0];
  bool isSpecial = callee.kind == Node::Kind::name &&
                   (!frame || !frame->names.contains(callee.text));
  if (isSpecial)
    return callSpecial(call, callee.text);
  bool isMember = callee.kind == Node::Kind::attribute;
  auto object = isMember ? evaluate(callee[0]) : std::nullopt;
  // x.sum(0) is torch.sum(x, 0).
  bool isMethod = object && (object->is(Kind::tensor) || object->isSequence());
  std::optional<Item> function;
  if (!isMember)
    function = evaluate(callee);
  else if (object && !isMethod)
    function = getAttribute(*object, callee.text);
  Arguments arguments;
  if ((!function && !isMethod) || !evaluateArguments(call, arguments))
    return std::nullopt;
  line = call.line;
  if (isMethod) {
    arguments.positional.insert(arguments.positional.begin(), *object);
    return callTorch(callee.text, arguments);
  }
  if (auto method = getAs<Method>(*function)) {
    if (!method->function)
      return Item(); // the __init__ of a class without one
    auto instance = getAs<Instance>(method->self);
    arguments.positional.insert(arguments.positional.begin(), method->self);
    std::string site = instance->path;
    if (site.empty() && frame)
      site = frame->site;
    return callFunction(*method->function, arguments, site);
  }
  auto path = getAs<Path>(*function);
  return path ? callPath(path->name, arguments)
              : malformed("what is called is no function");
}

/// The operator that ops.DOMAIN.NAME is; null if no plugin has it.
const plugin::Operator *Interpreter::findCustom(StringRef path) const {
  if (!path.consume_front("ops.") || !tracer.getOperators())
    return nullptr;
  auto [domain, name] = path.split('.');
  return tracer.getOperators()->find((domain + "::" + name).str());
}

std::optional<aten::Item> Interpreter::callPath(StringRef name,
                                                Arguments &arguments) {
  if (const Node *definition = code.find(name)) {
    if (definition->kind == Node::Kind::definition)
      return construct(name, *definition, arguments);
    return callFunction(*definition, arguments, frame ? frame->site : "");
  }
  if (name.consume_back(".__new__") && !arguments.positional.empty()) {
    auto path = getAs<Path>(arguments.positional[0]);
    auto instance = std::make_shared<Instance>();
    instance->className = path ? path->name : name.str();
    return aten::Item::ofObject(instance);
  }
  if (name.consume_front("ops.prim."))
    return callPrim(name, arguments);
  if (name.consume_front("torch.") || name.consume_front("ops.aten."))
    return callTorch(name, arguments);
  if (const plugin::Operator *op = findCustom(name)) {
    aten::Request request = makeRequest(op->name);
    request.positional = arguments.positional;
    for (const auto &[key, value] : arguments.named)
      request.named.push_back({key, value});
    return tracer.run(request);
  }
  return unsupported("'" + name + "'");
}

std::optional<aten::Item> Interpreter::callPrim(StringRef name,
                                                Arguments &arguments) {
  ArrayRef<Item> items = arguments.positional;
  if (items.empty())
    return malformed("'" + name + "' without an argument");
  if (name == "NumToTensor")
    return Item::of(tracer.makeNumber(items[0]));
  if (name == "RaiseException")
    return fail(ProblemClass::usage, "the model raises: " + items[0].text);
  if (name == "type")
    return Item::ofText("cpu");
  if (items[0].is(Kind::tensor) && items.size() == 1 && name != "max" &&
      name != "min")
    return getTensorAttribute(items[0], name);
  return callTorch(name, arguments);
}

/// torch.tensor of a number or of a list of them.
std::optional<aten::Item> Interpreter::makeTensor(const Arguments &arguments) {
  SmallVector<Item> flat;
  SmallVector<int64_t> extents;
  Item level = arguments.positional[0];
  std::vector<Item> items = {level};
  while (!items.empty() && items[0].isSequence()) {
    std::vector<Item> inner;
    extents.push_back(items[0].items->size());
    for (const Item &item : items) {
      if (!item.isSequence() || int64_t(item.items->size()) != extents.back())
        return malformed("a tensor of lists of different lengths");
      inner.insert(inner.end(), item.items->begin(), item.items->end());
    }
    items = std::move(inner);
  }
  aten::Request request = makeRequest("scalar_tensor");
  for (const auto &[key, value] : arguments.named)
    if (key == "dtype")
      request.named.push_back({"dtype", value});
  if (extents.empty()) {
    request.positional.push_back(items[0]);
    return tracer.run(request);
  }
  if (items.empty() || items.size() > size_t(kMaxContent))
    return unsupported("a tensor of no or of many numbers");
  std::vector<Item> parts;
  for (const Item &item : items) {
    request.positional.assign({item});
    auto part = tracer.run(request);
    if (!part)
      return std::nullopt;
    parts.push_back(*part);
  }
  aten::Request stack = makeRequest("stack");
  stack.positional.push_back(Item::ofItems(Kind::list, std::move(parts)));
  auto vector = tracer.run(stack);
  if (!vector || extents.size() == 1)
    return vector;
  std::vector<Item> sizes;
  for (int64_t extent : extents)
    sizes.push_back(ofInteger(extent));
  aten::Request reshape = makeRequest("reshape");
  reshape.positional = {*vector, Item::ofItems(Kind::list, std::move(sizes))};
  return tracer.run(reshape);
}

std::optional<aten::Item> Interpreter::callTorch(StringRef name,
                                                 Arguments &arguments) {
  bool isKnown = true;
  auto result = callBuiltin(name, arguments, isKnown);
  if (isKnown)
    return result;
  if ((name == "tensor" || name == "as_tensor") &&
      !arguments.positional.empty() &&
      !arguments.positional[0].is(Kind::tensor))
    return makeTensor(arguments);
  aten::Request request = makeRequest(name);
  request.positional = arguments.positional;
  for (const auto &[key, value] : arguments.named)
    request.named.push_back({key, value});
  if (aten::isOfNumbers(request)) {
    std::string refusal;
    auto number =
        aten::computeNumber(tracer, name, request.positional, refusal);
    if (!number)
      tracer.report(request, ProblemClass::unsupported, refusal);
    return number;
  }
  // Scalars that depend on data are tensors: Python's operators on them.
  StringRef scalar = llvm::StringSwitch<StringRef>(name)
                         .Case("floordiv", "floor_divide")
                         .Case("__not__", "logical_not")
                         .Default(name);
  request.name = scalar;
  return tracer.run(request);
}

} // namespace tcc::torchscript

#include "frontends/pt2/GraphRunner.h"

#include "frontends/aten/Numbers.h"
#include "frontends/plugin/Operator.h"
#include "frontends/pt2/Types.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using tcc::aten::Item;
using tcc::aten::Request;

namespace tcc::pt2 {

using Kind = Item::Kind;
constexpr int kMaxDepth = 32;

void GraphRunner::fail(ProblemClass kind, const Json &node,
                       const llvm::Twine &message) {
  problems.add(
      {kind, getText(node, "name"), getText(node, "target"), message.str()});
}

// --- Arguments ---------------------------------------------------------------

std::optional<Item> GraphRunner::lookUp(const std::string &name, Scope &scope) {
  auto found = scope.items.find(name);
  if (found != scope.items.end())
    return found->second;
  if (!scope.invalid.contains(name)) {
    problems.add(ProblemClass::badBytes,
                 "value '" + name + "' is read before it is computed");
    scope.invalid.insert(name);
  }
  return std::nullopt;
}

std::optional<Item> GraphRunner::getItems(const Json &list, Scope &scope) {
  std::vector<Item> items;
  for (const Json &element : getList(&list)) {
    auto item = getItem(element, scope);
    if (!item)
      return std::nullopt;
    items.push_back(std::move(*item));
  }
  return Item::ofItems(Kind::list, std::move(items));
}

/// A plain number, boolean or string.
static std::optional<Item> getPlain(const Json &value, const Sizes &sizes) {
  if (value.is_boolean())
    return Item::ofBoolean(sizes.constant(value.get<bool>()));
  if (auto integer = getInteger(&value))
    return Item::ofInteger(sizes.constant(*integer));
  if (value.is_number())
    return Item::ofReal(value.get<double>());
  if (const auto *text = value.get_ptr<const Json::string_t *>())
    return Item::ofText(*text);
  return std::nullopt;
}

/// Arguments are choices, {"as_int": 3}; within lists they may be plain, or
/// {"name": ...} of a tensor.
std::optional<Item> GraphRunner::getItem(const Json &argument, Scope &scope) {
  if (auto plain = getPlain(argument, tracer.getSizes()))
    return plain;
  std::string name = getText(argument, "name");
  if (!name.empty() && !find(argument, "graph"))
    return lookUp(name, scope);
  auto [kind, value] = getChoice(argument);
  if (!value || kind == "as_none")
    return Item();
  if (kind == "as_name") {
    const auto *text = value->get_ptr<const Json::string_t *>();
    return lookUp(text ? *text : "", scope);
  }
  if (kind == "as_scalar_type") {
    // Unknown ones are refused where the number is read.
    auto type = getScalarType(getInteger(value)).value_or(-1);
    return Item::ofInteger(tracer.getSizes().constant(type));
  }
  if (kind == "as_device" || kind == "as_layout" || kind == "as_memory_format")
    return Item::ofText(kind);
  if (kind == "as_float") {
    if (auto real = getReal(value))
      return Item::ofReal(*real);
  } else if (value->is_array()) {
    return getItems(*value, scope);
  } else if (auto plain = getPlain(*value, tracer.getSizes())) {
    return plain;
  } else if (value->is_object() && kind != "as_graph") {
    return getItem(*value, scope);
  }
  problems.add(ProblemClass::unsupported,
               "an argument of kind '" + kind + "' is not supported");
  return std::nullopt;
}

// --- Nodes -------------------------------------------------------------------

/// FILE:LINE of the innermost line of the model's author.
static std::string getPlace(const Json &node) {
  const Json *metadata = find(node, "metadata");
  std::string trace = metadata ? getText(*metadata, "stack_trace") : "";
  size_t last = trace.rfind("File \"");
  if (last == std::string::npos)
    return "";
  StringRef line = StringRef(trace).drop_front(last + 6).split('\n').first;
  auto [file, rest] = line.split("\", line ");
  StringRef number = rest.split(',').first;
  return number.empty() ? "" : (file.rsplit('/').second + ":" + number).str();
}

/// The path of the module that a node is of: the stack lists key, path, class
/// of each, the outermost first.
static std::string getSite(const Json &node) {
  const Json *metadata = find(node, "metadata");
  std::string stack = metadata ? getText(*metadata, "nn_module_stack") : "";
  StringRef last = StringRef(stack).rsplit(';').second;
  if (last.empty())
    last = stack;
  SmallVector<StringRef> parts;
  last.split(parts, ',');
  return parts.size() == 3 ? parts[1].str() : "";
}

/// The operator that torch.ops.DOMAIN.NAME.OVERLOAD is; null if no plugin has
/// it.
static const plugin::Operator *findCustom(const aten::Tracer &tracer,
                                          StringRef target) {
  SmallVector<StringRef> parts;
  target.split(parts, '.');
  bool isOperator = parts.size() == 5 && target.starts_with("torch.ops.");
  if (!isOperator || !tracer.getOperators())
    return nullptr;
  return tracer.getOperators()->find((parts[2] + "::" + parts[3]).str());
}

std::optional<Item> GraphRunner::call(const Json &node, StringRef target,
                                      Scope &scope) {
  Request request;
  request.node = getText(node, "name");
  request.place = getPlace(node);
  request.site = getSite(node);
  bool isComplete = true,
       isHigherOrder = target.starts_with("torch.ops.higher_order.");
  std::vector<std::string> names; // outlive the request's references
  const auto &inputs = getList(find(node, "inputs"));
  names.reserve(inputs.size());
  for (const Json &input : inputs) {
    const Json *argument = find(input, "arg");
    if (!argument || (isHigherOrder && find(*argument, "as_graph")))
      continue;
    auto item = getItem(*argument, scope);
    isComplete &= item.has_value();
    if (!item)
      continue;
    names.push_back(getText(input, "name"));
    // The first one has other names in place; older files give names alone.
    bool isPositional = getInteger(find(input, "kind")) == 1 ||
                        names.size() == 1 || names.back().empty();
    if (isPositional)
      request.positional.push_back(std::move(*item));
    else
      request.named.push_back({names.back(), std::move(*item)});
  }
  if (!isComplete)
    return std::nullopt;
  if (isHigherOrder)
    return callHigherOrder(target.rsplit('.').second, node, scope, request);
  StringRef name = target;
  if (const plugin::Operator *op = findCustom(tracer, target)) {
    request.name = op->name;
    return tracer.run(request);
  }
  if (target.consume_front("torch.ops.aten.")) {
    request.name = target.split('.').first;
  } else if (target.consume_front("_operator.") ||
             target.consume_front("math.") || target.consume_front("torch.")) {
    request.name = name;
    return callNumbers(target, request);
  } else {
    request.name = name;
    tracer.report(request, ProblemClass::unsupported, "is not supported");
    return std::nullopt;
  }
  if (request.name.starts_with("_assert") ||
      request.name == "sym_constrain_range" ||
      request.name == "sym_constrain_range_for_size")
    return Item();
  if (aten::isOfNumbers(request))
    return callNumbers(request.name, request);
  return tracer.run(request);
}

/// Arithmetic on sizes.
std::optional<Item> GraphRunner::callNumbers(StringRef name,
                                             const Request &request) {
  std::string refusal;
  auto result = aten::computeNumber(tracer, name, request.positional, refusal);
  if (!result)
    tracer.report(request, ProblemClass::unsupported, refusal);
  return result;
}

// --- Graphs within -----------------------------------------------------------

/// The graph of argument `i`.
static const Json *getGraph(const Json &node, size_t i) {
  const auto &inputs = getList(find(node, "inputs"));
  const Json *argument = i < inputs.size() ? find(inputs[i], "arg") : nullptr;
  const Json *wrapped = argument ? find(*argument, "as_graph") : nullptr;
  return wrapped ? find(*wrapped, "graph") : nullptr;
}

std::optional<Item> GraphRunner::inlineGraph(const Json &graph,
                                             ArrayRef<const Json *> arguments,
                                             Scope &outer) {
  Scope scope;
  const auto &inputs = getList(find(graph, "inputs"));
  if (inputs.size() != arguments.size() || depth >= kMaxDepth) {
    problems.add(ProblemClass::badBytes,
                 "a graph within the program does not fit its call");
    return std::nullopt;
  }
  for (auto [input, argument] : llvm::zip(inputs, arguments)) {
    auto item = getItem(*argument, outer);
    auto [kind, value] = getChoice(input);
    std::string name = value ? getText(*value, "name") : "";
    if (value && kind == "as_sym_int")
      name = getText(*value, "as_name");
    if (item)
      scope.items[name] = *item;
    else
      scope.invalid.insert(name);
  }
  ++depth;
  run(graph, scope);
  --depth;
  const Json *outputs = find(graph, "outputs");
  if (outputs)
    return getItems(*outputs, scope);
  problems.add(ProblemClass::badBytes,
               "a graph within the program has no outputs");
  return std::nullopt;
}

/// Wrappers that do not matter at inference are inlined.
std::optional<Item> GraphRunner::callHigherOrder(StringRef name,
                                                 const Json &node, Scope &scope,
                                                 const Request &request) {
  if (name == "cond")
    return branch(node, scope, request);
  const auto &inputs = getList(find(node, "inputs"));
  size_t position = 0;
  while (position < inputs.size() && !getGraph(node, position))
    ++position;
  bool isWrapper = name == "wrap_with_set_grad_enabled" && position == 1;
  if (!isWrapper || !getGraph(node, position)) {
    Request named = request;
    named.name = name;
    tracer.report(named, ProblemClass::unsupported, "is not supported");
    return std::nullopt;
  }
  SmallVector<const Json *> arguments;
  for (const Json &input : ArrayRef(inputs).drop_front(position + 1))
    if (const Json *argument = find(input, "arg"))
      arguments.push_back(argument);
  return inlineGraph(*getGraph(node, position), arguments, scope);
}

/// cond(predicate, graph, graph, operands): known at import, or an op.
std::optional<Item> GraphRunner::branch(const Json &node, Scope &scope,
                                        const Request &request) {
  const Json *graphs[] = {getGraph(node, 1), getGraph(node, 2)};
  const auto &inputs = getList(find(node, "inputs"));
  SmallVector<const Json *> arguments;
  const Json *operands = inputs.size() == 4 ? find(inputs[3], "arg") : nullptr;
  auto [kind, list] = operands ? getChoice(*operands) : Choice();
  if (!graphs[0] || !graphs[1] || !list || request.positional.empty()) {
    fail(ProblemClass::badBytes, node, "is malformed");
    return std::nullopt;
  }
  for (const Json &operand : getList(list))
    arguments.push_back(&operand);
  Item predicate = request.positional[0];
  auto known = predicate.is(Kind::tensor) ? tracer.getNumber(*predicate.tensor)
                                          : std::optional(predicate);
  if (auto value = known ? aten::getNumber(*known) : std::nullopt)
    return inlineGraph(*graphs[*value == 0], arguments, scope);
  if (!predicate.is(Kind::tensor)) {
    fail(ProblemClass::unsupported, node,
         "a branch that a symbolic dimension decides is not supported");
    return std::nullopt;
  }
  auto results = tracer.branch(request, *predicate.tensor, [&](bool isThen) {
    return inlineGraph(*graphs[isThen ? 0 : 1], arguments, scope);
  });
  for (const Item &result : results ? *results->items : std::vector<Item>())
    if (result.is(Kind::none)) {
      fail(ProblemClass::unsupported, node,
           "branches that give different types or shapes are not supported");
      return std::nullopt;
    }
  return results;
}

// --- Results -----------------------------------------------------------------

/// The file states the type of each value: another one is a mistake, its or
/// ours.
void GraphRunner::checkType(const Json &node, const std::string &name,
                            const Item &item) {
  const Json *stated = types ? find(*types, name) : nullptr;
  if (!stated || !item.is(Kind::tensor) || item.tensor->number)
    return;
  RankedTensorType type = tracer.getType(*item.tensor);
  const auto &sizes = getList(find(*stated, "sizes"));
  Type expected = getElementType(getInteger(find(*stated, "dtype")),
                                 tracer.getBuilder().getContext());
  bool isSame = type && type.getElementType() == expected &&
                type.getRank() == int64_t(sizes.size());
  for (size_t axis = 0; isSame && axis < sizes.size(); ++axis) {
    auto size = getInteger(find(sizes[axis], "as_int"));
    isSame = !size || type.isDynamicDim(axis) || type.getDimSize(axis) == *size;
  }
  if (!isSame)
    fail(ProblemClass::badBytes, node,
         "value '" + name + "' does not have the type that the file states");
}

void GraphRunner::define(const Json &node, std::optional<Item> result,
                         Scope &scope) {
  const auto &outputs = getList(find(node, "outputs"));
  auto set = [&](const Json &output, const std::optional<Item> &item) {
    std::string name = getText(output, "name");
    if (name.empty())
      name = getText(output, "as_name");
    if (name.empty())
      return;
    if (!item)
      return (void)scope.invalid.insert(name);
    checkType(node, name, *item);
    scope.items[name] = *item;
  };
  SmallVector<const Json *> flat;
  for (const Json &output : outputs) {
    auto [kind, value] = getChoice(output);
    if (!value || kind == "as_none")
      flat.push_back(nullptr);
    else if (value->is_array())
      for (const Json &element : *value)
        flat.push_back(&element);
    else
      flat.push_back(value);
  }
  bool isMany = result && result->isSequence();
  for (auto [i, output] : llvm::enumerate(flat)) {
    if (!output)
      continue;
    if (!result)
      set(*output, std::nullopt);
    else if (isMany && i < result->items->size())
      set(*output, (*result->items)[i]);
    else if (!isMany && i == 0 && !result->is(Kind::none))
      set(*output, result);
    else
      fail(ProblemClass::unsupported, node,
           "output " + llvm::Twine(i) + " is not supported");
  }
}

void GraphRunner::runNode(const Json &node, Scope &scope) {
  std::string target = getText(node, "target");
  size_t count = problems.get().size();
  auto result = call(node, target, scope);
  if (!result && problems.get().size() > count)
    return define(node, std::nullopt, scope);
  define(node, std::move(result), scope);
}

void GraphRunner::run(const Json &graph, Scope &scope) {
  const Json *outer = types;
  types = find(graph, "tensor_values");
  for (const auto &argument : scope.items)
    checkType(graph, argument.getKey().str(), argument.getValue());
  for (const Json &node : getList(find(graph, "nodes")))
    runNode(node, scope);
  types = outer;
}

} // namespace tcc::pt2

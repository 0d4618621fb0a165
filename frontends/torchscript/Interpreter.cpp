#include "frontends/torchscript/Interpreter.h"

using namespace mlir;

namespace tcc::torchscript {

using Kind = aten::Item::Kind;
using llvm::StringRef;

std::optional<aten::Item> Interpreter::fail(ProblemClass kind,
                                            const llvm::Twine &message) {
  std::string place =
      frame ? code.getPlace(*frame->function, line) : std::string();
  problems.add({kind, frame ? frame->site : "", "",
                (message + (place.empty() ? "" : ", at " + place)).str()});
  return std::nullopt;
}

std::optional<aten::Item> Interpreter::unsupported(const llvm::Twine &what) {
  return fail(ProblemClass::unsupported, what + " is not supported");
}

std::optional<aten::Item> Interpreter::malformed(const llvm::Twine &what) {
  return fail(ProblemClass::badBytes, what);
}

aten::Item Interpreter::ofInteger(int64_t value) {
  return Item::ofInteger(tracer.getSizes().constant(value));
}

aten::Item Interpreter::ofBoolean(bool value) {
  return Item::ofBoolean(tracer.getSizes().constant(value));
}

// --- Statements --------------------------------------------------------------

Interpreter::Flow Interpreter::runBlock(const Node &block) {
  for (const auto &statement : block.children) {
    Flow flow = run(*statement);
    if (flow != Flow::next)
      return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Node &statement) {
  line = statement.line;
  if (++steps > kMaxSteps) {
    unsupported("code that runs for more than 4 million steps");
    return Flow::failure;
  }
  switch (statement.kind) {
  case Node::Kind::pass:
    return Flow::next;
  case Node::Kind::expression:
    return evaluate(statement[0]) ? Flow::next : Flow::failure;
  case Node::Kind::declare: {
    if (statement.size() < 3)
      return Flow::next;
    auto value = evaluate(statement[2]);
    return value && assign(statement[0], *value) ? Flow::next : Flow::failure;
  }
  case Node::Kind::assign: {
    auto value = evaluate(*statement.children.back());
    for (size_t i = 0; value && i + 1 < statement.size(); ++i)
      if (!assign(statement[i], *value))
        return Flow::failure;
    return value ? Flow::next : Flow::failure;
  }
  case Node::Kind::result: {
    auto value = statement.size() ? evaluate(statement[0]) : Item();
    if (!value)
      return Flow::failure;
    frame->result = *value;
    return Flow::result;
  }
  case Node::Kind::branch:
    return runIf(statement);
  case Node::Kind::loop:
    return runFor(statement);
  case Node::Kind::repeat:
    return runWhile(statement);
  case Node::Kind::scope:
    return runBlock(statement[1]);
  default:
    unsupported("a statement of this kind");
    return Flow::failure;
  }
}

bool Interpreter::assign(const Node &target, const Item &value) {
  if (target.kind == Node::Kind::name) {
    frame->names[target.text] = value;
    return true;
  }
  if (target.kind == Node::Kind::tuple) {
    if (!value.isSequence() || value.items->size() != target.size())
      return malformed("the targets do not fit the values").has_value();
    for (size_t i = 0; i < target.size(); ++i)
      if (!assign(target[i], (*value.items)[i]))
        return false;
    return true;
  }
  auto object =
      target.kind == Node::Kind::attribute ? evaluate(target[0]) : std::nullopt;
  auto instance = object ? getAs<Instance>(*object) : nullptr;
  if (!instance)
    return malformed("a value is assigned to what is no name").has_value();
  instance->attributes[target.text] = value;
  assigned.push_back({instance, target.text});
  ++mutations;
  return true;
}

// --- Control -----------------------------------------------------------------

/// The names that a block assigns, also in blocks within.
static void collectAssigned(const Node &node,
                            llvm::SetVector<StringRef> &names) {
  if (node.kind == Node::Kind::assign || node.kind == Node::Kind::declare ||
      node.kind == Node::Kind::loop) {
    SmallVector<const Node *> targets = {&node[0]};
    while (!targets.empty()) {
      const Node *target = targets.pop_back_val();
      if (target->kind == Node::Kind::name)
        names.insert(target->text);
      if (target->kind == Node::Kind::tuple)
        for (const auto &child : target->children)
          targets.push_back(child.get());
    }
  }
  for (const auto &child : node.children)
    if (child)
      collectAssigned(*child, names);
}

Interpreter::Flow Interpreter::runIf(const Node &statement) {
  auto condition = evaluate(statement[0]);
  if (!condition)
    return Flow::failure;
  std::optional<Item> known = condition;
  if (condition->is(Kind::tensor))
    known = tracer.getNumber(*condition->tensor);
  if (auto value = known ? aten::getNumber(*known) : std::nullopt)
    return runBlock(statement[*value != 0 ? 1 : 2]);
  if (!condition->is(Kind::tensor)) {
    unsupported("a branch on " + aten::getKindName(*condition));
    return Flow::failure;
  }
  return branchAtRunTime(statement, *condition->tensor);
}

/// Names that both branches assign get the value of the one that runs; a name
/// whose values do not fit is gone.
Interpreter::Flow Interpreter::branchAtRunTime(const Node &statement,
                                               aten::Variable &condition) {
  llvm::SetVector<StringRef> first, second;
  collectAssigned(statement[1], first);
  collectAssigned(statement[2], second);
  SmallVector<StringRef> names;
  for (StringRef name : first)
    if (second.contains(name))
      names.push_back(name);
  llvm::StringMap<Item> before = frame->names;
  int64_t count = mutations;
  auto body = [&](bool isThen) -> std::optional<Item> {
    frame->names = before;
    Flow flow = runBlock(statement[isThen ? 1 : 2]);
    if (flow == Flow::result)
      return unsupported("a return from a branch at run time");
    if (flow == Flow::failure)
      return std::nullopt;
    std::vector<Item> values;
    for (StringRef name : names)
      values.push_back(frame->names[name]);
    return Item::ofItems(Kind::list, std::move(values));
  };
  auto results = tracer.branch(makeRequest("if"), condition, body);
  frame->names = before;
  if (results && mutations != count) {
    unsupported("a branch at run time that changes a list or an attribute");
    return Flow::failure;
  }
  if (!results)
    return Flow::failure;
  for (auto [name, value] : llvm::zip(names, *results->items)) {
    if (value.is(Kind::none))
      frame->names.erase(name);
    else
      frame->names[name] = value;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::runFor(const Node &statement) {
  const Node &range = statement[1];
  SmallVector<int64_t, 3> bounds;
  bool isRange = range.kind == Node::Kind::call &&
                 range[0].kind == Node::Kind::name && range[0].text == "range";
  for (size_t i = 1; isRange && i < range.size(); ++i) {
    auto bound = evaluate(range[i]);
    if (!bound)
      return Flow::failure;
    auto number = bound->is(Kind::tensor) ? tracer.getNumber(*bound->tensor)
                                          : std::optional(*bound);
    auto known = number && number->is(Kind::integer)
                     ? graph::getConstant(number->size)
                     : std::nullopt;
    if (!known) {
      unsupported("a loop of a number of steps that is not known");
      return Flow::failure;
    }
    bounds.push_back(*known);
  }
  if (bounds.size() == 1)
    bounds.insert(bounds.begin(), 0);
  if (bounds.size() == 2)
    bounds.push_back(1);
  if (bounds.size() != 3 || bounds[2] == 0) {
    malformed("a loop is not over a range");
    return Flow::failure;
  }
  auto goesOn = [&](int64_t i) {
    return bounds[2] > 0 ? i < bounds[1] : i > bounds[1];
  };
  for (int64_t i = bounds[0]; goesOn(i);) {
    if (!assign(statement[0], ofInteger(i)))
      return Flow::failure;
    Flow flow = runBlock(statement[2]);
    if (flow != Flow::next)
      return flow;
    if (llvm::AddOverflow(i, bounds[2], i))
      break;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::runWhile(const Node &statement) {
  while (true) {
    auto condition = evaluate(statement[0]);
    if (!condition)
      return Flow::failure;
    auto known = condition->is(Kind::tensor)
                     ? tracer.getNumber(*condition->tensor)
                     : condition;
    auto value = known ? aten::getNumber(*known) : std::nullopt;
    if (!value && condition->is(Kind::tensor))
      return loopAtRunTime(statement);
    if (!value) {
      unsupported("a loop on " + aten::getKindName(*condition));
      return Flow::failure;
    }
    if (*value == 0)
      return Flow::next;
    Flow flow = runBlock(statement[1]);
    if (flow != Flow::next)
      return flow;
  }
}

/// Names that exist before and that the body assigns are carried.
Interpreter::Flow Interpreter::loopAtRunTime(const Node &statement) {
  llvm::SetVector<StringRef> inside;
  collectAssigned(statement[1], inside);
  SmallVector<StringRef> names;
  std::vector<Item> carried;
  for (StringRef name : inside)
    if (auto found = frame->names.find(name); found != frame->names.end()) {
      names.push_back(name);
      carried.push_back(found->second);
    }
  llvm::StringMap<Item> before = frame->names;
  int64_t count = mutations;
  auto body = [&](ArrayRef<Item> values) -> std::optional<Item> {
    for (auto [name, value] : llvm::zip(names, values))
      frame->names[name] = value;
    Flow flow = runBlock(statement[1]);
    if (flow == Flow::result)
      return unsupported("a return from a loop at run time");
    auto condition = flow == Flow::next ? evaluate(statement[0]) : std::nullopt;
    if (!condition)
      return std::nullopt;
    std::vector<Item> results = {*condition};
    for (StringRef name : names)
      results.push_back(frame->names[name]);
    return Item::ofItems(Kind::list, std::move(results));
  };
  auto condition = evaluate(statement[0]);
  auto results =
      condition ? tracer.loop(makeRequest("while"), *condition, carried, body)
                : std::nullopt;
  frame->names = before;
  if (results && mutations != count) {
    unsupported("a loop at run time that changes a list or an attribute");
    return Flow::failure;
  }
  if (!results)
    return Flow::failure;
  for (auto [name, value] : llvm::zip(names, *results->items))
    frame->names[name] = value;
  return Flow::next;
}

// --- Expressions -------------------------------------------------------------

std::optional<aten::Item> Interpreter::evaluateAll(const Node &expression,
                                                   Kind kind) {
  std::vector<Item> items;
  for (const auto &child : expression.children) {
    auto item = evaluate(*child);
    if (!item)
      return std::nullopt;
    items.push_back(std::move(*item));
  }
  return Item::ofItems(kind, std::move(items));
}

std::optional<aten::Item> Interpreter::evaluateNumber(const Node &expression) {
  StringRef text = expression.text;
  int64_t integer;
  if (!text.getAsInteger(10, integer))
    return ofInteger(integer);
  double real;
  if (!text.getAsDouble(real))
    return Item::ofReal(real);
  return malformed("'" + text + "' is no number");
}

std::optional<aten::Item> Interpreter::evaluateName(const Node &expression) {
  StringRef name = expression.text;
  if (frame)
    if (auto found = frame->names.find(name); found != frame->names.end())
      return found->second;
  if (name == "None")
    return Item();
  if (name == "True" || name == "False")
    return ofBoolean(name == "True");
  if (name == "inf" || name == "nan")
    return Item::ofReal(name == "inf"
                            ? std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::quiet_NaN());
  if (name == "torch" || name == "ops" || name == "__torch__" ||
      name == "CONSTANTS") {
    auto path = std::make_shared<Path>();
    path->name = name.str();
    return aten::Item::ofObject(path);
  }
  return malformed("name '" + name +
                   "' is not defined, or not in both "
                   "branches with one type");
}

std::optional<aten::Item> Interpreter::getTensorAttribute(const Item &item,
                                                          StringRef name) {
  RankedTensorType type = tracer.getType(*item.tensor);
  if (!type)
    return malformed("a tensor has no value");
  if (name == "dtype") {
    auto number = aten::getScalarType(type.getElementType());
    return number ? std::optional(ofInteger(*number))
                  : unsupported("this element type");
  }
  if (name == "device" || name == "layout")
    return Item::ofText("cpu");
  if (name == "requires_grad" || name == "is_nested" || name == "is_sparse" ||
      name == "is_quantized" || name == "is_cuda")
    return ofBoolean(false);
  if (name == "ndim")
    return ofInteger(type.getRank());
  if (name == "shape") {
    std::vector<Item> sizes;
    for (AffineExpr extent : graph::getExtents(type))
      sizes.push_back(Item::ofInteger(extent));
    return Item::ofItems(Kind::list, std::move(sizes));
  }
  if (name == "data")
    return item;
  return unsupported("attribute '" + name + "' of a tensor");
}

std::optional<aten::Item> Interpreter::getAttribute(const Item &object,
                                                    const std::string &name) {
  if (object.is(Kind::tensor))
    return getTensorAttribute(object, name);
  if (auto names = getAs<TupleNames>(object)) {
    auto found = llvm::find(names->names, name);
    size_t position = found - names->names.begin();
    if (object.items && position < object.items->size())
      return (*object.items)[position];
    return malformed("a tuple has no element '" + name + "'");
  }
  if (auto path = getAs<Path>(object)) {
    uint64_t number;
    if (path->name == "CONSTANTS") {
      if (StringRef(name).drop_front().getAsInteger(10, number) ||
          number >= constants.size())
        return malformed("constant '" + name + "' is not there");
      return constants[number];
    }
    auto longer = std::make_shared<Path>();
    longer->name = path->name + "." + name;
    return aten::Item::ofObject(longer);
  }
  auto instance = getAs<Instance>(object);
  if (!instance)
    return malformed(aten::getKindName(object) + " has no attribute '" + name +
                     "'");
  auto found = instance->attributes.find(name);
  if (found != instance->attributes.end())
    return found->second;
  if (const Node *constant = code.findConstant(instance->className, name))
    return evaluateDefault(*constant);
  const Node *function = code.findMethod(instance->className, name);
  if (!function && name != "__init__")
    return malformed("class '" + instance->className + "' has no '" + name +
                     "'");
  auto method = std::make_shared<Method>();
  method->self = object;
  method->function = function;
  return aten::Item::ofObject(method);
}

std::optional<aten::Item> Interpreter::evaluateDefault(const Node &expression) {
  return evaluate(expression);
}

/// One of the indices of `object`, along its axis `axis`, which goes on behind.
std::optional<aten::Item>
Interpreter::takeIndex(const Item &object, const Node &index, int64_t &axis) {
  Arguments arguments;
  arguments.positional.push_back(object);
  bool isTensor = object.is(Kind::tensor),
       isSlice = index.kind == Node::Kind::slice;
  if (isTensor)
    arguments.positional.push_back(ofInteger(axis));
  for (size_t i = 0; i < (isSlice ? 2 : 1); ++i) {
    const Node *part = isSlice ? index.children[i].get() : &index;
    auto item = part ? evaluate(*part) : Item();
    if (!item)
      return std::nullopt;
    arguments.positional.push_back(std::move(*item));
  }
  axis += isSlice;
  if (isSlice)
    return callTorch("slice", arguments);
  return callTorch(isTensor ? "select" : "__getitem__", arguments);
}

std::optional<aten::Item>
Interpreter::evaluateSubscript(const Node &expression) {
  auto object = evaluate(expression[0]);
  if (!object)
    return std::nullopt;
  const Node &index = expression[1];
  int64_t axis = 0;
  if (!object->is(Kind::tensor) || index.kind != Node::Kind::tuple)
    return takeIndex(*object, index, axis);
  for (const auto &each : index.children) {
    object = takeIndex(*object, *each, axis);
    if (!object)
      return std::nullopt;
  }
  return object;
}

std::optional<aten::Item> Interpreter::evaluateOperation(const Node &expression,
                                                         StringRef function) {
  Arguments arguments;
  for (const auto &child : expression.children) {
    auto item = evaluate(*child);
    if (!item)
      return std::nullopt;
    arguments.positional.push_back(std::move(*item));
  }
  return callTorch(function, arguments);
}

std::optional<aten::Item> Interpreter::evaluate(const Node &expression) {
  switch (expression.kind) {
  case Node::Kind::name:
    return evaluateName(expression);
  case Node::Kind::number:
    return evaluateNumber(expression);
  case Node::Kind::string:
    return Item::ofText(expression.text);
  case Node::Kind::list:
    return evaluateAll(expression, Kind::list);
  case Node::Kind::tuple:
    return evaluateAll(expression, Kind::tuple);
  case Node::Kind::attribute: {
    auto object = evaluate(expression[0]);
    return object ? getAttribute(*object, expression.text) : std::nullopt;
  }
  case Node::Kind::subscript:
    return evaluateSubscript(expression);
  case Node::Kind::call:
    return evaluateCall(expression);
  case Node::Kind::minus:
    return evaluateOperation(expression, "neg");
  case Node::Kind::operation:
    return evaluateOperation(expression, expression.text);
  case Node::Kind::dictionary: {
    auto items = evaluateAll(expression, Kind::list);
    auto dictionary = std::make_shared<Dictionary>();
    for (size_t i = 0; items && i + 1 < items->items->size(); i += 2)
      dictionary->entries.push_back(
          {(*items->items)[i], (*items->items)[i + 1]});
    return items ? std::optional(aten::Item::ofObject(dictionary))
                 : std::nullopt;
  }
  default:
    return malformed("an expression is expected");
  }
}

} // namespace tcc::torchscript

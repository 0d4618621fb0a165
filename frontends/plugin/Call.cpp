//===- Call.cpp - Calls of operators that plugins define ------------------===//

#include "frontends/plugin/Importer.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace tcc::plugin {

using aten::Item;
using Kind = Item::Kind;

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

// --- Arguments ---------------------------------------------------------------

/// The arguments with other tensors.
SmallVector<Item> Importer::substitute(ValueRange values) {
  SmallVector<Item> items = arguments;
  size_t next = 0;
  for (Item &item : items)
    if (item.is(Kind::tensor))
      item = Item::of(tracer.makeVariable(values[next++]));
  return items;
}

/// An operator is a function: what its body writes to are tensors of its own.
bool Importer::takeValues() {
  for (const Item &item : arguments)
    if (item.is(Kind::tensor))
      inputs.push_back(tracer.materialize(emitter, *item.tensor));
  if (llvm::is_contained(inputs, Value()))
    return refuse();
  arguments = substitute(inputs);
  return true;
}

bool Importer::check() {
  for (const Expression &condition : op.checks) {
    auto result = evaluate(*condition.function, arguments);
    if (!result)
      return false;
    if (!result->is(Kind::boolean))
      return refuse("check '" + condition.text + "' is " +
                    aten::getKindName(*result) + ", expected a boolean");
    if (aten::getNumber(*result) != 1.0)
      return refuse("'" + condition.text + "' does not hold");
  }
  return true;
}

static std::string print(const Sizes &sizes, ArrayRef<AffineExpr> extents) {
  std::string text;
  for (AffineExpr extent : extents)
    text += (text.empty() ? "" : ", ") + sizes.print(extent);
  return "[" + text + "]";
}

std::optional<graph::Extents> Importer::evaluateShape(const Expression &shape) {
  auto given = evaluate(*shape.function, arguments);
  if (!given)
    return std::nullopt;
  bool isList =
      given->isSequence() && llvm::all_of(*given->items, [](const Item &item) {
        return item.is(Kind::integer);
      });
  if (!isList) {
    refuse("shape '" + shape.text + "' is no list of integers");
    return std::nullopt;
  }
  graph::Extents extents;
  for (const Item &item : *given->items)
    extents.push_back(item.size);
  return extents;
}

/// Compares the shapes of the body's results with those that the plugin states.
bool Importer::checkShapes(ArrayRef<Item> results) {
  for (auto [i, shape] : llvm::enumerate(op.shapes)) {
    auto expected = evaluateShape(shape);
    if (!expected)
      return false;
    graph::Extents found =
        graph::getExtents(tracer.getType(*results[i].tensor));
    if (found != *expected)
      return refuse("result " + llvm::Twine(i) + " has shape " +
                    print(tracer.getSizes(), found) + ", expected " +
                    print(tracer.getSizes(), *expected) + ", as '" +
                    shape.text + "' is");
  }
  return true;
}

// --- Bodies and gradients ----------------------------------------------------

static bool areTensors(ArrayRef<Item> items) {
  return llvm::all_of(items,
                      [](const Item &item) { return item.is(Kind::tensor); });
}

static SmallVector<Item> getItems(const Item &result) {
  if (result.isSequence())
    return {result.items->begin(), result.items->end()};
  return {result};
}

/// What the body makes of the arguments.
std::optional<SmallVector<Item>> Importer::runBody(ArrayRef<Item> items) {
  auto result = evaluate(*op.body, items);
  if (!result)
    return std::nullopt;
  SmallVector<Item> results = getItems(*result);
  if (!areTensors(results) || results.size() != op.resultCount) {
    refuse("its body gives " +
           (areTensors(results) ? std::to_string(results.size()) + " tensors"
                                : aten::getKindName(*result).str()) +
           ", expected " + llvm::Twine(op.resultCount) + " tensors");
    return std::nullopt;
  }
  if (!checkShapes(results))
    return std::nullopt;
  return results;
}

Item Importer::give(ArrayRef<Item> results) {
  return op.resultCount == 1
             ? results[0]
             : Item::ofItems(Kind::tuple, {results.begin(), results.end()});
}

std::optional<SmallVector<Value>> Importer::materialize(ArrayRef<Item> items) {
  Values values;
  for (const Item &item : items)
    values.push_back(tracer.materialize(emitter, *item.tensor));
  if (!llvm::is_contained(values, Value()))
    return values;
  refuse();
  return std::nullopt;
}

/// Gives the body's results.
std::optional<SmallVector<Value>> Importer::fillBody(Block &block) {
  OpBuilder &builder = tracer.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  for (Value input : inputs)
    block.addArgument(input.getType(), emitter.getLoc());
  auto results = runBody(substitute(block.getArguments()));
  auto values = results ? materialize(*results) : std::nullopt;
  if (values)
    builder.create<graph::YieldOp>(emitter.getLoc(), *values);
  return values;
}

/// Values of the results' types, for what has no body.
std::optional<SmallVector<Value>> Importer::standIn(Block &block) {
  auto types = getKernelTypes();
  if (!types)
    return std::nullopt;
  Values values;
  for (RankedTensorType type : *types)
    values.push_back(block.addArgument(type, emitter.getLoc()));
  return values;
}

/// The gradient of `input`, an argument of its function.
Value Importer::takeGradient(const Item &item, Value input) {
  if (item.is(Kind::none))
    return emitter.broadcast(emitter.constant(0.0, getElementTypeOrSelf(input)),
                             graph::getExtents(input));
  Value value = item.is(Kind::tensor)
                    ? tracer.materialize(emitter, *item.tensor)
                    : Value();
  if (value && isFloat(value))
    value = emitter.cast(value, getElementTypeOrSelf(input));
  if (value && value.getType() == input.getType())
    return value;
  if (item.is(Kind::tensor) && value)
    refuse("its gradient of an argument of shape " +
           print(tracer.getSizes(), graph::getExtents(input)) + " has shape " +
           print(tracer.getSizes(), graph::getExtents(value)));
  else
    refuse("its gradient gives " + aten::getKindName(item) +
           ", expected a tensor or None");
  return nullptr;
}

bool Importer::fillGradient(Block &block, const Values &results) {
  OpBuilder &builder = tracer.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  Values types = inputs;
  llvm::append_range(types, results);
  llvm::copy_if(results, std::back_inserter(types), isFloat);
  for (Value value : types)
    block.addArgument(value.getType(), emitter.getLoc());
  auto values = block.getArguments();
  SmallVector<Item> items = substitute(values.take_front(inputs.size()));
  auto rest = values.drop_front(inputs.size());
  for (Value result : rest.take_front(results.size()))
    items.push_back(Item::of(tracer.makeVariable(result)));
  rest = rest.drop_front(results.size());
  for (Value result : results) {
    items.push_back(
        isFloat(result) ? Item::of(tracer.makeVariable(rest.front())) : Item());
    rest = rest.drop_front(isFloat(result));
  }
  auto given = evaluate(*op.gradient, items);
  if (!given)
    return false;
  SmallVector<Item> parts = getItems(*given);
  size_t count =
      llvm::count_if(op.schema.parameters, [](const auto &parameter) {
        return parameter.type == "Tensor";
      });
  if (parts.size() != count)
    return refuse("its gradient gives " + llvm::Twine(parts.size()) +
                  " values, expected " + llvm::Twine(count));
  Values gradients;
  size_t next = 0, part = 0;
  for (auto [parameter, argument] :
       llvm::zip(op.schema.parameters, arguments)) {
    if (parameter.type != "Tensor")
      continue;
    const Item &item = parts[part++];
    if (!argument.is(Kind::tensor))
      continue;
    Value input = block.getArgument(next++);
    if (isFloat(input))
      gradients.push_back(takeGradient(item, input));
    if (!gradients.empty() && !gradients.back())
      return false;
  }
  builder.create<graph::YieldOp>(emitter.getLoc(), gradients);
  return true;
}

/// An op that has the body and the gradient as its regions.
std::optional<Item> Importer::makeOp() {
  size_t symbolCount = tracer.getSizes().getSymbols().size();
  Operation *holder = emitter.holdRegions(3);
  auto drop = llvm::make_scope_exit([&] {
    holder->erase();
    tracer.forgetEvaluated();
  });
  auto getBlock = [&](int i) -> Block & {
    return holder->getRegion(i).front();
  };
  auto results = op.body ? fillBody(getBlock(0)) : standIn(getBlock(2));
  if (!results || (op.gradient && !fillGradient(getBlock(1), *results)))
    return std::nullopt;
  if (tracer.getSizes().getSymbols().size() != symbolCount) {
    tracer.report(request, ProblemClass::unsupported,
                  "an operator with a gradient or kernels of its own, in whose "
                  "body data decide sizes, is not supported");
    return std::nullopt;
  }
  OperationState state(emitter.getLoc(), graph::CustomOp::getOperationName());
  state.addOperands(inputs);
  state.addTypes(ValueRange(*results).getTypes());
  state.addAttribute("name", tracer.getBuilder().getStringAttr(op.name));
  if (!addKernels(state))
    return std::nullopt;
  const torchscript::Node *functions[] = {op.body, op.gradient};
  for (auto [i, function] : llvm::enumerate(functions))
    if (Region *region = state.addRegion(); function)
      region->takeBody(holder->getRegion(i));
  Operation *made = tracer.getBuilder().create(state);
  if (!emitter.check(made)) {
    refuse();
    return std::nullopt;
  }
  SmallVector<Item> items;
  for (Value result : made->getResults())
    items.push_back(Item::of(tracer.makeVariable(result)));
  return give(items);
}

std::optional<Item> Importer::run() {
  if (!takeValues() || !check() || !findKernels())
    return std::nullopt;
  if (op.gradient || !kernels.empty())
    return makeOp();
  auto results = runBody(arguments);
  return results ? std::optional(give(*results)) : std::nullopt;
}

std::optional<Item> call(const Operator &op, aten::Tracer &tracer,
                         const aten::Request &request) {
  SmallVector<Item> arguments;
  std::string refusal;
  auto refuse = [&](std::string message) {
    tracer.report(request, ProblemClass::badBytes, std::move(message));
    return std::nullopt;
  };
  if (!tracer.bind(op.schema, request, arguments, refusal))
    return refuse(refusal);
  aten::Tracer::Within within(tracer, request);
  if (!within.isAllowed())
    return refuse("operators of plugins are nested too deeply, or call "
                  "themselves");
  return Importer(op, tracer, request, std::move(arguments)).run();
}

} // namespace tcc::plugin

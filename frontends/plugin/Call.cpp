//===- Call.cpp - Calls of operators that plugins define ------------------===//

#include "frontends/plugin/Operator.h"
#include "frontends/torchscript/Interpreter.h"

using namespace mlir;

namespace tcc::plugin {

using aten::Item;
using Kind = Item::Kind;

namespace {

class Importer {
public:
  Importer(const Operator &op, aten::Tracer &tracer,
           const aten::Request &request, ArrayRef<Item> arguments)
      : op(op), tracer(tracer), request(request), arguments(arguments),
        interpreter(op.code, tracer, tracer.getProblems(), {}) {}

  std::optional<Item> run();

private:
  std::optional<Item> evaluate(const torchscript::Node &function) {
    return interpreter.call(function, arguments, request.node);
  }
  bool check();
  bool checkShapes(ArrayRef<Item> results);
  bool refuse(const llvm::Twine &message) {
    tracer.report(request, ProblemClass::badBytes, message.str());
    return false;
  }

  const Operator &op;
  aten::Tracer &tracer;
  const aten::Request &request;
  ArrayRef<Item> arguments;
  torchscript::Interpreter interpreter;
};

} // namespace

bool Importer::check() {
  for (const Expression &condition : op.checks) {
    auto result = evaluate(*condition.function);
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

/// Compares the shapes of the body's results with those that the plugin states.
bool Importer::checkShapes(ArrayRef<Item> results) {
  for (auto [i, shape] : llvm::enumerate(op.shapes)) {
    auto given = evaluate(*shape.function);
    if (!given)
      return false;
    bool isList = given->isSequence() &&
                  llvm::all_of(*given->items, [](const Item &item) {
                    return item.is(Kind::integer);
                  });
    if (!isList)
      return refuse("shape '" + shape.text + "' is no list of integers");
    graph::Extents expected;
    for (const Item &item : *given->items)
      expected.push_back(item.size);
    graph::Extents found =
        graph::getExtents(tracer.getType(*results[i].tensor));
    if (found != expected)
      return refuse("result " + llvm::Twine(i) + " has shape " +
                    print(tracer.getSizes(), found) + ", expected " +
                    print(tracer.getSizes(), expected) + ", as '" + shape.text +
                    "' is");
  }
  return true;
}

std::optional<Item> Importer::run() {
  if (!check())
    return std::nullopt;
  auto result = evaluate(*op.body);
  if (!result)
    return std::nullopt;
  SmallVector<Item> results = {*result};
  if (result->isSequence())
    results.assign(result->items->begin(), result->items->end());
  bool areTensors = llvm::all_of(
      results, [](const Item &item) { return item.is(Kind::tensor); });
  if (!areTensors || results.size() != op.resultCount) {
    refuse("its body gives " +
           (areTensors ? std::to_string(results.size()) + " tensors"
                       : aten::getKindName(*result).str()) +
           ", expected " + llvm::Twine(op.resultCount) + " tensors");
    return std::nullopt;
  }
  if (!checkShapes(results))
    return std::nullopt;
  return op.resultCount == 1
             ? results[0]
             : Item::ofItems(Kind::tuple, {results.begin(), results.end()});
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
  // It is a function: what its body writes to are tensors of its own.
  Emitter emitter(tracer.getBuilder(), tracer.getBuilder().getUnknownLoc(),
                  tracer.getSizes());
  for (Item &item : arguments) {
    if (!item.is(Kind::tensor))
      continue;
    Value value = tracer.materialize(emitter, *item.tensor);
    if (!value)
      return refuse(emitter.getMessage());
    item = Item::of(tracer.makeVariable(value));
  }
  return Importer(op, tracer, request, arguments).run();
}

} // namespace tcc::plugin

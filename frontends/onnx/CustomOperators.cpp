//===- CustomOperators.cpp - Nodes whose operators are of plugins ---------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

using aten::Item;
using onnx::AttributeProto;

/// What an attribute is to PyTorch; nullopt for those that it has not.
static std::optional<Item> readAttribute(const AttributeProto &attribute,
                                         const Sizes &sizes) {
  std::vector<Item> items;
  switch (attribute.type()) {
  case AttributeProto::INT:
    return Item::ofInteger(sizes.constant(attribute.i()));
  case AttributeProto::FLOAT:
    return Item::ofReal(attribute.f());
  case AttributeProto::STRING:
    return Item::ofText(attribute.s());
  case AttributeProto::INTS:
    for (int64_t value : attribute.ints())
      items.push_back(Item::ofInteger(sizes.constant(value)));
    return Item::ofItems(Item::Kind::list, std::move(items));
  case AttributeProto::FLOATS:
    for (double value : attribute.floats())
      items.push_back(Item::ofReal(value));
    return Item::ofItems(Item::Kind::list, std::move(items));
  default:
    return std::nullopt;
  }
}

/// The node's inputs are the tensors of the schema, in order, and its
/// attributes the rest.
static bool collectArguments(const plugin::Operator &op, Node &node,
                             aten::Request &request) {
  aten::Tracer &tracer = node.getImporter().getTracer();
  const Sizes &sizes = node.getSizes();
  int64_t next = 0;
  for (const aten::Parameter &parameter : op.schema.parameters) {
    bool isTensor = parameter.type == "Tensor";
    if (isTensor && node.hasInput(next))
      request.named.push_back(
          {parameter.name, Item::of(tracer.makeVariable(node.input(next)))});
    next += isTensor;
    const AttributeProto *attribute =
        isTensor ? nullptr : node.findAttr(parameter.name);
    if (!attribute)
      continue;
    auto item = readAttribute(*attribute, sizes);
    // ONNX has no booleans among attributes.
    if (item && parameter.type == "bool" && item->is(Item::Kind::integer))
      item->kind = Item::Kind::boolean;
    if (!item || !parameter.accepts(*item)) {
      node.fail("attribute '" + parameter.name + "' is not of type " +
                parameter.type);
      return false;
    }
    request.named.push_back({parameter.name, std::move(*item)});
  }
  if (node.getNumInputs() > next)
    node.fail("has " + llvm::Twine(node.getNumInputs()) +
              " inputs, expected at most " + llvm::Twine(next));
  for (const AttributeProto &attribute : node.getProto().attribute()) {
    auto parameter = op.schema.find(attribute.name());
    if (!parameter || op.schema.parameters[*parameter].type == "Tensor")
      node.fail("attribute '" + attribute.name() + "' is unknown");
  }
  return !node.hasFailed();
}

void importCustom(const plugin::Operator &op, Node &node) {
  aten::Tracer &tracer = node.getImporter().getTracer();
  aten::ItemScope scope;
  aten::Request request;
  request.name = op.name;
  request.node = node.getImporter().getPath(node.getProto());
  request.site = GraphImporter::getModulePath(node.getProto());
  if (!collectArguments(op, node, request))
    return;
  auto result = tracer.run(request);
  if (!result) {
    node.fail("was not imported"); // what it lacks is reported
    return;
  }
  std::vector<Item> results = {*result};
  if (result->isSequence())
    results = *result->items;
  if (size_t(node.getNumOutputs()) > results.size())
    node.fail("has " + llvm::Twine(node.getNumOutputs()) +
              " outputs, expected at most " + llvm::Twine(results.size()));
  for (int64_t i = 0; i < node.getNumOutputs() && !node.hasFailed(); ++i)
    if (node.hasOutput(i))
      node.setResult(i, tracer.materialize(node, *results[i].tensor));
}

} // namespace tcc::onnx_import

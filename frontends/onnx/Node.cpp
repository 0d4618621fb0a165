#include "frontends/onnx/Node.h"

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;
using onnx::AttributeProto;

namespace tcc::onnx_import {

Node::Node(GraphImporter &importer, const onnx::NodeProto &proto,
           AttributeMap attributes, int64_t version, ArrayRef<Tensor *> inputs,
           Location loc)
    : Emitter(importer.getBuilder(), loc, importer.getSizes()),
      importer(importer), proto(proto), attributes(std::move(attributes)),
      version(version), inputs(inputs), results(proto.output_size(), nullptr) {}

// --- Inputs ------------------------------------------------------------------

bool Node::hasInput(int64_t i) const {
  return i < getNumInputs() && inputs[i] != nullptr;
}

Tensor *Node::tensor(int64_t i) {
  if (hasInput(i))
    return inputs[i];
  fail("input " + llvm::Twine(i) + " is missing");
  return nullptr;
}

Value Node::input(int64_t i) {
  Tensor *found = tensor(i);
  if (!found || hasFailed())
    return nullptr;
  if (found->sequence)
    return fail("input " + llvm::Twine(i) + " is a sequence");
  Value value = importer.materialize(*found);
  return value ? value : fail("input " + llvm::Twine(i) + " has no value");
}

SmallVector<Value> Node::inputsFrom(int64_t first) {
  SmallVector<Value> values;
  for (int64_t i = first; i < getNumInputs(); ++i)
    values.push_back(input(i));
  return values;
}

RankedTensorType Node::type(int64_t i) {
  Tensor *found = tensor(i);
  if (found && !found->sequence)
    return found->type;
  fail("input " + llvm::Twine(i) + " is a sequence");
  return RankedTensorType::get({}, Float32Type::get(getContext()));
}

Type Node::elementType(int64_t i) { return type(i).getElementType(); }
graph::Extents Node::shape(int64_t i) { return graph::getExtents(type(i)); }
int64_t Node::inputRank(int64_t i) { return type(i).getRank(); }

const NarrowType *Node::narrowType(int64_t i) {
  Tensor *found = tensor(i);
  return found ? found->decodedFrom : nullptr;
}

std::optional<Content> Node::knownContent(int64_t i) {
  if (!hasInput(i) || inputs[i]->sequence)
    return std::nullopt;
  RankedTensorType type = inputs[i]->type;
  if (type && type.hasStaticShape() && type.getNumElements() == 0)
    return Content();
  return importer.getContent(*inputs[i]);
}

bool Node::isComputed(int64_t i) {
  return hasInput(i) && !inputs[i]->sequence && !knownContent(i) &&
         !importer.isLeftOut(*inputs[i]);
}

static std::string getUnknownMessage(StringRef what) {
  return (what + " that is known only at run time").str();
}

std::optional<Content> Node::requireContent(int64_t i, StringRef what) {
  if (!tensor(i))
    return std::nullopt;
  if (auto content = knownContent(i))
    return content;
  valueLeftOut = importer.isLeftOut(*inputs[i]);
  if (valueLeftOut)
    fail(what + " decides a shape but its values were left out");
  else
    unsupported(getUnknownMessage(what));
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> Node::requireInts(int64_t i,
                                                      StringRef what) {
  auto content = requireContent(i, what);
  if (!content)
    return std::nullopt;
  SmallVector<int64_t> values;
  for (AffineExpr element : *content) {
    auto value = graph::getConstant(element);
    if (!value) {
      unsupported(what + " that depends on a dynamic dimension");
      return std::nullopt;
    }
    values.push_back(*value);
  }
  return values;
}

std::optional<int64_t> Node::requireInt(int64_t i, StringRef what,
                                        int64_t fallback) {
  if (!hasInput(i))
    return fallback;
  auto values = requireInts(i, what);
  if (values && values->size() == 1)
    return values->front();
  fail(what + " must have one element");
  return std::nullopt;
}

std::optional<SmallVector<double>> Node::knownFloats(int64_t i) {
  if (!hasInput(i) || inputs[i]->sequence)
    return std::nullopt;
  return importer.getFloats(*inputs[i]);
}

std::optional<SmallVector<double>> Node::requireFloats(int64_t i,
                                                       StringRef what) {
  if (!tensor(i))
    return std::nullopt;
  auto values = knownFloats(i);
  if (!values)
    unsupported(getUnknownMessage(what));
  return values;
}

std::optional<SmallVector<double>> Node::knownNumbers(Value value) {
  return value && !hasFailed() ? importer.getFloats(*makeTensor(value))
                               : std::nullopt;
}

std::optional<double> Node::knownNumber(Value scalar) {
  auto numbers = knownNumbers(scalar);
  return numbers && numbers->size() == 1 ? std::optional(numbers->front())
                                         : std::nullopt;
}

std::optional<SizeElement> Node::sizeInput(int64_t i, StringRef what) {
  auto content = knownContent(i);
  if (!content && hasInput(i) && !isComputed(i))
    content = requireContent(i, what);
  if (content && content->size() == 1)
    return SizeElement{content->front(), nullptr};
  Value value = hasFailed() || content ? nullptr : input(i);
  if (value && type(i).hasStaticShape() && type(i).getNumElements() == 1)
    return SizeElement{AffineExpr(),
                       cast(reshape(value, {}), getBuilder().getI64Type())};
  fail(what + " must have one element");
  return std::nullopt;
}

SizeElement Node::settle(const SizeElement &element) {
  auto number = knownNumber(element.value);
  if (!number || std::abs(*number) >= 0x1p53)
    return element;
  return {getSizes().constant(int64_t(*number)), nullptr, element.max};
}

// --- Attributes --------------------------------------------------------------

const AttributeProto *Node::findAttr(StringRef name) const {
  return attributes.lookup(name);
}

int64_t Node::intAttr(StringRef name, int64_t fallback) {
  const AttributeProto *found = findAttr(name);
  if (!found)
    return fallback;
  if (!found->has_i())
    fail("attribute '" + name + "' is not an integer");
  return found->i();
}

double Node::floatAttr(StringRef name, double fallback) {
  const AttributeProto *found = findAttr(name);
  if (!found)
    return fallback;
  if (!found->has_f())
    fail("attribute '" + name + "' is not a float");
  return found->f();
}

std::string Node::stringAttr(StringRef name, StringRef fallback) {
  const AttributeProto *found = findAttr(name);
  if (!found)
    return fallback.str();
  if (!found->has_s())
    fail("attribute '" + name + "' is not a string");
  return found->s();
}

std::optional<SmallVector<int64_t>> Node::intsAttr(StringRef name) {
  const AttributeProto *found = findAttr(name);
  if (!found)
    return std::nullopt;
  return SmallVector<int64_t>(found->ints().begin(), found->ints().end());
}

std::optional<SmallVector<double>> Node::floatsAttr(StringRef name) {
  const AttributeProto *found = findAttr(name);
  if (!found)
    return std::nullopt;
  return SmallVector<double>(found->floats().begin(), found->floats().end());
}

SmallVector<std::string> Node::stringsAttr(StringRef name) {
  const AttributeProto *found = findAttr(name);
  if (!found)
    return {};
  return SmallVector<std::string>(found->strings().begin(),
                                  found->strings().end());
}

std::optional<SmallVector<int64_t>>
Node::intsAttrOrInput(StringRef name, int64_t since, int64_t i) {
  if (version < since)
    return intsAttr(name);
  return hasInput(i) ? requireInts(i, name) : std::nullopt;
}

int64_t Node::axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  fail("axis " + llvm::Twine(axis) + " is out of range for rank " +
       llvm::Twine(rank));
  return 0;
}

SmallVector<int64_t> Node::axes(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : axes) {
    int64_t found = axis(value, rank);
    if (llvm::is_contained(result, found))
      fail("axis " + llvm::Twine(value) + " is given twice");
    result.push_back(found);
    if (hasFailed())
      return {};
  }
  return result;
}

Value Node::apply(StringRef op, int64_t opVersion, ArrayRef<Value> operands) {
  if (hasFailed() || llvm::is_contained(operands, nullptr))
    return nullptr;
  const OpRow *row = findOp("", op, opVersion);
  if (!row)
    return unsupported(op + " of version " + llvm::Twine(opVersion));
  SmallVector<Tensor *> tensors;
  for (Value operand : operands)
    tensors.push_back(makeTensor(operand));
  Node inner(importer, proto, attributes, opVersion, tensors, getLoc());
  row->import(inner);
  if (inner.hasFailed())
    return failAs(inner);
  Tensor *result = inner.results.empty() ? nullptr : inner.results.front();
  return result ? importer.materialize(*result) : fail("an output is expected");
}

// --- Results -----------------------------------------------------------------

bool Node::hasOutput(int64_t i) const {
  return i < getNumOutputs() && !proto.output(i).empty();
}

void Node::setTensor(int64_t i, Tensor *tensor) {
  if (i < getNumOutputs())
    results[i] = tensor;
}

Tensor *Node::makeTensor(Value value) {
  Tensor tensor;
  tensor.type = cast<RankedTensorType>(value.getType());
  tensor.value = value;
  return importer.getPool().make(std::move(tensor));
}

std::string Node::getResultName(int64_t i) {
  return hasOutput(i) ? importer.qualify(proto.output(i)) : "size";
}

void Node::setResult(int64_t i, Value value) {
  if (value)
    setTensor(i, makeTensor(value));
}

void Node::setNarrow(int64_t i, Value stored, const NarrowType &narrow) {
  setResult(i, stored);
  if (stored && i < getNumOutputs())
    results[i]->narrow = &narrow;
}

void Node::setContent(int64_t i, RankedTensorType type, Content content) {
  Tensor tensor;
  tensor.type = type;
  tensor.content = std::move(content);
  setTensor(i, importer.getPool().make(std::move(tensor)));
}

} // namespace tcc::onnx_import

//===- Sequences.cpp - Sequences and optionals, resolved at import --------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

using Elements = SmallVector<Tensor *>;

static Elements *getSequence(Node &node, int64_t i) {
  Tensor *tensor = node.tensor(i);
  if (tensor && tensor->sequence)
    return &*tensor->sequence;
  node.fail("input " + llvm::Twine(i) + " is not a sequence");
  return nullptr;
}

static void setSequence(Node &node, Elements elements, int64_t i = 0) {
  node.setTensor(
      i, node.getImporter().getPool().makeSequence(std::move(elements)));
}

static Tensor *wrap(Node &node, Value value) {
  Tensor tensor;
  tensor.type = cast<RankedTensorType>(value.getType());
  tensor.value = value;
  return node.getImporter().getPool().make(std::move(tensor));
}

/// The position in input `i`, or `size` where it is absent.
static std::optional<int64_t> readPosition(Node &node, int64_t i, int64_t size,
                                           int64_t limit) {
  auto position = node.requireInt(i, "a position", size);
  if (position && *position < 0)
    *position += size;
  if (position && (*position < 0 || *position > limit)) {
    node.fail("position is out of range for " + llvm::Twine(size) +
              " elements");
    return std::nullopt;
  }
  return position;
}

static void importSequenceConstruct(Node &node) {
  Elements elements;
  for (int64_t i = 0; i < node.getNumInputs(); ++i)
    elements.push_back(node.tensor(i));
  if (!node.hasFailed())
    setSequence(node, std::move(elements));
}

static void importSequenceEmpty(Node &node) { setSequence(node, {}); }

static void importSequenceAt(Node &node) {
  Elements *elements = getSequence(node, 0);
  if (!elements)
    return;
  int64_t size = elements->size();
  if (auto position = readPosition(node, 1, size, size - 1))
    node.setTensor(0, (*elements)[*position]);
}

static void importSequenceInsert(Node &node) {
  Elements *elements = getSequence(node, 0);
  Tensor *inserted = node.tensor(1);
  if (!elements || !inserted)
    return;
  int64_t size = elements->size();
  if (auto position = readPosition(node, 2, size, size)) {
    Elements result = *elements;
    result.insert(result.begin() + *position, inserted);
    setSequence(node, std::move(result));
  }
}

static void importSequenceErase(Node &node) {
  Elements *elements = getSequence(node, 0);
  if (!elements)
    return;
  int64_t size = elements->size();
  auto position = node.hasInput(1) ? readPosition(node, 1, size, size - 1)
                                   : std::optional(size - 1);
  if (size == 0)
    return (void)node.fail("the sequence is empty");
  if (position) {
    Elements result = *elements;
    result.erase(result.begin() + *position);
    setSequence(node, std::move(result));
  }
}

static void importSequenceLength(Node &node) {
  if (Elements *elements = getSequence(node, 0))
    node.setContent(
        0, RankedTensorType::get({}, IntegerType::get(node.getContext(), 64)),
        {node.getSizes().constant(elements->size())});
}

static void importConcatFromSequence(Node &node) {
  Elements *elements = getSequence(node, 0);
  if (!elements)
    return;
  if (elements->empty())
    return (void)node.fail("the sequence is empty");
  bool isNewAxis = node.intAttr("new_axis", 0) != 0;
  SmallVector<Value> parts;
  for (Tensor *tensor : *elements)
    parts.push_back(node.getImporter().materialize(*tensor));
  int64_t rank = node.rank(parts[0]) + isNewAxis;
  int64_t axis = node.axis(node.intAttr("axis", 0), rank);
  if (node.hasFailed())
    return;
  for (Value &part : parts)
    part = isNewAxis ? node.unsqueeze(part, {axis}) : part;
  node.setResult(0, node.concat(parts, axis));
}

/// The extents of the parts: given, equal ones, or ones of extent 1.
static std::optional<SmallVector<int64_t>> readParts(Node &node,
                                                     int64_t extent) {
  if (!node.hasInput(1))
    return SmallVector<int64_t>(extent, 1);
  auto given = node.requireInts(1, "split");
  if (!given || node.inputRank(1) == 1)
    return given;
  int64_t part = given->size() == 1 ? given->front() : 0;
  if (part < 1) {
    node.fail("split must be positive");
    return std::nullopt;
  }
  SmallVector<int64_t> parts(extent / part, part);
  if (extent % part != 0)
    parts.push_back(extent % part);
  return parts;
}

/// Parts whose extents a run computes; how many there are is known.
static void splitComputed(Node &node, int64_t axis) {
  if (node.inputRank(1) != 1)
    return (void)node.unsupported("a number of parts that is known only at run "
                                  "time");
  SmallVector<SizeElement> parts = node.elements(node.input(1));
  SmallVector<std::string> names;
  for (size_t i = 0; i < parts.size(); ++i)
    names.push_back(node.getResultName() + "[" + std::to_string(i) + "]");
  Elements elements;
  for (Value part : cutAtRunTime(node, axis, parts, names))
    if (part)
      elements.push_back(wrap(node, part));
  if (!node.hasFailed())
    setSequence(node, std::move(elements));
}

static void importSplitToSequence(Node &node) {
  Value x = node.input(0);
  int64_t axis = node.axis(node.intAttr("axis", 0), node.rank(x));
  if (node.hasFailed())
    return;
  if (node.isComputed(1))
    return splitComputed(node, axis);
  auto extent = graph::getConstant(graph::getExtent(x, axis));
  if (!extent || *extent > kMaxContent)
    return (void)node.unsupported("a split of a dynamic or long axis");
  auto parts = readParts(node, *extent);
  if (!parts)
    return;
  bool keepsAxis = node.hasInput(1) || node.intAttr("keepdims", 1) != 0;
  Elements elements;
  int64_t start = 0;
  for (int64_t part : *parts) {
    if (part < 0 || part > *extent - start)
      return (void)node.fail("split does not fit the axis");
    Value value = node.slice(x, axis, start, part);
    value = keepsAxis ? value : node.squeeze(value, {axis});
    if (!value)
      return;
    elements.push_back(wrap(node, value));
    start += part;
  }
  setSequence(node, std::move(elements));
}

// --- SequenceMap -------------------------------------------------------------

/// The body's results for element `i` of each sequence.
static Elements mapElements(Node &node, const onnx::GraphProto &body,
                            int64_t i) {
  Elements inputs;
  for (int64_t k = 0; k < node.getNumInputs(); ++k) {
    Tensor *tensor = node.tensor(k);
    inputs.push_back(tensor->sequence ? (*tensor->sequence)[i] : tensor);
  }
  return node.getImporter().importSubgraph(body, inputs);
}

static void importSequenceMap(Node &node) {
  const auto *body = node.findAttr("body");
  Elements *first = getSequence(node, 0);
  if (!first)
    return;
  for (int64_t k = 0; k < node.getNumInputs(); ++k)
    if (Tensor *tensor = node.tensor(k);
        tensor && tensor->sequence && tensor->sequence->size() != first->size())
      node.fail("the sequences are of different lengths");
  if (!body || !body->has_g() ||
      body->g().input_size() != node.getNumInputs() ||
      body->g().output_size() != node.getNumOutputs())
    node.fail("the body's inputs and outputs do not fit the node's");
  if (node.hasFailed())
    return;
  std::vector<Elements> outputs(node.getNumOutputs());
  for (int64_t i = 0, size = first->size(); i < size; ++i)
    for (auto [output, result] :
         llvm::zip_equal(outputs, mapElements(node, body->g(), i)))
      output.push_back(result);
  TensorPool &pool = node.getImporter().getPool();
  for (auto [i, output] : llvm::enumerate(outputs)) {
    bool isInvalid =
        llvm::any_of(output, [](Tensor *tensor) { return tensor->isInvalid; });
    if (isInvalid)
      node.setTensor(i, pool.makeInvalid());
    else
      setSequence(node, std::move(output), i);
  }
}

// --- Optionals
// ----------------------------------------------------------------

/// Optional values are known to be there or not.
static void importOptionalHasElement(Node &node) {
  node.setContent(
      0, RankedTensorType::get({}, IntegerType::get(node.getContext(), 1)),
      {node.getSizes().constant(node.hasInput(0))});
}

static void importOptional(Node &node) {
  node.setTensor(0, node.hasInput(0)
                        ? node.tensor(0)
                        : node.getImporter().getPool().makeAbsent());
}

static void importOptionalGetElement(Node &node) {
  if (!node.hasInput(0))
    return (void)node.fail("the optional has no value");
  node.setTensor(0, node.tensor(0));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"ConcatFromSequence", 11, last, importConcatFromSequence},
    {"Optional", 15, last, importOptional},
    {"OptionalGetElement", 15, last, importOptionalGetElement},
    {"OptionalHasElement", 15, last, importOptionalHasElement},
    {"SequenceAt", 11, last, importSequenceAt},
    {"SequenceConstruct", 11, last, importSequenceConstruct},
    {"SequenceEmpty", 11, last, importSequenceEmpty},
    {"SequenceErase", 11, last, importSequenceErase},
    {"SequenceInsert", 11, last, importSequenceInsert},
    {"SequenceLength", 11, last, importSequenceLength},
    {"SequenceMap", 17, last, importSequenceMap},
    {"SplitToSequence", 11, last, importSplitToSequence},
};

ArrayRef<OpRow> getSequenceOps() { return rows; }

} // namespace tcc::onnx_import

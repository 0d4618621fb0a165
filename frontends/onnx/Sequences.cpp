//===- Sequences.cpp - Sequences and optionals, resolved at import --------===//

#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Ops.h"

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

static void setSequence(Node &node, Elements elements) {
  Tensor tensor;
  tensor.sequence = std::move(elements);
  node.setTensor(0, node.getImporter().getPool().make(std::move(tensor)));
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

static void importSplitToSequence(Node &node) {
  Value x = node.input(0);
  int64_t axis = node.axis(node.intAttr("axis", 0), node.rank(x));
  if (node.hasFailed())
    return;
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
    Tensor tensor;
    tensor.type = cast<RankedTensorType>(value.getType());
    tensor.value = value;
    elements.push_back(node.getImporter().getPool().make(std::move(tensor)));
    start += part;
  }
  setSequence(node, std::move(elements));
}

/// Optional values are known to be there or not.
static void importOptionalHasElement(Node &node) {
  node.setContent(
      0, RankedTensorType::get({}, IntegerType::get(node.getContext(), 1)),
      {node.getSizes().constant(node.hasInput(0))});
}

static void importPassOn(Node &node) {
  if (!node.hasInput(0))
    return (void)node.unsupported("an empty optional");
  node.setTensor(0, node.tensor(0));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"ConcatFromSequence", 11, last, importConcatFromSequence},
    {"Optional", 15, last, importPassOn},
    {"OptionalGetElement", 15, last, importPassOn},
    {"OptionalHasElement", 15, last, importOptionalHasElement},
    {"SequenceAt", 11, last, importSequenceAt},
    {"SequenceConstruct", 11, last, importSequenceConstruct},
    {"SequenceEmpty", 11, last, importSequenceEmpty},
    {"SequenceErase", 11, last, importSequenceErase},
    {"SequenceInsert", 11, last, importSequenceInsert},
    {"SequenceLength", 11, last, importSequenceLength},
    {"SplitToSequence", 11, last, importSplitToSequence},
};

ArrayRef<OpRow> getSequenceOps() { return rows; }

} // namespace tcc::onnx_import

//===- Values.cpp - What is known of tensors, and where they are made -----===//

#include "frontends/onnx/Folding.h"
#include "frontends/onnx/GraphImporter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Larger constants are weights.
constexpr int64_t kMaxConstantBytes = 64 << 10;

static bool isFloat(RankedTensorType type) {
  return isa<FloatType>(type.getElementType());
}

// --- Metadata of PyTorch's exporter
// -------------------------------------------

void GraphImporter::addValueInfos(const onnx::GraphProto &graph) {
  for (const onnx::ValueInfoProto &info : graph.value_info())
    if (info.metadata_props_size() > 0)
      valueInfos[info.name()] = &info;
}

/// The metadata of `name` under `key`; empty if it has none.
static StringRef
findMetadata(const llvm::StringMap<const onnx::ValueInfoProto *> &infos,
             StringRef name, StringRef key) {
  const onnx::ValueInfoProto *info = infos.lookup(name);
  for (int i = 0; info && i < info->metadata_props_size(); ++i)
    if (info->metadata_props(i).key() == key)
      return info->metadata_props(i).value();
  return "";
}

WeightRole GraphImporter::getRole(StringRef name) const {
  StringRef kind = findMetadata(
      valueInfos, name, "pkg.torch.export.graph_signature.InputSpec.kind");
  return llvm::StringSwitch<WeightRole>(kind)
      .Case("PARAMETER", WeightRole::parameter)
      .Case("BUFFER", WeightRole::buffer)
      .Case("CONSTANT_TENSOR", WeightRole::constant)
      .Default(WeightRole::unknown);
}

/// The items of a list as Python prints it: ['a', 'b'].
static std::vector<std::string> readList(StringRef text) {
  SmallVector<StringRef> parts;
  std::vector<std::string> items;
  text.split(parts, '\'');
  for (size_t i = 1; i < parts.size(); i += 2)
    items.push_back(parts[i].str());
  return items;
}

void GraphImporter::describeOrigin(Weight &weight, StringRef name) const {
  weight.role = getRole(name);
  weight.sources = readList(
      findMetadata(valueInfos, name, "pkg.onnxscript.optimizer.folded_from"));
}

/// Modules are listed from the outermost one, the node itself at the end.
std::string GraphImporter::getModulePath(const onnx::NodeProto &node) {
  for (const auto &entry : node.metadata_props())
    if (entry.key() == "pkg.torch.onnx.name_scopes") {
      std::vector<std::string> scopes = readList(entry.value());
      return scopes.size() < 2 ? "" : scopes[scopes.size() - 2];
    }
  return "";
}

// --- Weights and constants ---------------------------------------------------

Weight &GraphImporter::addWeight(const Literal &literal) {
  auto [entry, isNew] = weightNames.try_emplace(&literal, literal.name);
  if (isNew) // sibling subgraphs may use a name twice
    for (int i = 2; weights.find(entry->second); ++i)
      entry->second = literal.name + "#" + std::to_string(i);
  Weight weight;
  weight.name = entry->second;
  weight.type = literal.type;
  weight.bytes = literal.bytes;
  weight.owner = literal.owner;
  describeOrigin(weight, literal.name);
  return weights.add(std::move(weight));
}

DenseElementsAttr GraphImporter::makeDense(const Literal &literal) {
  if (!literal.type.getElementType().isInteger(1)) {
    if (literal.type.getNumElements() == 0)
      return DenseElementsAttr::get(literal.type, ArrayRef<Attribute>());
    return DenseElementsAttr::getFromRawBuffer(literal.type, literal.bytes);
  }
  SmallVector<bool> bits;
  for (char byte : literal.bytes)
    bits.push_back(byte != 0);
  return DenseElementsAttr::get(literal.type, bits);
}

Value GraphImporter::materializeLiteral(Emitter &emitter, Tensor &tensor) {
  const Literal &literal = *tensor.literal;
  bool isSmall = getByteSize(literal.type) <= kMaxConstantBytes &&
                 (!isFloat(literal.type) || literal.type.getNumElements() <= 1);
  // A bias of one channel may be trained.
  isSmall &= getRole(literal.name) != WeightRole::parameter;
  if (literal.isLeftOut || !isSmall) {
    auto name = builder.getStringAttr(addWeight(literal).name);
    return emitter.create<graph::WeightOp>({}, {emitter.attr("name", name)},
                                           literal.type);
  }
  if (literal.isInitializer)
    addWeight(literal).structural = true;
  auto dense = makeDense(literal);
  return emitter.create<graph::ConstantOp>({}, {emitter.attr("value", dense)},
                                           literal.type);
}

Tensor *GraphImporter::decodeTensor(Emitter &emitter, Tensor &tensor) {
  if (tensor.literal && !tensor.narrow->isFloat) {
    Tensor *&known = decoded[tensor.literal];
    if (!known) {
      Literal literal = *tensor.literal;
      literal.narrow = nullptr;
      known = pool.makeLiteral(std::move(literal));
      known->decodedFrom = tensor.narrow;
    }
    return known;
  }
  Tensor result;
  result.value = decode(emitter, materialize(tensor), *tensor.narrow);
  if (!result.value)
    return nullptr;
  result.type = cast<RankedTensorType>(result.value.getType());
  result.decodedFrom = tensor.narrow;
  return pool.make(std::move(result));
}

Value GraphImporter::materialize(Tensor &tensor) {
  if (tensor.value || !tensor.isTensor())
    return tensor.value;
  bool isComputed =
      tensor.content && llvm::any_of(*tensor.content, [&](auto size) {
        return graph::isComputed(size, sizes.getSymbols());
      });
  if (isComputed) { // not known at the entry, and in a region only there
    Emitter emitter(builder, builder.getUnknownLoc(), sizes);
    return emitter.content(*tensor.content, tensor.type);
  }
  OpBuilder constants(entry, entry->begin());
  if (lastConstant)
    constants.setInsertionPointAfter(lastConstant);
  StringRef name = tensor.literal ? StringRef(tensor.literal->name) : "shape";
  auto loc = NameLoc::get(builder.getStringAttr(name));
  Emitter emitter(constants, loc, sizes);
  tensor.value = tensor.literal ? materializeLiteral(emitter, tensor)
                                : emitter.content(*tensor.content, tensor.type);
  if (tensor.value)
    lastConstant = tensor.value.getDefiningOp();
  return tensor.value;
}

// --- Known numbers -----------------------------------------------------------

std::optional<HostTensor> GraphImporter::getNumbers(Tensor &tensor) {
  if (const Literal *literal = tensor.literal) {
    if (literal->isLeftOut || literal->narrow ||
        literal->type.getNumElements() > kMaxContent)
      return std::nullopt;
    if (literal->isInitializer)
      addWeight(*literal).structural = true;
    auto read = readBytes(literal->type, literal->bytes);
    if (read)
      return std::move(*read);
    llvm::consumeError(read.takeError());
    return std::nullopt;
  }
  const HostTensor *numbers =
      tensor.value ? known.evaluate(tensor.value) : nullptr;
  if (!numbers)
    return std::nullopt;
  known.markStructural(tensor.value);
  return *numbers;
}

std::optional<Content> GraphImporter::getContent(Tensor &tensor) {
  if (tensor.content || !tensor.isTensor())
    return tensor.content;
  if (!tensor.type.hasStaticShape() ||
      tensor.type.getNumElements() > kMaxContent ||
      (isFloat(tensor.type) && !tensor.literal))
    return std::nullopt;
  auto numbers = getNumbers(tensor);
  if (!numbers)
    return std::nullopt;
  Content content;
  for (const Scalar &element : numbers->elements) {
    bool isWhole = !numbers->isFloat() || (element.f == std::floor(element.f) &&
                                           std::abs(element.f) < 0x1p53);
    if (!isWhole)
      return std::nullopt;
    Type type = tensor.type.getElementType();
    content.push_back(sizes.constant(
        numbers->isFloat() ? int64_t(element.f) : getInteger(element, type)));
    if (!numbers->isFloat() && !holds(type, content.back(), sizes))
      return std::nullopt; // an unsigned one beyond int64
  }
  return tensor.content = content;
}

std::optional<SmallVector<double>> GraphImporter::getFloats(Tensor &tensor) {
  if (!tensor.isTensor())
    return std::nullopt;
  SmallVector<double> result;
  if (tensor.content) {
    for (AffineExpr element : *tensor.content) {
      auto value = graph::getConstant(element);
      if (!value)
        return std::nullopt;
      result.push_back(double(*value));
    }
    return result;
  }
  auto numbers = getNumbers(tensor);
  if (!numbers)
    return std::nullopt;
  for (const Scalar &element : numbers->elements)
    result.push_back(
        numbers->isFloat()
            ? element.f
            : double(getInteger(element, tensor.type.getElementType())));
  return result;
}

} // namespace tcc::onnx_import

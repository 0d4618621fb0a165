#include "frontends/torchscript/Pickle.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tcc::torchscript {

using Kind = aten::Item::Kind;
using ValueKind = runtime::PickleValue::Kind;
using llvm::StringRef;

namespace {

/// What a persistent reference stands for: the bytes of an entry.
struct Storage : aten::Object {
  std::string key;
  Type elementType;
  llvm::ArrayRef<char> bytes;
};

} // namespace

/// The deepest that values may lie within each other.
constexpr int kMaxDepth = 1000;

bool Unpickler::fail(const llvm::Twine &message) {
  if (error.empty())
    error = message.str();
  return false;
}

// --- Tensors -----------------------------------------------------------------

static Type getStorageType(StringRef name, MLIRContext *context) {
  auto number = llvm::StringSwitch<int64_t>(name)
                    .Case("torch.ByteStorage", 0)
                    .Case("torch.CharStorage", 1)
                    .Case("torch.ShortStorage", 2)
                    .Case("torch.IntStorage", 3)
                    .Case("torch.LongStorage", 4)
                    .Case("torch.HalfStorage", 5)
                    .Case("torch.FloatStorage", 6)
                    .Case("torch.DoubleStorage", 7)
                    .Case("torch.BoolStorage", 11)
                    .Case("torch.BFloat16Storage", 15)
                    .Default(-1);
  return aten::getElementType(number, context);
}

/// ('storage', class, key, device, number of elements)
bool Unpickler::readStorage(const Value &value, Item &item) {
  const Value &reference = *value.items[0];
  if (!reference.is(ValueKind::tuple) || reference.items.size() != 5)
    return fail("refers to what is no storage");
  const auto &parts = reference.items;
  if (!parts[1]->is(ValueKind::global) || !parts[2]->is(ValueKind::text) ||
      parts[0]->text != "storage")
    return fail("refers to what is no storage");
  auto storage = std::make_shared<Storage>();
  storage->key = parts[2]->text;
  storage->elementType =
      getStorageType(parts[1]->text, tracer.getBuilder().getContext());
  if (!storage->elementType)
    return fail("has elements of " + parts[1]->text +
                ", which is not supported");
  std::string path = folder + "/" + storage->key, reason = "is not there";
  const Archive::Entry *entry = archive.find(path);
  if (readsWeights) {
    auto bytes = entry ? archive.getStored(*entry, reason) : std::nullopt;
    if (!bytes)
      return fail("'" + path + "': " + reason);
    storage->bytes = *bytes;
  }
  // PyTorch says how many elements there are.
  int64_t count = parts[4]->is(ValueKind::integer) ? parts[4]->integer : -1;
  int64_t size = getByteSize(RankedTensorType::get({1}, storage->elementType));
  if (count < 0 ||
      (readsWeights && uint64_t(count) > storage->bytes.size() / size))
    return fail("has more elements than '" + path + "'");
  item = Item::ofObject(storage);
  return true;
}

static bool readIntegers(const runtime::PickleValue &value,
                         SmallVectorImpl<int64_t> &values) {
  for (const runtime::PickleValue *each : value.items) {
    if (!each->is(ValueKind::integer))
      return false;
    values.push_back(each->integer);
  }
  return value.isSequence();
}

/// (storage, offset, extents, strides, ...)
bool Unpickler::makeTensor(const Value &value, Item &item) {
  const auto &parts = value.items;
  Item stored;
  if (parts.size() >= 4 && parts[0]->is(ValueKind::reference) &&
      !convert(*parts[0], stored))
    return false;
  auto storage = getAs<Storage>(stored);
  SmallVector<int64_t> extents, strides;
  if (!storage || !parts[1]->is(ValueKind::integer) ||
      !readIntegers(*parts[2], extents) || !readIntegers(*parts[3], strides))
    return fail("has a malformed tensor");
  int64_t offset = parts[1]->integer;
  Weight weight;
  weight.name = folder + "." + storage->key;
  weight.type = makeStaticType(extents, storage->elementType);
  if (!weight.type)
    return fail("has a tensor without a valid shape");
  if (readsWeights && !takeBytes(weight, storage->bytes, archive.getOwner(),
                                 offset, strides, copyBudget))
    return fail("has a tensor that does not fit the bytes that are stored");
  std::string place = storage->key + "@" + std::to_string(offset);
  for (auto [extent, stride] : llvm::zip(extents, strides))
    place += "," + std::to_string(extent) + ":" + std::to_string(stride);
  aten::Variable *&variable = tensors[place];
  if (!variable)
    variable = tracer.makeStored(std::move(weight));
  item = Item::of(variable);
  return true;
}

// --- Other values ------------------------------------------------------------

bool Unpickler::convertItems(const Value &value, std::vector<Item> &items) {
  for (const Value *each : value.items)
    if (!convert(*each, items.emplace_back()))
      return false;
  return true;
}

bool Unpickler::convertEntries(const Value &value, Dictionary &dictionary) {
  for (auto [key, held] : value.entries) {
    std::pair<Item, Item> entry;
    if (!convert(*key, entry.first) || !convert(*held, entry.second))
      return false;
    dictionary.entries.push_back(std::move(entry));
  }
  return true;
}

/// Gives an instance its attributes.
bool Unpickler::convertState(const Value &value, Instance &instance) {
  Item state;
  if (!convert(value, state))
    return false;
  auto attributes = getAs<Dictionary>(state);
  if (!attributes) {
    instance.attributes["__state__"] = state;
    return true;
  }
  for (auto &[key, held] : attributes->entries) {
    if (!key.is(Kind::text))
      return fail("has an attribute without a name");
    instance.attributes[key.text] = held;
  }
  return true;
}

/// What makes tensors and lists, or an instance of a class.
bool Unpickler::convertCall(const Value &value, Item &item) {
  StringRef name = value.text;
  if (name == "torch._utils._rebuild_tensor_v2")
    return makeTensor(value, item);
  if (name == "collections.OrderedDict") {
    auto dictionary = std::make_shared<Dictionary>();
    made[&value] = item = Item::ofObject(dictionary);
    return convertEntries(value, *dictionary);
  }
  if (name.starts_with("torch.jit._pickle.") ||
      name == "torch._utils._rebuild_parameter") {
    // What remains is the type.
    return value.items.empty() ? fail("makes a list of nothing")
                               : convert(*value.items[0], item);
  }
  if (!name.starts_with("__torch__"))
    return fail("refers to '" + name + "', which is not data");
  auto instance = std::make_shared<Instance>();
  instance->className = name.str();
  made[&value] = item = Item::ofObject(instance);
  return !value.state || convertState(*value.state, *instance);
}

bool Unpickler::convert(const Value &value, Item &item) {
  if (auto found = made.find(&value); found != made.end()) {
    item = found->second;
    return true;
  }
  if (depth == kMaxDepth)
    return fail("has values too deep within each other");
  ++depth;
  bool isDone = true;
  switch (value.kind) {
  case ValueKind::none:
    break;
  case ValueKind::boolean:
    item = Item::ofBoolean(tracer.getSizes().constant(value.integer));
    break;
  case ValueKind::integer:
    item = Item::ofInteger(tracer.getSizes().constant(value.integer));
    break;
  case ValueKind::real:
    item = Item::ofReal(value.real);
    break;
  case ValueKind::text:
    item = Item::ofText(value.text);
    break;
  case ValueKind::list:
  case ValueKind::tuple:
    item =
        Item::ofItems(value.is(ValueKind::list) ? Kind::list : Kind::tuple, {});
    made[&value] = item;
    isDone = convertItems(value, *item.items);
    break;
  case ValueKind::dictionary: {
    auto dictionary = std::make_shared<Dictionary>();
    made[&value] = item = Item::ofObject(dictionary);
    isDone = convertEntries(value, *dictionary);
    break;
  }
  case ValueKind::global:
    isDone = fail("refers to '" + value.text + "', which is not data");
    break;
  case ValueKind::call:
    isDone = convertCall(value, item);
    break;
  case ValueKind::reference:
    isDone = readStorage(value, item);
    break;
  }
  --depth;
  if (isDone)
    made[&value] = item;
  return isDone;
}

std::optional<aten::Item> Unpickler::read(StringRef text, std::string &reason) {
  auto pickle = runtime::Pickle::read(
      {reinterpret_cast<const std::byte *>(text.data()), text.size()});
  Item item;
  if (!pickle.ok())
    reason = pickle.takeStatus().message();
  else if (!convert(pickle->root(), item))
    reason = error;
  else
    return item;
  return std::nullopt;
}

} // namespace tcc::torchscript

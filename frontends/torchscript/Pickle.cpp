#include "frontends/torchscript/Pickle.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"

using namespace mlir;

namespace tcc::torchscript {

using Kind = aten::Item::Kind;
using llvm::StringRef;

namespace {

/// What a persistent reference stands for: the bytes of an entry.
struct Storage : aten::Object {
  std::string key;
  Type elementType;
  llvm::ArrayRef<char> bytes;
};

} // namespace

constexpr size_t kMaxStack = 1 << 20;

bool Unpickler::fail(const llvm::Twine &message) {
  if (error.empty())
    error = message.str();
  return false;
}

StringRef Unpickler::take(uint64_t count) {
  if (count > rest.size()) {
    fail("ends early");
    return "";
  }
  StringRef taken = rest.take_front(count);
  rest = rest.drop_front(count);
  return taken;
}

uint64_t Unpickler::takeInteger(unsigned bytes) {
  StringRef taken = take(bytes);
  uint64_t value = 0;
  for (auto [i, byte] : llvm::enumerate(taken))
    value |= uint64_t(uint8_t(byte)) << (8 * i);
  return value;
}

StringRef Unpickler::takeLine() {
  size_t end = rest.find('\n');
  if (end == StringRef::npos) {
    fail("ends early");
    return "";
  }
  StringRef line = take(end);
  take(1);
  return line;
}

bool Unpickler::pop(Item &item) {
  size_t bottom = marks.empty() ? 0 : marks.back();
  if (stack.size() <= bottom)
    return fail("takes from an empty stack");
  item = std::move(stack.back());
  stack.pop_back();
  return true;
}

bool Unpickler::popToMark(std::vector<Item> &items) {
  if (marks.empty())
    return fail("has no mark");
  items.assign(stack.begin() + marks.back(), stack.end());
  stack.resize(marks.back());
  marks.pop_back();
  return true;
}

// --- Values ------------------------------------------------------------------

bool Unpickler::pushInteger(int64_t value) {
  stack.push_back(Item::ofInteger(tracer.getSizes().constant(value)));
  return error.empty();
}

bool Unpickler::pushLong() {
  uint64_t length = takeInteger(1);
  if (length > 8)
    return fail("has an integer of more than 64 bits");
  uint64_t value = takeInteger(unsigned(length));
  return pushInteger(length == 0 ? 0 : signExtend(int64_t(value), 8 * length));
}

bool Unpickler::pop(std::vector<Item> &items, size_t count) {
  items.resize(count);
  for (size_t i = count; i-- > 0;)
    if (!pop(items[i]))
      return false;
  return true;
}

bool Unpickler::pushTuple(size_t count) {
  std::vector<Item> items;
  if (!pop(items, count))
    return false;
  stack.push_back(Item::ofItems(Kind::tuple, std::move(items)));
  return true;
}

/// A name; what it may be is checked where it is called.
bool Unpickler::pushGlobal() {
  StringRef module = takeLine(), name = takeLine();
  auto path = std::make_shared<Path>();
  path->name = (module + "." + name).str();
  bool isKnown = llvm::StringSwitch<bool>(path->name)
                     .Cases("torch._utils._rebuild_tensor_v2",
                            "torch._utils._rebuild_parameter",
                            "collections.OrderedDict", true)
                     .Cases("torch.jit._pickle.build_intlist",
                            "torch.jit._pickle.build_tensorlist",
                            "torch.jit._pickle.build_doublelist",
                            "torch.jit._pickle.build_boollist",
                            "torch.jit._pickle.restore_type_tag", true)
                     .Default(module.starts_with("__torch__") ||
                              (module == "torch" && name.ends_with("Storage")));
  if (!isKnown)
    return fail("refers to '" + path->name + "', which is not data");
  stack.push_back(aten::Item::ofObject(path));
  return error.empty();
}

// --- Memory ------------------------------------------------------------------

bool Unpickler::memoize(uint64_t key) {
  if (stack.empty())
    return fail("takes from an empty stack");
  memo[key] = stack.back();
  return true;
}

bool Unpickler::recall(uint64_t key) {
  auto found = memo.find(key);
  if (found == memo.end())
    return fail("recalls what it did not store");
  stack.push_back(found->second);
  return true;
}

bool Unpickler::append(ArrayRef<Item> items) {
  if (stack.empty() || !stack.back().is(Kind::list))
    return fail("appends to what is no list");
  auto &list = *stack.back().items;
  list.insert(list.end(), items.begin(), items.end());
  return true;
}

bool Unpickler::setItems(ArrayRef<Item> items) {
  auto dictionary = stack.empty() ? nullptr : getAs<Dictionary>(stack.back());
  if (!dictionary || items.size() % 2 != 0)
    return fail("adds to what is no dictionary");
  for (size_t i = 0; i < items.size(); i += 2)
    dictionary->entries.push_back({items[i], items[i + 1]});
  return true;
}

/// Gives an instance its attributes.
bool Unpickler::build() {
  Item state;
  if (!pop(state))
    return false;
  auto instance = stack.empty() ? nullptr : getAs<Instance>(stack.back());
  auto attributes = getAs<Dictionary>(state);
  if (!instance)
    return fail("builds what is no instance");
  if (!attributes) {
    instance->attributes["__state__"] = state;
    return true;
  }
  for (auto &[key, value] : attributes->entries) {
    if (!key.is(Kind::text))
      return fail("has an attribute without a name");
    instance->attributes[key.text] = value;
  }
  return true;
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
bool Unpickler::readStorage() {
  Item reference;
  if (!pop(reference))
    return false;
  if (!reference.is(Kind::tuple) || reference.items->size() != 5)
    return fail("refers to what is no storage");
  const std::vector<Item> &parts = *reference.items;
  auto type = getAs<Path>(parts[1]);
  if (!type || !parts[2].is(Kind::text) || parts[0].text != "storage")
    return fail("refers to what is no storage");
  auto storage = std::make_shared<Storage>();
  storage->key = parts[2].text;
  storage->elementType =
      getStorageType(type->name, tracer.getBuilder().getContext());
  if (!storage->elementType)
    return fail("has elements of " + type->name + ", which is not supported");
  std::string path = folder + "/" + storage->key, reason = "is not there";
  const Archive::Entry *entry = archive.find(path);
  if (readsWeights) {
    auto bytes = entry ? archive.getStored(*entry, reason) : std::nullopt;
    if (!bytes)
      return fail("'" + path + "': " + reason);
    storage->bytes = *bytes;
  }
  // PyTorch says how many elements there are.
  auto count = parts[4].is(Kind::integer) ? graph::getConstant(parts[4].size)
                                          : std::nullopt;
  int64_t size = getByteSize(RankedTensorType::get({1}, storage->elementType));
  if (!count || *count < 0 ||
      (readsWeights && uint64_t(*count) > storage->bytes.size() / size))
    return fail("has more elements than '" + path + "'");
  stack.push_back(aten::Item::ofObject(storage));
  return true;
}

static bool readIntegers(const aten::Item &item,
                         SmallVectorImpl<int64_t> &values) {
  if (!item.isSequence())
    return false;
  for (const aten::Item &each : *item.items) {
    auto value =
        each.is(Kind::integer) ? graph::getConstant(each.size) : std::nullopt;
    if (!value)
      return false;
    values.push_back(*value);
  }
  return true;
}

/// (storage, offset, extents, strides, ...)
bool Unpickler::makeTensor(const std::vector<Item> &arguments) {
  auto storage = arguments.size() < 4 ? nullptr : getAs<Storage>(arguments[0]);
  SmallVector<int64_t> extents, strides;
  auto offset = storage && arguments[1].is(Kind::integer)
                    ? graph::getConstant(arguments[1].size)
                    : std::nullopt;
  if (!offset || !readIntegers(arguments[2], extents) ||
      !readIntegers(arguments[3], strides))
    return fail("has a malformed tensor");
  Weight weight;
  weight.name = folder + "." + storage->key;
  weight.type = makeStaticType(extents, storage->elementType);
  if (!weight.type)
    return fail("has a tensor without a valid shape");
  if (readsWeights && !takeBytes(weight, storage->bytes, archive.getOwner(),
                                 *offset, strides, copyBudget))
    return fail("has a tensor that does not fit the bytes that are stored");
  std::string place = storage->key + "@" + std::to_string(*offset);
  for (auto [extent, stride] : llvm::zip(extents, strides))
    place += "," + std::to_string(extent) + ":" + std::to_string(stride);
  aten::Variable *&variable = tensors[place];
  if (!variable)
    variable = tracer.makeStored(std::move(weight));
  stack.push_back(Item::of(variable));
  return true;
}

/// A call: of what makes tensors and lists, or of a class.
bool Unpickler::reduce() {
  Item arguments, function;
  if (!pop(arguments) || !pop(function))
    return false;
  auto path = getAs<Path>(function);
  if (!path || !arguments.is(Kind::tuple))
    return fail("calls what is no function");
  StringRef name = path->name;
  const std::vector<Item> &items = *arguments.items;
  if (name == "torch._utils._rebuild_tensor_v2")
    return makeTensor(items);
  if (name == "collections.OrderedDict") {
    stack.push_back(aten::Item::ofObject(std::make_shared<Dictionary>()));
    return true;
  }
  if (name.starts_with("torch.jit._pickle.") ||
      name == "torch._utils._rebuild_parameter") {
    if (items.empty())
      return fail("makes a list of nothing");
    stack.push_back(items[0]); // what remains is the type
    return true;
  }
  if (!name.starts_with("__torch__"))
    return fail("calls '" + name + "'");
  auto instance = std::make_shared<Instance>();
  instance->className = path->name;
  stack.push_back(aten::Item::ofObject(instance));
  return true;
}

// --- The machine -------------------------------------------------------------

/// Numbers, strings and names; nullopt for an opcode of another kind.
std::optional<bool> Unpickler::push(uint8_t opcode) {
  switch (opcode) {
  case 'J': // BININT, BININT1, BININT2, LONG1
    return pushInteger(int32_t(takeInteger(4)));
  case 'K':
    return pushInteger(int64_t(takeInteger(1)));
  case 'M':
    return pushInteger(int64_t(takeInteger(2)));
  case 0x8a:
    return pushLong();
  case 'G': { // BINFLOAT, big-endian
    StringRef bytes = take(8);
    if (bytes.size() != 8)
      return false;
    uint64_t bits = llvm::support::endian::read64be(bytes.data());
    stack.push_back(Item::ofReal(llvm::bit_cast<double>(bits)));
    return true;
  }
  case 'X': // BINUNICODE
    stack.push_back(Item::ofText(take(takeInteger(4)).str()));
    return error.empty();
  case 0x88: // NEWTRUE, NEWFALSE
  case 0x89:
    stack.push_back(
        Item::ofBoolean(tracer.getSizes().constant(opcode == 0x88)));
    return true;
  case 'N':
    stack.push_back({});
    return true;
  case 'c':
    return pushGlobal();
  }
  return std::nullopt;
}

bool Unpickler::step(uint8_t opcode) {
  if (std::optional<bool> isPushed = push(opcode))
    return *isPushed;
  std::vector<Item> items;
  switch (opcode) {
  case 0x80: // PROTO
    take(1);
    return error.empty();
  case '}':
    stack.push_back(aten::Item::ofObject(std::make_shared<Dictionary>()));
    return true;
  case ']':
    stack.push_back(Item::ofItems(Kind::list, {}));
    return true;
  case ')':
    return pushTuple(0);
  case 0x85: // TUPLE1 to TUPLE3
  case 0x86:
  case 0x87:
    return pushTuple(opcode - 0x84);
  case '(':
    marks.push_back(stack.size());
    return true;
  case 't':
    if (!popToMark(items))
      return false;
    stack.push_back(Item::ofItems(Kind::tuple, std::move(items)));
    return true;
  case 'q': // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
    return memoize(takeInteger(1));
  case 'r':
    return memoize(takeInteger(4));
  case 'h':
    return recall(takeInteger(1));
  case 'j':
    return recall(takeInteger(4));
  case 'R':
  case 0x81: // NEWOBJ
    return reduce();
  case 'b':
    return build();
  case 'Q':
    return readStorage();
  case 'e':
    return popToMark(items) && append(items);
  case 'a':
    return pop(items, 1) && append(items);
  case 'u':
    return popToMark(items) && setItems(items);
  case 's':
    return pop(items, 2) && setItems(items);
  case '.':
    return isDone = true;
  }
  return fail("has opcode " + llvm::Twine(int(opcode)) +
              ", which TorchScript does not write");
}

std::optional<aten::Item> Unpickler::read(StringRef text, std::string &reason) {
  rest = text;
  while (!isDone && error.empty()) {
    StringRef opcode = take(1);
    if (opcode.empty() || !step(uint8_t(opcode[0])))
      break;
    if (stack.size() > kMaxStack)
      fail("needs too large a stack");
  }
  if (isDone && stack.size() == 1)
    return stack.back();
  fail("does not end in one object");
  reason = error;
  return std::nullopt;
}

} // namespace tcc::torchscript

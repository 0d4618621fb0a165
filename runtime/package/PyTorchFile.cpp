#include "runtime/package/PyTorchFile.h"

#include "runtime/base/PrintText.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using Kind = PickleValue::Kind;

/// Strides may make tensors far larger than the file.
static constexpr uint64_t kMinCopiedBytes = uint64_t(64) << 20;
static constexpr uint64_t kMaxCopiesOfFile = 4;

namespace {

/// Elements in an entry.
struct Storage {
  DType dtype;
  std::span<const std::byte> bytes;
};

} // namespace

static std::optional<DType> dtypeOfStorage(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"torch.FloatStorage", DType::f32},
      {"torch.DoubleStorage", DType::f64},
      {"torch.HalfStorage", DType::f16},
      {"torch.BFloat16Storage", DType::bf16},
      {"torch.LongStorage", DType::i64},
      {"torch.IntStorage", DType::i32},
      {"torch.ShortStorage", DType::i16},
      {"torch.CharStorage", DType::i8},
      {"torch.ByteStorage", DType::u8},
      {"torch.BoolStorage", DType::boolean},
  };
  for (auto [own, dtype] : kNames)
    if (own == name)
      return dtype;
  return std::nullopt;
}

const ZipDirectory::Entry *PyTorchFile::find(std::string_view name) const {
  return directory.find(folder + std::string(name));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A tensor's call, within that of a parameter or not; null for other values.
static const PickleValue *findTensor(const PickleValue &value) {
  const PickleValue *found = &value;
  if (found->isCallOf("torch._utils._rebuild_parameter") &&
      !found->items.empty())
    found = found->items[0];
  return found->isCallOf("torch._utils._rebuild_tensor_v2") ? found : nullptr;
}

static bool readIntegers(const PickleValue &value, std::vector<int64_t> &to) {
  for (const PickleValue *each : value.items) {
    if (!each->is(Kind::integer) || each->integer < 0)
      return false;
    to.push_back(each->integer);
  }
  return value.isSequence();
}

/// Whether elements follow one another in row-major order.
static bool isDense(std::span<const int64_t> shape,
                    std::span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] > 1 && strides[axis] != expected)
      return false;
    expected *= shape[axis];
  }
  return true;
}

/// One element after the last one, counted from the first; nothing if that is
/// no number.
static std::optional<uint64_t> spanOf(std::span<const int64_t> shape,
                                      std::span<const int64_t> strides) {
  uint64_t last = 0, step = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0)
      return 0;
    if (__builtin_mul_overflow(uint64_t(shape[axis] - 1),
                               uint64_t(strides[axis]), &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return last + 1;
}

/// ('storage', class, key, device, number of elements)
static const PickleValue *findStorage(const PickleValue &reference) {
  if (!reference.is(Kind::reference) || reference.items[0]->items.size() < 5 ||
      !reference.items[0]->is(Kind::tuple))
    return nullptr;
  const auto &parts = reference.items[0]->items;
  bool isOne = parts[0]->text == "storage" && parts[1]->is(Kind::global) &&
               parts[2]->is(Kind::text);
  return isOne ? reference.items[0] : nullptr;
}

/// Elements in row-major order.
Result<std::span<const std::byte>>
PyTorchFile::copy(const StoredTensor &tensor,
                  std::span<const std::byte> storage,
                  std::span<const int64_t> strides) {
  size_t width = traitsOf(tensor.dtype).bytes;
  uint64_t bytes = bytesOf(tensor.dtype, tensor.shape).value_or(UINT64_MAX);
  uint64_t most =
      std::max(kMinCopiedBytes, kMaxCopiesOfFile * file.bytes().size());
  if (bytes > most - std::min(most, copiedBytes))
    return Status(Code::BadData, "its strides make it larger than the file");
  copiedBytes += bytes;
  auto memory = Memory::allocate(bytes, systemAllocator(), tensor.name);
  if (!memory.ok())
    return memory.takeStatus();
  std::vector<int64_t> place(tensor.shape.size());
  uint64_t from = 0;
  for (uint64_t to = 0; to < bytes; to += width) {
    std::memcpy(memory->data() + to, storage.data() + from * width, width);
    for (size_t axis = place.size(); axis-- > 0;) {
      from += uint64_t(strides[axis]);
      if (++place[axis] < tensor.shape[axis])
        break;
      from -= uint64_t(strides[axis]) * uint64_t(tensor.shape[axis]);
      place[axis] = 0;
    }
  }
  copies.push_back(std::move(*memory));
  return std::span<const std::byte>(copies.back().span());
}

/// (storage, offset, extents, strides, ...)
Result<StoredTensor> PyTorchFile::readTensor(const PickleValue &tensor) {
  constexpr size_t kParts = 4;
  auto refuse = [](auto... parts) {
    return makeError(Code::BadData, parts...);
  };
  const auto &parts = tensor.items;
  const PickleValue *id =
      parts.size() < kParts ? nullptr : findStorage(*parts[0]);
  std::vector<int64_t> strides;
  StoredTensor read;
  if (!id || !parts[1]->is(Kind::integer) || parts[1]->integer < 0 ||
      !readIntegers(*parts[2], read.shape) ||
      !readIntegers(*parts[3], strides) || strides.size() != read.shape.size())
    return refuse("is malformed");
  auto dtype = dtypeOfStorage(id->items[1]->text);
  if (!dtype)
    return refuse("has elements of ", printText(id->items[1]->text));
  read.dtype = *dtype;
  const auto *entry = find("data/" + id->items[2]->text);
  if (!entry || entry->isCompressed)
    return refuse("has no stored entry '", printText(id->items[2]->text), "'");
  uint64_t count = entry->stored.size() / traitsOf(*dtype).bytes;
  auto first = uint64_t(parts[1]->integer);
  auto span = spanOf(read.shape, strides);
  if (!span || first > count || *span > count - first ||
      !bytesOf(*dtype, read.shape))
    return refuse("does not lie within its entry");
  auto storage = entry->stored.subspan(first * traitsOf(*dtype).bytes);
  read.bytes = storage.first(
      std::min<uint64_t>(storage.size(), *bytesOf(*dtype, read.shape)));
  if (*span == 0 || isDense(read.shape, strides))
    return read;
  auto copied = copy(read, storage, strides);
  if (!copied.ok())
    return copied.takeStatus();
  read.bytes = *copied;
  return read;
}

Status PyTorchFile::addTensors(const PickleValue &dictionary) {
  for (auto [key, value] : dictionary.entries) {
    const PickleValue *found = findTensor(*value);
    if (!found || !key->is(Kind::text))
      continue;
    auto tensor = readTensor(*found);
    if (!tensor.ok())
      return makeError(Code::BadData, "tensor '", printText(key->text), "' ",
                       tensor.takeStatus().message());
    tensor->name = key->text;
    entries.push_back(std::move(*tensor));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static bool hasTensors(const PickleValue &value) {
  return std::ranges::any_of(value.entries, [](const auto &entry) {
    return findTensor(*entry.second) != nullptr;
  });
}

/// The dictionary of the tensors; null if there is none.
static const PickleValue *findTensors(const PickleValue &root) {
  if (hasTensors(root))
    return &root;
  for (const char *name : {"state_dict", "model_state_dict", "model"})
    if (const PickleValue *found = root.find(name); found && hasTensors(*found))
      return found;
  return nullptr;
}

/// What all names begin with where a model was wrapped.
static void dropPrefix(std::vector<StoredTensor> &tensors,
                       std::string_view prefix) {
  bool isCommon = std::ranges::all_of(tensors, [&](const StoredTensor &tensor) {
    return tensor.name.starts_with(prefix);
  });
  for (StoredTensor &tensor : tensors)
    if (isCommon)
      tensor.name.erase(0, prefix.size());
}

Status PyTorchFile::readByteOrder() const {
  const auto *entry = find("byteorder");
  std::string_view little = "little";
  bool isLittle = !entry || std::ranges::equal(std::as_bytes(std::span(little)),
                                               entry->stored);
  return isLittle ? Status()
                  : Status(Code::Unsupported, "is not in little-endian order");
}

Status PyTorchFile::read() {
  constexpr std::string_view kPickle = "data.pkl";
  for (const auto &entry : directory.entries())
    if (entry.name.ends_with(kPickle) &&
        entry.name.find('/') == entry.name.size() - kPickle.size() - 1)
      folder = entry.name.substr(0, entry.name.size() - kPickle.size());
  const auto *entry = find(kPickle);
  if (!entry || entry->isCompressed)
    return Status(Code::BadData, "has no stored 'data.pkl': torch.save did not "
                                 "write it");
  if (Status status = readByteOrder(); !status.ok())
    return status;
  auto pickle = Pickle::read(entry->stored);
  if (!pickle.ok())
    return makeError(Code::BadData, "'data.pkl' ",
                     pickle.takeStatus().message());
  const PickleValue *found = findTensors(pickle->root());
  if (!found)
    return Status(Code::BadData,
                  "has no tensors by name, nor a 'state_dict' of them");
  if (Status status = addTensors(*found); !status.ok())
    return status;
  for (std::string_view prefix : {"module.", "_orig_mod."})
    dropPrefix(entries, prefix);
  std::ranges::sort(entries, {}, &StoredTensor::name);
  auto twice = std::ranges::adjacent_find(entries, {}, &StoredTensor::name);
  return twice == entries.end() ? Status()
                                : makeError(Code::BadData, "has tensor '",
                                            printText(twice->name), "' twice");
}

Result<PyTorchFile> PyTorchFile::open(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  auto directory = ZipDirectory::read(file->bytes());
  if (!directory.ok())
    return makeError(Code::BadData, "'", path, "' ",
                     directory.takeStatus().message());
  PyTorchFile opened(std::move(*file), std::move(*directory));
  Status status = opened.read();
  if (!status.ok())
    return makeError(status.code(), "'", path, "' ", status.message());
  return opened;
}

#include "runtime/data/TensorProto.h"

#include "runtime/base/MappedFile.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// Protobuf's wire types (protobuf.dev/programming-guides/encoding).
enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// Field numbers of onnx.TensorProto.
enum Field : uint64_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kInt64Data = 7,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13
};

struct WireField {
  uint64_t number = 0;
  Wire wire = kVarint;
  uint64_t value = 0; ///< of a varint or fixed field
  std::span<const std::byte> bytes;
};

/// Reads fields one by one; false at the end or at malformed bytes.
class WireReader {
public:
  explicit WireReader(std::span<const std::byte> bytes) : rest(bytes) {}

  bool isAtEnd() const { return rest.empty(); }
  bool readVarint(uint64_t &value);
  bool readField(WireField &field);

private:
  bool readFixed(size_t bytes, uint64_t &value);

  std::span<const std::byte> rest;
};

bool WireReader::readVarint(uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    uint8_t byte = std::to_integer<uint8_t>(rest[0]);
    rest = rest.subspan(1);
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

bool WireReader::readFixed(size_t bytes, uint64_t &value) {
  if (rest.size() < bytes)
    return false;
  value = 0;
  std::memcpy(&value, rest.data(), bytes);
  rest = rest.subspan(bytes);
  return true;
}

bool WireReader::readField(WireField &field) {
  uint64_t key = 0;
  if (!readVarint(key))
    return false;
  field.number = key >> 3;
  field.wire = static_cast<Wire>(key & 7);
  switch (field.wire) {
  case kVarint:
    return readVarint(field.value);
  case kFixed64:
    return readFixed(8, field.value);
  case kFixed32:
    return readFixed(4, field.value);
  case kBytes: {
    uint64_t length = 0;
    if (!readVarint(length) || length > rest.size())
      return false;
    field.bytes = rest.first(length);
    rest = rest.subspan(length);
    return true;
  }
  }
  return false;
}

/// What a TensorProto holds before its data is brought into one form.
struct Proto {
  std::vector<int64_t> shape;
  uint64_t dataType = 0;
  bool isExternal = false;
  std::span<const std::byte> raw;
  std::vector<uint64_t> elements; ///< of the typed field, as bits
  uint64_t typedField = 0;        ///< its number
  bool hasTwoFields = false;
};

/// Appends the elements of a repeated scalar field, packed or not.
bool appendScalars(const WireField &field, Wire element,
                   std::vector<uint64_t> &values) {
  if (field.wire == element) {
    values.push_back(field.value);
    return true;
  }
  if (field.wire != kBytes)
    return false;
  WireReader packed(field.bytes);
  if (element == kVarint) {
    uint64_t value = 0;
    while (!packed.isAtEnd()) {
      if (!packed.readVarint(value))
        return false;
      values.push_back(value);
    }
    return true;
  }
  size_t bytes = element == kFixed64 ? 8 : 4;
  for (size_t at = 0; at + bytes <= field.bytes.size(); at += bytes) {
    uint64_t value = 0;
    std::memcpy(&value, field.bytes.data() + at, bytes);
    values.push_back(value);
  }
  return field.bytes.size() % bytes == 0;
}

bool appendElements(const WireField &field, Wire element, Proto &proto) {
  size_t before = proto.elements.size();
  if (!appendScalars(field, element, proto.elements))
    return false;
  if (proto.elements.size() == before)
    return true;
  proto.hasTwoFields |= before > 0 && proto.typedField != field.number;
  proto.typedField = field.number;
  return true;
}

bool readProtoField(const WireField &field, Proto &proto) {
  switch (field.number) {
  case kDims: {
    std::vector<uint64_t> dims;
    if (!appendScalars(field, kVarint, dims))
      return false;
    proto.shape.insert(proto.shape.end(), dims.begin(), dims.end());
    return true;
  }
  case kDataType:
    proto.dataType = field.value;
    return field.wire == kVarint;
  case kRawData:
    proto.raw = field.bytes;
    return field.wire == kBytes;
  case kFloatData:
    return appendElements(field, kFixed32, proto);
  case kDoubleData:
    return appendElements(field, kFixed64, proto);
  case kInt32Data:
  case kInt64Data:
  case kUint64Data:
    return appendElements(field, kVarint, proto);
  case kExternalData:
    proto.isExternal = true;
    return true;
  }
  return true; // names and documentation
}

/// The element type for onnx.TensorProto.DataType.
std::optional<DType> dtypeOfOnnx(uint64_t dataType) {
  static constexpr std::optional<DType> kTypes[] = {
      std::nullopt,   DType::f32,   DType::u8,  DType::i8,    DType::u16,
      DType::i16,     DType::i32,   DType::i64, std::nullopt, // string
      DType::boolean, DType::f16,   DType::f64, DType::u32,   DType::u64,
      std::nullopt,   std::nullopt, // complex
      DType::bf16};
  return dataType < std::size(kTypes) ? kTypes[dataType] : std::nullopt;
}

/// The typed field that has the elements of a type; narrow ones stand in
/// int32_data.
Field fieldOf(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return kFloatData;
  case DType::f64:
    return kDoubleData;
  case DType::i64:
    return kInt64Data;
  case DType::u32:
  case DType::u64:
    return kUint64Data;
  default:
    return kInt32Data;
  }
}

template <typename... Parts>
Status refuse(const std::string &name, const Parts &...parts) {
  return makeError(Code::BadData, "'", name, "': ", parts...);
}

/// Copies raw bytes, or the low bytes of each typed element; the sizes match.
void fill(const Proto &proto, Tensor &tensor) {
  if (!proto.raw.empty()) {
    std::memcpy(tensor.data.data(), proto.raw.data(), proto.raw.size());
    return;
  }
  size_t bytes = traitsOf(tensor.dtype).bytes;
  for (size_t i = 0; i < proto.elements.size(); ++i)
    std::memcpy(tensor.data.data() + i * bytes, &proto.elements[i], bytes);
}

} // namespace

Result<Tensor> runtime::parseTensorProto(std::span<const std::byte> bytes,
                                         const std::string &name) {
  Proto proto;
  WireReader reader(bytes);
  while (!reader.isAtEnd()) {
    WireField field;
    if (!reader.readField(field) || !readProtoField(field, proto))
      return refuse(name, "not a serialized TensorProto");
  }
  if (proto.isExternal)
    return refuse(name, "keeps its data in another file");
  auto dtype = dtypeOfOnnx(proto.dataType);
  if (!dtype)
    return refuse(name, "has ONNX data type ", proto.dataType,
                  ", which tcc-run does not read");
  if (!proto.elements.empty() &&
      (proto.hasTwoFields || proto.typedField != fieldOf(*dtype)))
    return refuse(name, "has data in a field that is not of ",
                  traitsOf(*dtype).name);
  // Before memory is allocated: the data must be as large as the shape says.
  uint64_t held = proto.raw.empty()
                      ? proto.elements.size() * traitsOf(*dtype).bytes
                      : proto.raw.size();
  std::optional<uint64_t> needed = bytesOf(*dtype, proto.shape);
  if (!needed)
    return refuse(name, "has a bad shape");
  if (held != *needed)
    return refuse(name, "has ", held, " bytes of data, expected ", *needed);
  auto tensor = Tensor::allocate(*dtype, proto.shape);
  if (tensor.ok())
    fill(proto, *tensor);
  return tensor;
}

Result<Tensor> runtime::readTensorProto(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  return parseTensorProto(file->bytes(), path);
}

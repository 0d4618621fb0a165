#include "runtime/data/TensorProto.h"

#include "runtime/base/MappedFile.h"
#include "runtime/data/OnnxMessages.h"

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using onnx::kBytes, onnx::kVarint, onnx::TensorField;
using protozero::tag_and_type;

namespace {

/// The data of a TensorProto before they are brought into one form.
struct TensorData {
  std::span<const std::byte> raw;
  std::vector<uint64_t> elements; ///< of the typed field, as bits
  TensorField typedField = {};    ///< the one that has them
  bool areInTwoFields = false;
};

/// Appends what a typed field has, which is packed or one element.
class ElementReader {
public:
  explicit ElementReader(TensorData &data) : data(data) {}

  template <typename Elements>
  void addPacked(TensorField field, const Elements &elements) {
    for (uint64_t bits : elements)
      add(field, bits);
  }
  void add(TensorField field, uint64_t bits) {
    data.areInTwoFields |= !data.elements.empty() && data.typedField != field;
    data.typedField = field;
    data.elements.push_back(bits);
  }

private:
  TensorData &data;
};

TensorData readData(protozero::data_view message) {
  constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;
  constexpr auto kFixed64 = protozero::pbf_wire_type::fixed64;
  TensorData data;
  ElementReader reader(data);
  for (onnx::TensorProto tensor(message); tensor.next();)
    switch (tensor.tag_and_type()) {
    case tag_and_type(TensorField::raw_data, kBytes): {
      protozero::data_view raw = tensor.get_view();
      data.raw = std::as_bytes(std::span(raw.data(), raw.size()));
      break;
    }
    case tag_and_type(TensorField::float_data, kFixed32):
      reader.add(TensorField::float_data, tensor.get_fixed32());
      break;
    case tag_and_type(TensorField::float_data, kBytes):
      reader.addPacked(TensorField::float_data, tensor.get_packed_fixed32());
      break;
    case tag_and_type(TensorField::double_data, kFixed64):
      reader.add(TensorField::double_data, tensor.get_fixed64());
      break;
    case tag_and_type(TensorField::double_data, kBytes):
      reader.addPacked(TensorField::double_data, tensor.get_packed_fixed64());
      break;
    case tag_and_type(TensorField::int32_data, kVarint):
    case tag_and_type(TensorField::int64_data, kVarint):
    case tag_and_type(TensorField::uint64_data, kVarint):
      reader.add(tensor.tag(), tensor.get_uint64());
      break;
    case tag_and_type(TensorField::int32_data, kBytes):
    case tag_and_type(TensorField::int64_data, kBytes):
    case tag_and_type(TensorField::uint64_data, kBytes): {
      TensorField field = tensor.tag();
      reader.addPacked(field, tensor.get_packed_uint64());
      break;
    }
    default:
      tensor.skip();
    }
  return data;
}

/// The typed field that has the elements of a type; narrow ones stand in
/// int32_data.
TensorField fieldOf(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return TensorField::float_data;
  case DType::f64:
    return TensorField::double_data;
  case DType::i64:
    return TensorField::int64_data;
  case DType::u32:
  case DType::u64:
    return TensorField::uint64_data;
  default:
    return TensorField::int32_data;
  }
}

template <typename... Parts>
Status refuse(const std::string &name, const Parts &...parts) {
  return makeError(Code::BadData, "'", name, "': ", parts...);
}

/// Gives each element of fewer than 8 bits a byte of its own, with its sign.
/// The first is in a byte's lowest bits.
void unpack(std::span<const std::byte> packed, unsigned bits, Tensor &tensor) {
  unsigned perByte = 8 / bits, unused = 8 - bits;
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    auto byte = static_cast<uint8_t>(packed[i / perByte]);
    auto top = static_cast<uint8_t>(byte << (unused - i % perByte * bits));
    bool isSigned = tensor.dtype == DType::i8;
    tensor.data.data()[i] = static_cast<std::byte>(
        isSigned ? static_cast<int8_t>(top) >> unused : top >> unused);
  }
}

/// Copies raw bytes, or the low bytes of each typed element; the sizes match.
void fill(const TensorData &data, unsigned bits, Tensor &tensor) {
  if (bits < 8) {
    std::vector<std::byte> packed(data.raw.begin(), data.raw.end());
    for (uint64_t element : data.elements)
      packed.push_back(static_cast<std::byte>(element));
    return unpack(packed, bits, tensor);
  }
  if (!data.raw.empty()) {
    std::memcpy(tensor.data.data(), data.raw.data(), data.raw.size());
    return;
  }
  size_t bytes = traitsOf(tensor.dtype).bytes;
  for (size_t i = 0; i < data.elements.size(); ++i)
    std::memcpy(tensor.data.data() + i * bytes, &data.elements[i], bytes);
}

Result<Tensor> parse(protozero::data_view message, const std::string &name) {
  onnx::TensorHeader header = onnx::readTensorHeader(message);
  TensorData data = readData(message);
  if (header.isExternal)
    return refuse(name, "keeps its data in another file");
  auto dtype = header.dtype();
  if (!dtype)
    return refuse(name, "has ONNX data type ", header.dataType,
                  ", which tcc-run does not read");
  if (!data.elements.empty() &&
      (data.areInTwoFields || data.typedField != fieldOf(*dtype)))
    return refuse(name, "has data in a field that is not of ",
                  traitsOf(*dtype).name);
  // Before memory is allocated: the data must be as large as the shape says.
  uint64_t held = data.raw.empty()
                      ? data.elements.size() * traitsOf(*dtype).bytes
                      : data.raw.size();
  std::optional<uint64_t> needed = bytesOf(*dtype, header.shape);
  if (!needed)
    return refuse(name, "has a bad shape");
  unsigned bits = header.bitsOfElement();
  if (bits < 8) {
    unsigned perByte = 8 / bits;
    needed = *needed / perByte + (*needed % perByte != 0);
  }
  if (held != *needed)
    return refuse(name, "has ", held, " bytes of data, expected ", *needed);
  auto tensor = Tensor::allocate(*dtype, header.shape);
  if (tensor.ok())
    fill(data, bits, *tensor);
  return tensor;
}

} // namespace

Result<Tensor> runtime::parseTensorProto(std::span<const std::byte> bytes,
                                         const std::string &name) {
  try {
    return parse({reinterpret_cast<const char *>(bytes.data()), bytes.size()},
                 name);
  } catch (const protozero::exception &) {
    return refuse(name, "not a serialized TensorProto");
  }
}

Result<Tensor> runtime::readTensorProto(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  return parseTensorProto(file->bytes(), path);
}

#include "runtime/data/OnnxMessages.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::onnx;
using protozero::tag_and_type;

std::string_view onnx::viewOf(protozero::data_view view) {
  return {view.data(), view.size()};
}

static void readEntry(protozero::data_view message, TensorHeader &header) {
  std::string_view key, value;
  for (Entry entry(message); entry.next();)
    switch (entry.tag_and_type()) {
    case tag_and_type(EntryField::key, kBytes):
      key = viewOf(entry.get_view());
      break;
    case tag_and_type(EntryField::value, kBytes):
      value = viewOf(entry.get_view());
      break;
    default:
      entry.skip();
    }
  if (key == "location")
    header.location = value;
  else if (key == "offset")
    header.offset = value;
  else if (key == "length")
    header.length = value;
}

TensorHeader onnx::readTensorHeader(protozero::data_view message) {
  constexpr uint64_t kExternal = 1;
  TensorHeader header;
  for (TensorProto tensor(message); tensor.next();)
    switch (tensor.tag_and_type()) {
    case tag_and_type(TensorField::dims, kVarint):
      header.shape.push_back(tensor.get_int64());
      break;
    case tag_and_type(TensorField::dims, kBytes): // packed
      for (int64_t extent : tensor.get_packed_int64())
        header.shape.push_back(extent);
      break;
    case tag_and_type(TensorField::data_type, kVarint):
      header.dataType = tensor.get_uint64();
      break;
    case tag_and_type(TensorField::name, kBytes):
      header.name = viewOf(tensor.get_view());
      break;
    case tag_and_type(TensorField::external_data, kBytes):
      header.isExternal = true;
      readEntry(tensor.get_view(), header);
      break;
    case tag_and_type(TensorField::data_location, kVarint):
      header.isExternal |= tensor.get_uint64() == kExternal;
      break;
    default:
      tensor.skip();
    }
  return header;
}

std::optional<DType> TensorHeader::dtype() const {
  static constexpr std::optional<DType> kTypes[] = {
      std::nullopt,   DType::f32,   DType::u8,    DType::i8,
      DType::u16,     DType::i16,   DType::i32,   DType::i64,
      std::nullopt, // string
      DType::boolean, DType::f16,   DType::f64,   DType::u32,
      DType::u64,     std::nullopt, std::nullopt, // complex
      DType::bf16,    DType::u8,    DType::u8,    DType::u8,
      DType::u8,                  // floats of 8 bits
      DType::u8,      DType::i8,  // integers of 4 bits
      DType::u8,      DType::u8,  // floats of 4 bits, powers of two of 8
      DType::u8,      DType::i8}; // integers of 2 bits
  return dataType < std::size(kTypes) ? kTypes[dataType] : std::nullopt;
}

unsigned TensorHeader::bitsOfElement() const {
  constexpr uint64_t kUint4 = 21, kInt4 = 22, kFloat4 = 23;
  constexpr uint64_t kUint2 = 25, kInt2 = 26;
  if (dataType == kUint4 || dataType == kInt4 || dataType == kFloat4)
    return 4;
  if (dataType == kUint2 || dataType == kInt2)
    return 2;
  auto known = dtype();
  return known ? 8 * traitsOf(*known).bytes : 0;
}

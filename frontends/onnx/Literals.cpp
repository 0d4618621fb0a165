#include "frontends/onnx/Literals.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using onnx::TensorProto;

namespace tcc::onnx_import {

Type getElementType(int32_t onnxType, MLIRContext *context) {
  auto integer = [&](unsigned width, bool isUnsigned = false) -> Type {
    return IntegerType::get(context, width,
                            isUnsigned ? IntegerType::Unsigned
                                       : IntegerType::Signless);
  };
  switch (onnxType) {
  case TensorProto::FLOAT:
    return Float32Type::get(context);
  case TensorProto::DOUBLE:
    return Float64Type::get(context);
  case TensorProto::FLOAT16:
    return Float16Type::get(context);
  case TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case TensorProto::BOOL:
    return integer(1);
  case TensorProto::INT8:
    return integer(8);
  case TensorProto::INT16:
    return integer(16);
  case TensorProto::INT32:
    return integer(32);
  case TensorProto::INT64:
    return integer(64);
  case TensorProto::UINT8:
    return integer(8, true);
  case TensorProto::UINT16:
    return integer(16, true);
  case TensorProto::UINT32:
    return integer(32, true);
  case TensorProto::UINT64:
    return integer(64, true);
  default:
    return nullptr;
  }
}

/// Bytes of a tensor in a file, where narrow elements lie side by side.
static int64_t getStoredSize(const Literal &literal) {
  if (!literal.narrow)
    return getByteSize(literal.type);
  int64_t perByte = 8 / literal.narrow->bits;
  return llvm::divideCeil(literal.type.getNumElements(), perByte);
}

/// Gives each narrow element a byte of its own; the first is in the low bits.
static void unpack(Literal &literal) {
  if (!literal.narrow || literal.isLeftOut || literal.narrow->bits == 8)
    return;
  unsigned width = literal.narrow->bits, perByte = 8 / width;
  auto bytes = std::make_shared<std::string>();
  for (int64_t i = 0; i < literal.type.getNumElements(); ++i) {
    uint64_t bits = uint8_t(literal.bytes[i / perByte]) >> i % perByte * width &
                    llvm::maskTrailingOnes<uint64_t>(width);
    bytes->push_back(char(literal.narrow->isUnsigned
                              ? int64_t(bits)
                              : llvm::SignExtend64(bits, width)));
  }
  literal.bytes = {bytes->data(), bytes->size()};
  literal.owner = bytes;
}

std::string getTypeName(int32_t onnxType) {
  if (onnx::TensorProto_DataType_IsValid(onnxType))
    return llvm::StringRef(
               onnx::TensorProto_DataType_Name(TensorProto::DataType(onnxType)))
        .lower();
  return "type number " + std::to_string(onnxType);
}

static std::nullopt_t refuse(LiteralError &error, ProblemClass kind,
                             const llvm::Twine &message) {
  error = {kind, message.str()};
  return std::nullopt;
}

template <typename Fields>
static void packFields(const Fields &fields, unsigned width,
                       std::string &bytes) {
  for (auto value : fields)
    bytes.append(reinterpret_cast<const char *>(&value), width);
}

/// The bytes of the field in which ONNX keeps elements of this type. Narrow
/// types are stored one an int32; the host is little-endian.
static std::string packTypedFields(const TensorProto &tensor, unsigned width) {
  std::string bytes;
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    packFields(tensor.float_data(), width, bytes);
    break;
  case TensorProto::DOUBLE:
    packFields(tensor.double_data(), width, bytes);
    break;
  case TensorProto::INT64:
    packFields(tensor.int64_data(), width, bytes);
    break;
  case TensorProto::UINT32:
  case TensorProto::UINT64:
    packFields(tensor.uint64_data(), width, bytes);
    break;
  default:
    packFields(tensor.int32_data(), width, bytes);
    break;
  }
  return bytes;
}

static int64_t countTypedElements(const TensorProto &tensor) {
  return int64_t(tensor.float_data_size()) + tensor.double_data_size() +
         tensor.int32_data_size() + tensor.int64_data_size() +
         tensor.uint64_data_size() + tensor.string_data_size();
}

bool LiteralReader::readTypedFields(const TensorProto &tensor, int64_t size,
                                    Literal &literal, LiteralError &error) {
  unsigned width = getElementByteSize(literal.type.getElementType());
  auto bytes = std::make_shared<std::string>(packTypedFields(tensor, width));
  if (int64_t(bytes->size()) != countTypedElements(tensor) * width) {
    refuse(error, ProblemClass::badBytes,
           "tensor '" + tensor.name() +
               "' has data in a field that is not of " +
               getTypeName(tensor.data_type()));
    return false;
  }
  if (int64_t(bytes->size()) != size) {
    refuse(error, ProblemClass::badBytes,
           "tensor '" + tensor.name() + "' has " + llvm::Twine(bytes->size()) +
               " bytes of data, its shape needs " + llvm::Twine(size));
    return false;
  }
  literal.bytes = {bytes->data(), bytes->size()};
  literal.owner = bytes;
  return true;
}

static bool isOutside(const std::string &folder, const std::string &location) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(location).split(parts, '/');
  std::string real = getRealPath(folder + "/" + location);
  std::string root = getRealPath(folder);
  if (location.empty() || location[0] == '/' ||
      llvm::is_contained(parts, "..") ||
      location.find('\0') != std::string::npos)
    return true;
  return !real.empty() &&
         !llvm::StringRef(real).starts_with(root == "/" ? root : root + "/");
}

bool LiteralReader::readExternalBytes(const TensorProto &tensor, int64_t size,
                                      Literal &literal, LiteralError &error) {
  std::string location;
  uint64_t offset = 0, length = size;
  bool isValid = true;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      isValid &= !llvm::StringRef(entry.value()).getAsInteger(10, offset);
    else if (entry.key() == "length")
      isValid &= !llvm::StringRef(entry.value()).getAsInteger(10, length);
  }
  std::string what = "external data of tensor '" + tensor.name() + "'";
  auto refuseFile = [&](ProblemClass kind, const std::string &reason) {
    refuse(error, kind, what + " in '" + location + "' " + reason);
    return false;
  };
  if (isOutside(folder, location))
    return refuseFile(ProblemClass::badBytes, "is outside the model's folder");
  if (!isValid || length != uint64_t(size))
    return refuseFile(ProblemClass::badBytes,
                      "has a wrong offset or length, its shape needs " +
                          std::to_string(size) + " bytes");
  MappedFile &mapping = mappings[location];
  std::string reason;
  if (!mapping.owner && mapping.bytes.empty()) {
    auto mapped = mapFile(folder + "/" + location, reason);
    if (!mapped)
      return refuseFile(ProblemClass::io, "cannot be read: " + reason);
    mapping = *mapped;
  }
  if (offset > mapping.bytes.size() || length > mapping.bytes.size() - offset)
    return refuseFile(ProblemClass::badBytes,
                      "ends beyond the file's " +
                          std::to_string(mapping.bytes.size()) + " bytes");
  literal.bytes = mapping.bytes.slice(offset, length);
  literal.owner = mapping.owner;
  return true;
}

/// The static type of a stored tensor.
static RankedTensorType getType(const TensorProto &tensor, MLIRContext *context,
                                LiteralError &error) {
  std::string what = "tensor '" + tensor.name() + "' ";
  const NarrowType *narrow = findNarrowType(tensor.data_type());
  Type elementType = narrow ? getStorageType(*narrow, context)
                            : getElementType(tensor.data_type(), context);
  if (!elementType) {
    refuse(error, ProblemClass::unsupported,
           what + "has element type " + getTypeName(tensor.data_type()));
    return nullptr;
  }
  double count = 1;
  for (int64_t extent : tensor.dims()) {
    count *= std::max<int64_t>(extent, 1);
    if (extent < 0 || count > double(kMaxElements)) {
      refuse(error, ProblemClass::badBytes, what + "has an invalid shape");
      return nullptr;
    }
  }
  return RankedTensorType::get(
      ArrayRef<int64_t>(tensor.dims().data(), tensor.dims_size()), elementType);
}

std::optional<Literal> LiteralReader::read(const TensorProto &tensor,
                                           LiteralError &error) {
  Literal literal;
  literal.name = tensor.name();
  literal.type = getType(tensor, context, error);
  literal.narrow = findNarrowType(tensor.data_type());
  if (!literal.type || !readStored(tensor, literal, error))
    return std::nullopt;
  unpack(literal);
  return literal;
}

/// Finds the bytes as the file has them.
bool LiteralReader::readStored(const TensorProto &tensor, Literal &literal,
                               LiteralError &error) {
  int64_t size = getStoredSize(literal);
  if (tensor.has_segment()) {
    refuse(error, ProblemClass::unsupported,
           "tensor '" + tensor.name() + "' is stored in segments");
    return false;
  }
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    literal.isLeftOut = !readExternal;
    return !readExternal || readExternalBytes(tensor, size, literal, error);
  }
  if (!tensor.has_raw_data())
    return readTypedFields(tensor, size, literal, error);
  if (int64_t(tensor.raw_data().size()) != size) {
    refuse(error, ProblemClass::badBytes,
           "tensor '" + tensor.name() + "' has " +
               llvm::Twine(tensor.raw_data().size()) +
               " bytes of data, its shape needs " + llvm::Twine(size));
    return false;
  }
  literal.bytes = {tensor.raw_data().data(), tensor.raw_data().size()};
  literal.owner = owner;
  return true;
}

std::optional<Literal>
LiteralReader::readSparse(const onnx::SparseTensorProto &sparse,
                          LiteralError &error) {
  auto values = read(sparse.values(), error);
  auto indices = values ? read(sparse.indices(), error) : std::nullopt;
  if (!indices)
    return std::nullopt;
  TensorProto dense;
  dense.set_name(values->name);
  dense.set_data_type(sparse.values().data_type());
  *dense.mutable_dims() = sparse.dims();
  RankedTensorType type = getType(dense, context, error);
  if (!type)
    return std::nullopt;
  auto invalid = [&] {
    return refuse(error, ProblemClass::badBytes,
                  "sparse tensor '" + values->name + "' is malformed");
  };
  int64_t rank = type.getRank(), count = values->type.getNumElements();
  bool isLinear = indices->type.getRank() == 1;
  int64_t tuple = isLinear ? 1 : rank;
  // A sparse file of a few bytes must not ask for a huge dense buffer.
  if (!indices->type.getElementType().isInteger(64) || values->isLeftOut ||
      indices->isLeftOut || getByteSize(type) > (int64_t(1) << 31) ||
      indices->type.getNumElements() != count * tuple)
    return invalid();
  int64_t width = getElementByteSize(type.getElementType());
  auto bytes = std::make_shared<std::string>(getByteSize(type), '\0');
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = 0;
    for (int64_t axis = 0; axis < tuple; ++axis) {
      int64_t index,
          extent = isLinear ? type.getNumElements() : type.getDimSize(axis);
      std::memcpy(&index, indices->bytes.data() + (i * tuple + axis) * 8, 8);
      if (index < 0 || index >= extent)
        return invalid();
      position = position * extent + index;
    }
    std::memcpy(bytes->data() + position * width,
                values->bytes.data() + i * width, width);
  }
  Literal literal;
  literal.name = values->name;
  literal.type = type;
  literal.narrow = values->narrow;
  literal.bytes = {bytes->data(), bytes->size()};
  literal.owner = bytes;
  return literal;
}

} // namespace tcc::onnx_import

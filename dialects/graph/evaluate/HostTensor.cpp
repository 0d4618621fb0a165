#include "dialects/graph/evaluate/HostTensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
using llvm::APFloat;
using llvm::APInt;

namespace tcc {

static double toDouble(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

static APFloat toAPFloat(FloatType type, double value) {
  APFloat result(value);
  bool losesInfo;
  result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return result;
}

int64_t signExtend(int64_t value, unsigned width) {
  if (width == 1)
    return value & 1;
  return width >= 64 ? value : llvm::SignExtend64(value, width);
}

uint64_t zeroExtend(int64_t value, unsigned width) {
  return uint64_t(value) & llvm::maskTrailingOnes<uint64_t>(width);
}

Scalar roundTo(Type type, Scalar value) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    if (floatType.isF32())
      return {.f = double(float(value.f))};
    if (floatType.isF64())
      return value;
    return {.f = toDouble(toAPFloat(floatType, value.f))};
  }
  if (auto integer = dyn_cast<IntegerType>(type))
    return {.i = signExtend(value.i, integer.getWidth())};
  return value;
}

int64_t HostTensor::offset(ArrayRef<int64_t> indices) const {
  int64_t offset = 0;
  for (auto [index, extent] : llvm::zip_equal(indices, type.getShape()))
    offset = offset * extent + index;
  return offset;
}

llvm::Expected<HostTensor> readAttribute(ElementsAttr value) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!dense || !type)
    return llvm::createStringError("expected a dense constant");
  HostTensor tensor{type, {}};
  tensor.elements.reserve(type.getNumElements());
  if (tensor.isFloat()) {
    for (const APFloat &element : dense.getValues<APFloat>())
      tensor.elements.push_back({.f = toDouble(element)});
    return tensor;
  }
  for (const APInt &element : dense.getValues<APInt>())
    tensor.elements.push_back({.i = signExtend(int64_t(element.getZExtValue()),
                                               element.getBitWidth())});
  return tensor;
}

DenseElementsAttr makeAttribute(const HostTensor &tensor) {
  Type type = tensor.type.getElementType();
  if (auto floatType = dyn_cast<FloatType>(type)) {
    SmallVector<APFloat> values;
    for (Scalar element : tensor.elements)
      values.push_back(toAPFloat(floatType, element.f));
    return DenseElementsAttr::get(tensor.type, values);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  SmallVector<APInt> values;
  for (Scalar element : tensor.elements)
    values.push_back(APInt(width, zeroExtend(element.i, width)));
  return DenseElementsAttr::get(tensor.type, values);
}

static int64_t getElementBytes(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

llvm::Expected<HostTensor> readBytes(RankedTensorType type,
                                     ArrayRef<char> bytes) {
  int64_t size = getElementBytes(type.getElementType());
  if (int64_t(bytes.size()) != type.getNumElements() * size)
    return llvm::createStringError("expected %lld bytes, found %zu",
                                   (long long)(type.getNumElements() * size),
                                   bytes.size());
  HostTensor tensor{type, {}};
  tensor.elements.reserve(type.getNumElements());
  auto floatType = dyn_cast<FloatType>(type.getElementType());
  unsigned width = type.getElementTypeBitWidth();
  for (size_t i = 0; i < bytes.size(); i += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i, size);
    if (floatType)
      tensor.elements.push_back(
          {.f = toDouble(
               APFloat(floatType.getFloatSemantics(), APInt(width, bits)))});
    else
      tensor.elements.push_back({.i = signExtend(int64_t(bits), width)});
  }
  return tensor;
}

std::vector<char> makeBytes(const HostTensor &tensor) {
  Type type = tensor.type.getElementType();
  auto floatType = dyn_cast<FloatType>(type);
  int64_t size = getElementBytes(type);
  std::vector<char> bytes(tensor.elements.size() * size);
  for (auto [i, element] : llvm::enumerate(tensor.elements)) {
    uint64_t bits =
        floatType
            ? toAPFloat(floatType, element.f).bitcastToAPInt().getZExtValue()
            : uint64_t(element.i);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

llvm::Error
forEachIndex(ArrayRef<int64_t> shape,
             llvm::function_ref<llvm::Error(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return llvm::Error::success();
  SmallVector<int64_t> indices(shape.size(), 0);
  while (true) {
    if (llvm::Error error = body(indices))
      return error;
    int64_t axis = int64_t(shape.size()) - 1;
    while (axis >= 0 && ++indices[axis] == shape[axis])
      indices[axis--] = 0;
    if (axis < 0)
      return llvm::Error::success();
  }
}

} // namespace tcc

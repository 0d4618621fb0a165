#include "runtime/executor/DLPack.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::dlpack;

static std::optional<DType> dtypeOf(TypeCode code, uint8_t bits) {
  struct Row {
    TypeCode code;
    uint8_t bits;
    DType dtype;
  };
  static constexpr Row kRows[] = {
      {kFloat, 32, DType::f32},   {kFloat, 16, DType::f16},
      {kBfloat, 16, DType::bf16}, {kFloat, 64, DType::f64},
      {kInt, 8, DType::i8},       {kInt, 16, DType::i16},
      {kInt, 32, DType::i32},     {kInt, 64, DType::i64},
      {kUInt, 8, DType::u8},      {kUInt, 16, DType::u16},
      {kUInt, 32, DType::u32},    {kUInt, 64, DType::u64},
      {kBool, 8, DType::boolean}};
  for (const Row &row : kRows)
    if (row.code == code && row.bits == bits)
      return row.dtype;
  return std::nullopt;
}

/// The strides of a tensor without elements say nothing.
static bool isDense(const Tensor &tensor, uint64_t bytes) {
  if (!tensor.strides || bytes == 0)
    return true;
  int64_t expected = 1;
  for (int32_t axis = tensor.rank - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected)
      return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

Result<TensorView> dlpack::viewOf(const Tensor &tensor) {
  bool isOnDevice = tensor.deviceType == kCuda;
  if (!isOnDevice && tensor.deviceType != kCpu &&
      tensor.deviceType != kCudaHost)
    return makeError(Code::Usage, "a DLPack tensor of device type ",
                     tensor.deviceType,
                     " is not in memory of the host or a CUDA device");
  if (isOnDevice && tensor.deviceId < 0)
    return makeError(Code::Usage, "a DLPack tensor is on device ",
                     tensor.deviceId);
  std::optional<DType> dtype = dtypeOf(tensor.code, tensor.bits);
  if (!dtype || tensor.lanes != 1)
    return makeError(Code::Usage, "a DLPack tensor has element type code ",
                     int(tensor.code), " of ", int(tensor.bits), " bits and ",
                     tensor.lanes, " lanes, which tcc has not");
  if (tensor.rank < 0 || (tensor.rank > 0 && !tensor.shape))
    return makeError(Code::Usage, "a DLPack tensor has no shape");
  std::span<const int64_t> shape(tensor.shape, tensor.rank);
  std::optional<uint64_t> bytes = bytesOf(*dtype, shape);
  if (!bytes)
    return makeError(Code::Usage, "a DLPack tensor has a bad shape ",
                     formatShape(shape));
  if (!isDense(tensor, *bytes))
    return makeError(Code::Usage, "a DLPack tensor is not dense and row-major");
  std::byte *data = static_cast<std::byte *>(tensor.data) + tensor.byteOffset;
  return TensorView{data, *dtype, shape, isOnDevice ? tensor.deviceId : -1};
}

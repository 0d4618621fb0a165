#include "frontends/StridedBytes.h"

#include "frontends/Sizes.h"

using namespace mlir;

namespace tcc {

RankedTensorType makeStaticType(ArrayRef<int64_t> extents, Type elementType) {
  if (!elementType || extents.size() > 64)
    return nullptr;
  int64_t count = 1;
  for (int64_t extent : extents) {
    if (extent < 0 || extent > kMaxElements)
      return nullptr;
    if (llvm::MulOverflow(count, std::max<int64_t>(extent, 1), count) ||
        count > kMaxElements)
      return nullptr;
  }
  return RankedTensorType::get(extents, elementType);
}

static bool isRowMajor(ArrayRef<int64_t> extents, ArrayRef<int64_t> strides) {
  int64_t expected = 1;
  for (int64_t axis = int64_t(extents.size()) - 1; axis >= 0; --axis) {
    if (extents[axis] != 1 && strides[axis] != expected)
      return false;
    expected *= extents[axis];
  }
  return true;
}

static void copyElements(ArrayRef<char> storage, ArrayRef<int64_t> extents,
                         ArrayRef<int64_t> strides, int64_t offset,
                         int64_t width, std::vector<char> &bytes) {
  if (extents.empty()) {
    const char *from = storage.data() + offset * width;
    bytes.insert(bytes.end(), from, from + width);
    return;
  }
  for (int64_t i = 0; i < extents.front(); ++i)
    copyElements(storage, extents.drop_front(), strides.drop_front(),
                 offset + i * strides.front(), width, bytes);
}

bool takeBytes(Weight &weight, ArrayRef<char> storage,
               std::shared_ptr<const void> owner, int64_t offset,
               ArrayRef<int64_t> strides, CopyBudget &budget) {
  ArrayRef<int64_t> extents = weight.type.getShape();
  int64_t width = getElementByteSize(weight.type.getElementType());
  int64_t available = int64_t(storage.size()) / width;
  if (strides.size() != extents.size() || offset < 0)
    return false;
  if (weight.type.getNumElements() == 0)
    return true;
  int64_t last = offset;
  for (auto [extent, stride] : llvm::zip(extents, strides)) {
    int64_t reach;
    if (stride < 0 || llvm::MulOverflow(extent - 1, stride, reach) ||
        llvm::AddOverflow(last, reach, last))
      return false;
  }
  if (last >= available)
    return false;
  if (isRowMajor(extents, strides)) {
    weight.bytes = storage.slice(offset * width, getByteSize(weight.type));
    weight.owner = std::move(owner);
    return true;
  }
  auto bytes = std::make_shared<std::vector<char>>();
  budget.left -= getByteSize(weight.type);
  if (budget.left < 0)
    return false;
  bytes->reserve(getByteSize(weight.type));
  copyElements(storage, extents, strides, offset, width, *bytes);
  weight.bytes = *bytes;
  weight.owner = bytes;
  return true;
}

} // namespace tcc

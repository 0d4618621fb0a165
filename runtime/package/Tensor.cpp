#include "runtime/package/Tensor.h"

using namespace tcc;
using namespace tcc::runtime;

Result<Tensor> Tensor::allocate(DType dtype, std::vector<int64_t> shape) {
  std::optional<uint64_t> bytes = bytesOf(dtype, shape);
  if (!bytes)
    return Status(Code::BadData, "a tensor has a bad shape");
  auto memory = Memory::allocate(*bytes, systemAllocator(), "a tensor");
  if (!memory.ok())
    return memory.takeStatus();
  return Tensor{dtype, std::move(shape), std::move(*memory)};
}

#include "runtime/data/Tensor.h"

using namespace tcc;
using namespace tcc::runtime;

Result<Tensor> Tensor::allocate(DType dtype, std::vector<int64_t> shape) {
  uint64_t bytes = traitsOf(dtype).bytes;
  for (int64_t dim : shape)
    if (dim < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return Status(Code::BadData, "a tensor has a bad shape");
  auto memory = Memory::allocate(bytes, systemAllocator(), "a tensor");
  if (!memory.ok())
    return memory.takeStatus();
  return Tensor{dtype, std::move(shape), std::move(*memory)};
}

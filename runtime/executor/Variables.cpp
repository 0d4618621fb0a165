#include "runtime/executor/Variables.h"

#include "runtime/package/Alignment.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

static uint64_t byteCountOf(const format::Variable &variable) {
  std::span shape(variable.shape()->data(), variable.shape()->size());
  return *bytesOf(variable.dtype(), shape); // verified
}

Result<Variables> Variables::allocate(const format::Program &program,
                                      const Allocator &allocator) {
  Variables variables;
  variables.tables = program.variables();
  size_t count = program.variables() ? program.variables()->size() : 0;
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    variables.offsets.push_back(end);
    uint64_t bytes = byteCountOf(variables.describe(i));
    if (bytes > SIZE_MAX - end - format::kTensorAlignment)
      return Status(Code::OutOfMemory, "the variables are too large");
    end = alignTensor(end + bytes);
  }
  auto memory = Memory::allocate(end, allocator, "the variables");
  if (!memory.ok())
    return memory.takeStatus();
  variables.memory = std::move(*memory);
  std::fill_n(variables.memory.data(), end, std::byte(0));
  return variables;
}

std::optional<size_t> Variables::find(std::string_view name) const {
  for (size_t i = 0; i < size(); ++i)
    if (describe(i).name()->string_view() == name)
      return i;
  return std::nullopt;
}

std::span<std::byte> Variables::bytes(size_t index) const {
  return memory.span().subspan(offsets[index], byteCountOf(describe(index)));
}

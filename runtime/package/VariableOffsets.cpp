#include "runtime/package/VariableOffsets.h"

#include "runtime/base/Alignment.h"
#include "runtime/package/DType.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

uint64_t runtime::byteCountOf(const format::Variable &variable) {
  std::span shape(variable.shape()->data(), variable.shape()->size());
  return *bytesOf(variable.dtype(), shape);
}

uint64_t runtime::roomOf(const format::Variable &variable) {
  return std::max(byteCountOf(variable), variable.room());
}

uint32_t runtime::rankCountOf(const format::Program &program) {
  for (uint32_t i = 0; program.variables() && i < program.variables()->size();
       ++i)
    if (uint32_t ranks = program.variables()->Get(i)->ranks())
      return ranks;
  return 0;
}

std::optional<std::vector<uint64_t>>
runtime::variableOffsets(const format::Program &program) {
  std::vector<uint64_t> offsets = {0};
  for (uint32_t i = 0; program.variables() && i < program.variables()->size();
       ++i) {
    const format::Variable &variable = *program.variables()->Get(i);
    uint64_t bytes = roomOf(variable);
    uint64_t end = 0;
    if (__builtin_add_overflow(offsets.back(), bytes, &end) ||
        end > SIZE_MAX - kTensorAlignment)
      return std::nullopt;
    offsets.push_back(alignTensor(end));
  }
  return offsets;
}

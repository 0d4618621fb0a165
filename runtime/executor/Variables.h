//===- Variables.h - The tensors of a session -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_VARIABLES_H
#define TCC_RUNTIME_EXECUTOR_VARIABLES_H

#include "runtime/base/Memory.h"
#include "runtime/package/DType.h"

#include <optional>
#include <vector>

namespace tcc::runtime {

/// Memory for the variables of a program, which contexts of its entry points
/// read and update in place. They are zero at first.
class Variables {
public:
  static Result<Variables> allocate(const format::Program &program,
                                    const Allocator &allocator);

  size_t size() const { return offsets.size(); }
  std::optional<size_t> find(std::string_view name) const;
  const format::Variable &describe(size_t index) const {
    return *tables->Get(index);
  }
  std::span<const int64_t> shape(size_t index) const {
    return {describe(index).shape()->data(), describe(index).shape()->size()};
  }
  std::span<std::byte> bytes(size_t index) const;
  uint64_t byteCount() const { return memory.size(); }

private:
  const flatbuffers::Vector<flatbuffers::Offset<format::Variable>> *tables =
      nullptr;
  std::vector<size_t> offsets;
  Memory memory;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_VARIABLES_H

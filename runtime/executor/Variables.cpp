#include "runtime/executor/Variables.h"

#include "runtime/base/ParallelCopy.h"
#include "runtime/package/VariableOffsets.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

Result<Variables> Variables::allocate(const format::Program &program,
                                      Device &device,
                                      const Allocator &allocator) {
  Variables variables;
  variables.device = &device;
  variables.tables = program.variables();
  auto offsets = variableOffsets(program);
  if (!offsets)
    return Status(Code::OutOfMemory, "the variables are too large");
  size_t end = offsets->back();
  offsets->pop_back();
  variables.offsets.assign(offsets->begin(), offsets->end());
  variables.logical = listTensors(program);
  auto memory =
      Memory::allocate(end, device.allocator(allocator), "the variables");
  if (!memory.ok())
    return memory.takeStatus();
  variables.memory = std::move(*memory);
  variables.memory.preferHugePages();
  if (variables.memory.discard(0, end))
    return variables;
  if (Status status = device.clear(variables.memory.data(), end); !status.ok())
    return status;
  return variables;
}

std::optional<size_t> Variables::find(std::string_view name) const {
  for (size_t i = 0; i < size(); ++i)
    if (describe(i).name()->string_view() == name)
      return i;
  return std::nullopt;
}

std::optional<size_t> Variables::find(format::StepField field) const {
  for (size_t i = 0; i < size(); ++i)
    if (describe(i).field() == field)
      return i;
  return std::nullopt;
}

bool Variables::isAnyDivided() const {
  return std::ranges::any_of(logical, &LogicalTensor::isDivided);
}

std::vector<Piece> Variables::pieces(int rank) const {
  return cutPieces(logical, rank,
                   [this](size_t index) { return elementCount(index); });
}

size_t Variables::byteCount(size_t index) const {
  return byteCountOf(describe(index));
}

size_t Variables::elementCount(size_t index) const {
  return byteCount(index) / traitsOf(describe(index).dtype()).bytes;
}

Status Variables::read(size_t index, std::span<std::byte> bytes) const {
  return device->read(bytes.data(), address(index), bytes.size());
}

void Variables::noteChange(size_t index) {
  format::VariableKind kind = describe(index).kind();
  areCopiesStale |= kind == format::VariableKind::parameter ||
                    kind == format::VariableKind::rounded;
  watchedChanged |= std::ranges::find(watched, index) != watched.end();
}

Status Variables::write(size_t index, std::span<const std::byte> bytes) {
  return write(index, /*offset=*/0, bytes);
}

Status Variables::write(size_t index, size_t offset,
                        std::span<const std::byte> bytes) {
  noteChange(index);
  return device->write(address(index) + offset, bytes.data(), bytes.size());
}

Status Variables::clear(size_t index) {
  noteChange(index);
  if (memory.discard(offsets[index], byteCount(index)))
    return Status();
  return device->clear(address(index), byteCount(index));
}

Result<Variables::Snapshot> Variables::snapshot() const {
  Snapshot result;
  result.variables = this;
  result.base = memory.data();
  if (device->isHost())
    return result;
  auto copy =
      Memory::allocate(memory.size(), systemAllocator(), "the variables");
  if (!copy.ok())
    return copy.takeStatus();
  result.copy = std::move(*copy);
  result.base = result.copy.data();
  if (Status status =
          device->read(result.copy.data(), memory.data(), memory.size());
      !status.ok())
    return status;
  return result;
}

Status Variables::exchange(size_t one, size_t other) {
  if (device->isHost()) {
    std::ranges::swap_ranges(beginWrite(one), beginWrite(other));
    return Status();
  }
  std::vector<std::byte> first(byteCount(one)), second(byteCount(other));
  if (Status status = read(one, first); !status.ok())
    return status;
  if (Status status = read(other, second); !status.ok())
    return status;
  if (Status status = write(one, second); !status.ok())
    return status;
  return write(other, first);
}

Result<Variables::Snapshot> Variables::snapshotInto(Memory &copy) const {
  Snapshot result;
  result.variables = this;
  result.base = copy.data();
  if (device->isHost()) {
    copyInParallel(copy.data(), memory.data(), memory.size());
    return result;
  }
  Status status = device->read(copy.data(), memory.data(), memory.size());
  return status.ok() ? Result<Snapshot>(std::move(result)) : std::move(status);
}

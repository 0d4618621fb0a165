//===- Variables.h - The tensors of a session -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_VARIABLES_H
#define TCC_RUNTIME_EXECUTOR_VARIABLES_H

#include "runtime/devices/Device.h"
#include "runtime/executor/LogicalTensor.h"

#include <optional>
#include <vector>

namespace tcc::runtime {

/// Memory of a device for the variables of a program, which contexts of its
/// entry points read and update in place. They are zero at first.
class Variables {
public:
  /// All variables at one time, in memory of the host.
  class Snapshot {
  public:
    std::span<const std::byte> bytes(size_t index) const {
      return {base + variables->offsets[index], variables->byteCount(index)};
    }

  private:
    friend class Variables;
    const Variables *variables = nullptr;
    const std::byte *base = nullptr;
    Memory copy; ///< of a device's memory
  };

  /// The device outlives the variables.
  static Result<Variables> allocate(const format::Program &program,
                                    Device &device, const Allocator &allocator);

  size_t size() const { return offsets.size(); }
  std::optional<size_t> find(std::string_view name) const;
  std::optional<size_t> find(format::StepField field) const;
  const format::Variable &describe(size_t index) const {
    return *tables->Get(index);
  }
  std::span<const int64_t> shape(size_t index) const {
    return {describe(index).shape()->data(), describe(index).shape()->size()};
  }
  /// The tensors of all variables, in the order of these; they live as long as
  /// the program.
  std::span<const LogicalTensor> tensors() const { return logical; }
  /// Whether each rank has a part of its own of some variable.
  bool isAnyDivided() const;
  /// What a rank has of the tensors.
  std::vector<Piece> pieces(int rank) const;
  /// On the device.
  std::byte *address(size_t index) const {
    return memory.data() + offsets[index];
  }
  size_t byteCount(size_t index) const;
  size_t elementCount(size_t index) const;
  uint64_t byteCount() const { return memory.size(); }
  /// Whether their memory is the host's.
  bool isOnHost() const { return device->isHost(); }

  /// Read or write a whole variable; `bytes` are as many as it has.
  Status read(size_t index, std::span<std::byte> bytes) const;
  Status write(size_t index, std::span<const std::byte> bytes);
  /// Writes a part of it that begins at byte `offset`.
  Status write(size_t index, size_t offset, std::span<const std::byte> bytes);
  /// Exchanges the bytes of two variables, of which both have as many.
  Status exchange(size_t one, size_t other);
  /// In memory of the host: its bytes, to be written by the caller.
  std::span<std::byte> beginWrite(size_t index) {
    noteChange(index);
    return {address(index), byteCount(index)};
  }
  /// Whether rounded copies of parameters may be others than the parameters
  /// say, since one of either was written.
  bool haveStaleCopies() const { return areCopiesStale; }
  void setCopied() { areCopiesStale = false; }
  /// From now on writes to these variables are noted.
  void watch(std::vector<size_t> indices) { watched = std::move(indices); }
  /// Whether a watched variable was written since that was last forgotten.
  bool hasWatchedChanged() const { return watchedChanged; }
  void forgetWatchedChange() { watchedChanged = false; }
  /// Sets all elements to zero.
  Status clear(size_t index);
  /// Where the device is the host no copy: it lasts until a variable changes.
  Result<Snapshot> snapshot() const;
  /// Copied into `copy`, of byteCount() bytes: it lasts as long as that, until
  /// it is written again.
  Result<Snapshot> snapshotInto(Memory &copy) const;

private:
  void noteChange(size_t index);

  const flatbuffers::Vector<flatbuffers::Offset<format::Variable>> *tables =
      nullptr;
  Device *device = nullptr;
  std::vector<size_t> offsets;
  std::vector<LogicalTensor> logical;
  Memory memory;
  bool areCopiesStale = false;
  std::vector<size_t> watched;
  bool watchedChanged = false;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_VARIABLES_H

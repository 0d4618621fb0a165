//===- Memory.h - Aligned memory from an injectable allocator ---*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_MEMORY_H
#define TCC_RUNTIME_BASE_MEMORY_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tcc::runtime {

/// Where arenas, states and tensors come from. Callable from any thread.
struct Allocator {
  void *user = nullptr;
  /// Returns null when there is no memory.
  void *(*allocate)(void *user, size_t bytes, size_t alignment) = nullptr;
  void (*release)(void *user, void *address, size_t bytes) = nullptr;
  /// Bytes that are available, for errors; null: the system's.
  uint64_t (*available)(void *user) = nullptr;
};

Allocator systemAllocator();

/// An owned block, aligned for kernels (kTensorAlignment). Empty blocks
/// hold no address.
class Memory {
public:
  Memory() = default;
  Memory(Memory &&other) noexcept { *this = std::move(other); }
  Memory &operator=(Memory &&other) noexcept;
  ~Memory() { reset(); }

  /// Uninitialised; `what` names the block in the error.
  static Result<Memory> allocate(size_t bytes, const Allocator &allocator,
                                 std::string_view what);

  /// Makes it a new block unless it is large enough.
  Status reserve(size_t bytes, const Allocator &allocator,
                 std::string_view what);

  /// Makes `count` bytes from `offset` on zero by giving their pages back to
  /// the system: none is touched. False if the block is not the system's, or
  /// the system refuses; nothing has changed then.
  [[nodiscard]] bool discard(size_t offset, size_t count);

  /// Asks the system for huge pages, where whole ones lie in the block, for
  /// memory that is often copied or read as a whole: before its first use.
  /// Nothing where the block is not the system's, or the system has none.
  void preferHugePages();

  std::byte *data() const { return address; }
  size_t size() const { return bytes; }
  std::span<std::byte> span() const { return {address, bytes}; }

private:
  void reset();

  std::byte *address = nullptr;
  size_t bytes = 0;
  Allocator allocator;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_MEMORY_H

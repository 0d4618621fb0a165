//===- EmulatedKernel.h - Device kernels for the host -----------*- C++ -*-===//
//
// What the compiler and the emulator share: how a kernel of a
// device, compiled for the host, is called, and what it calls. An image of such
// kernels imports nothing; all that a thread needs is reached through it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_EMULATEDKERNEL_H
#define TCC_RUNTIME_DEVICES_EMULATED_EMULATEDKERNEL_H

#include "runtime/package/Format.h"

#include <cstddef>
#include <cstdint>

namespace tcc::emulated {

struct EmulatedCalls;

using format::kMaxSharedBytes;
using format::kWarpSize;

/// One thread of a launch, in one dimension. It outlives the kernel's call.
struct EmulatedThread {
  uint32_t thread, block; ///< thread < threads, block < blocks
  uint32_t threads, blocks;
  const EmulatedCalls *calls;
};

/// From which lane a shuffle takes its value; the order is PTX's.
enum class ShuffleMode : uint32_t { up, down, butterfly, index };

/// What the words of a product hold two of.
enum class PairKind : uint32_t { f16, bf16 };

enum class AccessKind : uint8_t { read, write, atomic };

/// What kernels call. Some calls run other threads before they return.
struct EmulatedCalls {
  /// The block's shared memory; every call of a kernel asks for as much.
  std::byte *(*sharedMemory)(const EmulatedThread *, uint32_t bytes);
  /// Waits for all threads of the block.
  void (*barrier)(const EmulatedThread *);
  /// shfl.sync: bits 0 to 31 are the value, bit 32 says whether the lane that
  /// it comes from lies in the segment. `clamp` is PTX's operand c.
  uint64_t (*shuffle)(const EmulatedThread *, ShuffleMode mode, uint32_t mask,
                      uint32_t value, uint32_t lane, uint32_t clamp);
  /// vote.ballot: the lanes of `mask` whose predicate is not 0.
  uint32_t (*ballot)(const EmulatedThread *, uint32_t mask, uint32_t predicate);
  /// bar.warp.sync: waits for the lanes of `mask` and orders their accesses.
  void (*syncWarp)(const EmulatedThread *, uint32_t mask);
  /// mma.sync.m16n8k16.row.col with f32 sums, by all lanes: `words` are the
  /// lane's four of a and two of b, `sums` its four of c and then of d.
  void (*multiply)(const EmulatedThread *, PairKind kind, const uint32_t *words,
                   float *sums);
  // Kernels compiled to be checked also call these.
  /// Precedes each access to memory; its address is a multiple of `alignment`.
  void (*access)(const EmulatedThread *, const void *address, uint32_t bytes,
                 uint32_t alignment, AccessKind kind);
  /// Names a parameter that the kernel takes for a multiple of `alignment`.
  void (*parameter)(const EmulatedThread *, uint32_t index, const void *address,
                    uint32_t alignment);
};

/// A kernel: `parameters` as cuLaunchKernel takes them, the address of each.
using EmulatedKernel = void (*)(const EmulatedThread *thread,
                                void *const *parameters);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_EMULATEDKERNEL_H

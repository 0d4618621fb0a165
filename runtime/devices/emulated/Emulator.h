//===- Emulator.h - Runs device kernels on the host -------------*- C++ -*-===//
//
// Every thread of a block is a fiber; they take turns at barriers and at what
// the lanes of a warp do together. Blocks run one after the other, on the
// calling thread. What a device would leave undefined is an error here: races
// (in kernels compiled to find them), barriers that not all threads reach,
// shared memory that is written beyond its end.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_EMULATOR_H
#define TCC_RUNTIME_DEVICES_EMULATED_EMULATOR_H

#include "runtime/base/Status.h"
#include "runtime/devices/emulated/EmulatedKernel.h"

#include <memory>
#include <string_view>

namespace tcc::emulated {

/// The order in which what may run at the same time runs.
struct Schedule {
  enum class Order {
    forward, ///< threads in turns, each until it waits
    reverse, ///< likewise, the last ones first
    random,  ///< a warp runs as far as it can, warps and blocks in any order
  };
  Order order = Order::forward;
  uint64_t seed = 0; ///< of a random order
};

/// One launch: grid and block have one dimension.
struct Launch {
  EmulatedKernel kernel;
  uint32_t blocks, threads;
  void *const *parameters;
  std::string_view name; ///< of the kernel, for messages
};

/// Runs launches, one at a time. Not to be shared by threads; several emulators
/// are independent of each other.
class Emulator {
public:
  explicit Emulator(Schedule schedule = {});
  ~Emulator();
  Emulator(Emulator &&) noexcept;
  Emulator &operator=(Emulator &&) noexcept;

  /// Returns when all blocks are done. An error names the kernel, the block and
  /// the threads; memory is then as the threads left it.
  runtime::Status launch(const Launch &launch);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_EMULATOR_H

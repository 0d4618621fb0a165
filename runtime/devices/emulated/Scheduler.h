//===- Scheduler.h - Who runs next ------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SCHEDULER_H
#define TCC_RUNTIME_DEVICES_EMULATED_SCHEDULER_H

#include "runtime/devices/emulated/Emulator.h"

#include <optional>
#include <vector>

namespace tcc::emulated {

/// Chooses the order of blocks and, within a block, of threads.
class Scheduler {
public:
  explicit Scheduler(Schedule schedule)
      : order(schedule.order), state(schedule.seed) {}

  /// 0 to count - 1 in the order of blocks.
  std::vector<uint32_t> arrange(uint32_t count);
  /// Begins a block.
  void begin(uint32_t threadCount);
  /// The next of the threads with isReady[thread]; none if there is none.
  std::optional<uint32_t> next(const std::vector<bool> &isReady);

private:
  using Order = Schedule::Order;

  uint64_t random();
  std::optional<uint32_t> nextInTurn(const std::vector<bool> &isReady);
  std::optional<uint32_t> nextOfWarp(const std::vector<bool> &isReady);

  Order order;
  uint64_t state;
  uint32_t count = 0;          ///< threads of the block
  uint32_t cursor = 0;         ///< the thread, or the lane, that is asked first
  std::vector<uint32_t> warps; ///< yet to run before all run again
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_SCHEDULER_H

//===- Block.h - The threads of one block -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_BLOCK_H
#define TCC_RUNTIME_DEVICES_EMULATED_BLOCK_H

#include "runtime/devices/emulated/Emulator.h"
#include "runtime/devices/emulated/Fiber.h"
#include "runtime/devices/emulated/RaceDetector.h"

#include <array>
#include <string>
#include <vector>

namespace tcc::emulated {

/// The block that runs: its threads, where they wait, and its shared memory.
/// One object serves all blocks, one after the other.
class Block {
public:
  Block();
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  void beginLaunch(const Launch &launch);
  void begin(uint32_t index);

  bool isReady(uint32_t thread) const {
    return threads[thread].state == State::ready;
  }
  /// Runs a thread that is ready until it waits or is done.
  void step(uint32_t thread);
  bool isDone() const { return doneCount == threads.size(); }
  bool hasFailed() const { return !failure.ok(); }

  /// Ends the block, in which no thread is ready any more.
  runtime::Status end();

private:
  enum class State : uint8_t { ready, atBarrier, atWarpCall, done };

  /// What lanes of a warp do together.
  struct WarpCall {
    enum class Kind : uint8_t { sync, shuffle, ballot } kind;
    uint32_t mask;
    uint32_t value = 0;
    ShuffleMode mode = ShuffleMode::index;
    uint32_t lane = 0, clamp = 0;
    uint64_t result = 0;
  };

  struct Thread : EmulatedThread {
    Block *owner = nullptr;
    State state = State::done;
    WarpCall call = {};
    Fiber fiber;
  };

  static const EmulatedCalls kCalls;
  static Thread &toThread(const EmulatedThread *thread);

  static void runThread(void *thread);
  void finishThread(Thread &thread);
  void waitAtBarrier(Thread &thread);
  uint64_t callWarp(Thread &thread, const WarpCall &call);
  Thread *findLane(uint32_t warp, uint32_t lane);
  bool isComplete(uint32_t warp, const WarpCall &call);
  void completeCall(uint32_t warp, const WarpCall &call);
  using Lanes = std::array<Thread *, kWarpSize>;
  static uint64_t shuffle(const Lanes &lanes, const Thread &reader);
  std::byte *useShared(Thread &thread, uint32_t bytes);
  void checkAccess(Thread &thread, const void *address, uint32_t bytes,
                   AccessKind kind);
  std::string describePlace(const std::byte *address) const;

  /// Says why the block fails, and never returns to the thread.
  template <typename... Parts> void fail(Thread &thread, const Parts &...parts);
  void setFailure(const std::string &message);
  std::string describeDeadlock() const;

  Launch launch = {};
  uint32_t index = 0;
  std::vector<Thread> threads;
  uint32_t doneCount = 0, barrierCount = 0;
  StackPool stacks;
  RaceDetector races;
  std::vector<std::byte> sharedStorage;
  std::byte *shared;        ///< first byte, aligned
  uint32_t sharedBytes = 0; ///< 0 until the block asks for them
  runtime::Status failure;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_BLOCK_H

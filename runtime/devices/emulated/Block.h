//===- Block.h - The threads of one block -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_BLOCK_H
#define TCC_RUNTIME_DEVICES_EMULATED_BLOCK_H

#include "runtime/devices/emulated/Emulator.h"
#include "runtime/devices/emulated/Fiber.h"
#include "runtime/devices/emulated/RaceDetector.h"
#include "runtime/devices/emulated/Scheduler.h"
#include "runtime/devices/emulated/WarpProduct.h"

#include <string>
#include <vector>

namespace tcc::emulated {

/// The block that runs: its threads, where they wait, and its shared memory.
/// One object serves all blocks, one after the other.
class Block {
public:
  explicit Block(Scheduler &scheduler);
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  void beginLaunch(const Launch &launch);
  /// Runs all threads until they are done, or one fails, or none can go on.
  runtime::Status run(uint32_t index);

private:
  enum class State : uint8_t { ready, atBarrier, atWarpCall, done };

  /// What lanes of a warp do together.
  struct WarpCall {
    enum class Kind : uint8_t { sync, shuffle, ballot, multiply } kind;
    uint32_t mask;
    uint32_t value = 0;
    ShuffleMode mode = ShuffleMode::index;
    uint32_t lane = 0, clamp = 0;
    uint64_t result = 0;
    WarpFactors factors = {};
  };

  struct Thread : EmulatedThread {
    Block *owner = nullptr;
    Fiber *fiber = nullptr; ///< null until it starts
    State state = State::done;
    WarpCall call = {};
  };

  struct Warp {
    uint32_t present; ///< lanes that are not done
    uint32_t waiting; ///< lanes in a WarpCall
  };

  static const EmulatedCalls kCalls;
  static Thread &toThread(const EmulatedThread *thread);

  void begin(uint32_t index);
  runtime::Status end();
  [[noreturn]] static void runThreads(void *block);
  void finish(Thread &thread);
  /// Runs others until the thread is ready and chosen again.
  void wait(Thread &thread, State state);
  void setReady(Thread &thread);
  Thread *chooseNext();
  Fiber &prepare(Thread *next);

  void waitAtBarrier(Thread &thread);
  uint64_t callWarp(Thread &thread, const WarpCall &call);
  bool isComplete(uint32_t warp, const WarpCall &call) const;
  void completeCall(uint32_t warp, const WarpCall &call);
  uint64_t shuffle(const Thread &reader, uint32_t lanes) const;
  void multiply(uint32_t warp);
  std::byte *useShared(Thread &thread, uint32_t bytes);
  void checkAccess(Thread &thread, const void *address, uint32_t bytes,
                   uint32_t alignment, AccessKind kind);
  void checkParameter(Thread &thread, uint32_t index, const void *address,
                      uint32_t alignment);
  std::string describePlace(const std::byte *address) const;

  /// Says why the block fails.
  template <typename... Parts>
  void report(const Thread &thread, const Parts &...parts);
  /// Never returns to the thread: what its frames own is lost.
  void stop(Thread &thread);
  /// Both; the parts own no memory.
  template <typename... Parts> void fail(Thread &thread, const Parts &...parts);
  void setFailure(const std::string &message);
  std::string describeDeadlock() const;

  Launch launch = {};
  uint32_t index = 0;
  std::vector<Thread> threads;
  std::vector<bool> isReady; ///< of each thread
  std::vector<Warp> warps;
  uint32_t doneCount = 0, barrierCount = 0;
  Thread *starting = nullptr; ///< the thread that a new fiber is to run
  Fiber caller;               ///< of run()
  FiberPool fibers;
  Scheduler &scheduler;
  RaceDetector races;
  std::vector<std::byte> sharedStorage;
  std::byte *shared;        ///< first byte, aligned
  uint32_t sharedBytes = 0; ///< 0 until the block asks for them
  runtime::Status failure;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_BLOCK_H

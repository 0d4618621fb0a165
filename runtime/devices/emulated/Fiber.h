//===- Fiber.h - Stacks that take turns on one thread -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_FIBER_H
#define TCC_RUNTIME_DEVICES_EMULATED_FIBER_H

#include <cstddef>
#include <vector>

namespace tcc::emulated {

/// A function that runs on its own stack and may pause. What never resumes is
/// forgotten with its stack: nothing on it is destroyed.
class Fiber {
public:
  using Function = void (*)(void *argument);

  bool hasStack() const { return stack; }
  /// Prepares function(argument) on `memory` of a StackPool.
  void start(std::byte *memory, Function body, void *bodyArgument);
  /// Runs until the fiber pauses or its function returns.
  void resume();
  /// Inside of the fiber: back to where it was resumed.
  void pause();
  /// The stack, to be used again; the fiber has none any more.
  std::byte *takeStack();

private:
  [[noreturn]] static void enter(Fiber *fiber);

  std::byte *stack = nullptr;
  Function function = nullptr;
  void *argument = nullptr;
  void *own = nullptr;    ///< stack pointer while paused
  void *caller = nullptr; ///< stack pointer of resume() while running
  // What the address sanitizer wants kept.
  void *fakeStack = nullptr;
  const void *callerBottom = nullptr;
  size_t callerSize = 0;
};

/// Stacks that are used again, the latest first. Below each lies a page that
/// cannot be touched.
class StackPool {
public:
  StackPool() = default;
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;
  ~StackPool();

  /// Null if there is no memory.
  std::byte *take();
  void give(std::byte *stack) { idle.push_back(stack); }

private:
  bool grow();

  std::vector<std::byte *> idle;
  std::vector<void *> mappings;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_FIBER_H

//===- Fiber.h - Stacks that take turns on one thread -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_FIBER_H
#define TCC_RUNTIME_DEVICES_EMULATED_FIBER_H

#include <cstddef>
#include <deque>
#include <vector>

namespace tcc::emulated {

/// A stack, and where on it a function stands that does not run. What is never
/// switched to again is forgotten: nothing on its stack is destroyed.
class Fiber {
public:
  /// Never returns: it ends by leaving its fiber for another one.
  using Function = void (*)(void *argument);

  /// The stack that the caller runs on.
  Fiber() = default;
  /// A stack of its own.
  Fiber(std::byte *bottom, size_t size) : bottom(bottom), size(size) {}

  /// Lets function(argument) run when the fiber is switched to.
  void start(Function body, void *bodyArgument);
  /// Leaves this fiber, which runs, for `next`. Returns when another one
  /// switches back.
  void switchTo(Fiber &next);
  /// Leaves this fiber for good: it may be started again.
  [[noreturn]] void endWith(Fiber &next);

private:
  [[noreturn]] static void enter(Fiber *fiber);
  void arrive(void *fakeStack);

  const void *bottom = nullptr;
  size_t size = 0;
  void *pointer = nullptr; ///< stack pointer while it does not run
  Function function = nullptr;
  void *argument = nullptr;
  Fiber *left = nullptr; ///< the one that was left for this one
};

/// Fibers that are used again, the latest first. Below each stack lies a page
/// that cannot be touched.
class FiberPool {
public:
  FiberPool() = default;
  FiberPool(const FiberPool &) = delete;
  FiberPool &operator=(const FiberPool &) = delete;
  ~FiberPool();

  /// Null if there is no memory.
  Fiber *take();
  void give(Fiber *fiber) { idle.push_back(fiber); }

private:
  bool grow();

  std::deque<Fiber> fibers;
  std::vector<Fiber *> idle;
  std::vector<void *> mappings;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_FIBER_H

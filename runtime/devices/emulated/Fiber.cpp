#include "runtime/devices/emulated/Fiber.h"

#include <cstdlib>
#include <sys/mman.h>
#include <utility>

#ifdef TCC_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#else
// Nobody else needs to know which stack is in use.
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
#endif

using namespace tcc::emulated;

static constexpr size_t kPageBytes = 4096;
static constexpr size_t kStackBytes = 64 << 10; // with the page below
static constexpr size_t kStacksPerMapping = 64;

// tccSwitchStack saves what calls preserve on the stack, leaves the stack
// pointer at `save` and continues on the stack `load`. A new stack looks as if
// it had been left in the same way, about to return to tccStartFiber.
extern "C" void tccSwitchStack(void **save, void *load);
extern "C" void tccStartFiber();
asm(R"(
  .text
  .p2align 4
  .hidden tccSwitchStack
  .globl tccSwitchStack
  .type tccSwitchStack, @function
tccSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size tccSwitchStack, . - tccSwitchStack
  .p2align 4
  .hidden tccStartFiber
  .globl tccStartFiber
  .type tccStartFiber, @function
tccStartFiber:
  movq %r12, %rdi
  callq *%r13
  ud2
  .size tccStartFiber, . - tccStartFiber
)");

void Fiber::start(std::byte *memory, Function body, void *bodyArgument) {
  stack = memory;
  function = body;
  argument = bodyArgument;
  auto *frame = reinterpret_cast<void **>(stack + kStackBytes - kPageBytes);
  auto push = [&frame](void *value) { *--frame = value; };
  push(nullptr); // calls expect the stack to be aligned to 16 bytes
  push(nullptr);
  push(reinterpret_cast<void *>(&tccStartFiber));
  push(nullptr);                          // rbp
  push(nullptr);                          // rbx
  push(this);                             // r12
  push(reinterpret_cast<void *>(&enter)); // r13
  push(nullptr);                          // r14
  push(nullptr);                          // r15
  own = frame;
  fakeStack = nullptr;
}

void Fiber::enter(Fiber *fiber) {
  __sanitizer_finish_switch_fiber(nullptr, &fiber->callerBottom,
                                  &fiber->callerSize);
  fiber->function(fiber->argument);
  __sanitizer_start_switch_fiber(nullptr, fiber->callerBottom,
                                 fiber->callerSize);
  tccSwitchStack(&fiber->own, fiber->caller);
  abort(); // a fiber that has returned is never resumed
}

void Fiber::resume() {
  void *mine = nullptr;
  __sanitizer_start_switch_fiber(&mine, stack, kStackBytes - kPageBytes);
  tccSwitchStack(&caller, own);
  __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
}

void Fiber::pause() {
  __sanitizer_start_switch_fiber(&fakeStack, callerBottom, callerSize);
  tccSwitchStack(&own, caller);
  __sanitizer_finish_switch_fiber(fakeStack, &callerBottom, &callerSize);
}

std::byte *Fiber::takeStack() { return std::exchange(stack, nullptr); }

StackPool::~StackPool() {
  for (void *mapping : mappings)
    munmap(mapping, kStackBytes * kStacksPerMapping);
}

bool StackPool::grow() {
  void *mapping =
      mmap(nullptr, kStackBytes * kStacksPerMapping, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return false;
  mappings.push_back(mapping);
  auto *bytes = static_cast<std::byte *>(mapping);
  for (size_t i = 0; i < kStacksPerMapping; ++i) {
    std::byte *below = bytes + i * kStackBytes;
    if (mprotect(below, kPageBytes, PROT_NONE) != 0)
      return false;
    idle.push_back(below + kPageBytes);
  }
  return true;
}

std::byte *StackPool::take() {
  if (idle.empty() && !grow())
    return nullptr;
  std::byte *stack = idle.back();
  idle.pop_back();
  return stack;
}

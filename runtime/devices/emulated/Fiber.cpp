#include "runtime/devices/emulated/Fiber.h"

#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>

#ifdef TCC_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#else
// Nobody else needs to know which stack is in use.
static void __sanitizer_start_switch_fiber(void **, const void *, size_t) {}
static void __sanitizer_finish_switch_fiber(void *, const void **, size_t *) {}
#endif

using namespace tcc::emulated;

static constexpr size_t kPageBytes = 4096, kLineBytes = 64;
static constexpr size_t kStackBytes = 64 << 10; // with the page below
static constexpr size_t kStacksPerMapping = 64;

// tccSwitchStack saves what calls preserve on the stack, leaves the stack
// pointer at `save` and continues on the stack `load`. A new stack looks as if
// it had been left in the same way, about to continue at tccStartFiber. (A
// return would be predicted to go where the last call came from.)
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
  popq %rcx
  jmpq *%rcx
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

void Fiber::start(Function body, void *bodyArgument) {
  function = body;
  argument = bodyArgument;
  auto top = reinterpret_cast<uintptr_t>(bottom) + size;
  auto *frame = reinterpret_cast<void **>(top);
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
  pointer = frame;
}

/// The fiber runs again, or for the first time.
void Fiber::arrive(void *fakeStack) {
  __sanitizer_finish_switch_fiber(fakeStack, &left->bottom, &left->size);
}

void Fiber::enter(Fiber *fiber) {
  fiber->arrive(nullptr);
  fiber->function(fiber->argument);
  abort(); // the function has left for another fiber
}

void Fiber::switchTo(Fiber &next) {
  next.left = this;
  void *fakeStack = nullptr;
  __sanitizer_start_switch_fiber(&fakeStack, next.bottom, next.size);
  tccSwitchStack(&pointer, next.pointer);
  arrive(fakeStack);
}

void Fiber::endWith(Fiber &next) {
  next.left = this;
  __sanitizer_start_switch_fiber(nullptr, next.bottom, next.size);
  tccSwitchStack(&pointer, next.pointer);
  abort(); // nobody switches back
}

FiberPool::~FiberPool() {
  for (void *mapping : mappings)
    munmap(mapping, kStackBytes * kStacksPerMapping);
}

bool FiberPool::grow() {
  void *mapping =
      mmap(nullptr, kStackBytes * kStacksPerMapping, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return false;
  mappings.push_back(mapping);
  for (size_t i = 0; i < kStacksPerMapping; ++i) {
    auto *below = static_cast<std::byte *>(mapping) + i * kStackBytes;
    if (mprotect(below, kPageBytes, PROT_NONE) != 0)
      return false;
    // Stacks that all began at the same place of a page would share a few sets
    // of the caches.
    size_t unused = i % (kPageBytes / kLineBytes) * kLineBytes;
    idle.push_back(&fibers.emplace_back(below + kPageBytes,
                                        kStackBytes - kPageBytes - unused));
  }
  return true;
}

Fiber *FiberPool::take() {
  if (idle.empty() && !grow())
    return nullptr;
  Fiber *fiber = idle.back();
  idle.pop_back();
  return fiber;
}

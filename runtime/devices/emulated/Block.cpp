#include "runtime/devices/emulated/Block.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace tcc::emulated;
using tcc::runtime::Code;
using tcc::runtime::concat;
using tcc::runtime::makeError;
using tcc::runtime::Status;

/// What shared memory holds before it is written: NaN as a float of any width.
static constexpr int kPoison = 0xff;
/// Bytes before and after shared memory that must keep kFence.
static constexpr size_t kFenceBytes = 1024;
static constexpr std::byte kFence{0xa5};
static constexpr size_t kSharedAlignment = 128;
/// What a lane gets from one that takes no part in a shuffle.
static constexpr uint32_t kUndefined = 0xffffffff;

const EmulatedCalls Block::kCalls = {
    [](const EmulatedThread *thread, uint32_t bytes) {
      Thread &self = toThread(thread);
      return self.owner->useShared(self, bytes);
    },
    [](const EmulatedThread *thread) {
      Thread &self = toThread(thread);
      self.owner->waitAtBarrier(self);
    },
    [](const EmulatedThread *thread, ShuffleMode mode, uint32_t mask,
       uint32_t value, uint32_t lane, uint32_t clamp) {
      Thread &self = toThread(thread);
      return self.owner->callWarp(
          self, {WarpCall::Kind::shuffle, mask, value, mode, lane, clamp});
    },
    [](const EmulatedThread *thread, uint32_t mask, uint32_t predicate) {
      Thread &self = toThread(thread);
      return uint32_t(self.owner->callWarp(
          self, {WarpCall::Kind::ballot, mask, predicate}));
    },
    [](const EmulatedThread *thread, uint32_t mask) {
      Thread &self = toThread(thread);
      self.owner->callWarp(self, {WarpCall::Kind::sync, mask});
    },
    [](const EmulatedThread *thread, PairKind kind, const uint32_t *words,
       float *sums) {
      Thread &self = toThread(thread);
      WarpCall call = {WarpCall::Kind::multiply, ~0u};
      call.factors = {kind, words, sums};
      self.owner->callWarp(self, call);
    },
    [](const EmulatedThread *thread, const void *address, uint32_t bytes,
       uint32_t alignment, AccessKind kind) {
      Thread &self = toThread(thread);
      self.owner->checkAccess(self, address, bytes, alignment, kind);
    },
    [](const EmulatedThread *thread, uint32_t index, const void *address,
       uint32_t alignment) {
      Thread &self = toThread(thread);
      self.owner->checkParameter(self, index, address, alignment);
    },
};

Block::Thread &Block::toThread(const EmulatedThread *thread) {
  return *static_cast<Thread *>(const_cast<EmulatedThread *>(thread));
}

Block::Block(Scheduler &scheduler)
    : scheduler(scheduler),
      sharedStorage(kMaxSharedBytes + 2 * kFenceBytes + kSharedAlignment) {
  auto address = reinterpret_cast<uintptr_t>(sharedStorage.data());
  shared = sharedStorage.data() + kFenceBytes;
  shared += -(address + kFenceBytes) & (kSharedAlignment - 1);
}

void Block::beginLaunch(const Launch &newLaunch) {
  launch = newLaunch;
  failure = {};
  races.beginLaunch();
  threads.resize(launch.threads);
  for (uint32_t i = 0; i < launch.threads; ++i) {
    Thread &thread = threads[i];
    thread.thread = i;
    thread.threads = launch.threads;
    thread.blocks = launch.blocks;
    thread.calls = &kCalls;
    thread.owner = this;
  }
}

void Block::begin(uint32_t newIndex) {
  index = newIndex;
  doneCount = barrierCount = 0;
  sharedBytes = 0;
  races.beginBlock(index, {shared, kMaxSharedBytes});
  scheduler.begin(launch.threads);
  isReady.assign(launch.threads, true);
  warps.assign((launch.threads + kWarpSize - 1) / kWarpSize, {~0u, 0});
  if (uint32_t rest = launch.threads % kWarpSize)
    warps.back().present = (1u << rest) - 1;
  for (Thread &thread : threads) {
    thread.block = index;
    thread.state = State::ready;
    thread.fiber = nullptr;
  }
}

Status Block::run(uint32_t newIndex) {
  begin(newIndex);
  caller.switchTo(prepare(chooseNext()));
  return end();
}

/// The thread that runs next; null if the block is at its end.
Block::Thread *Block::chooseNext() {
  if (!failure.ok() || doneCount == threads.size())
    return nullptr;
  std::optional<uint32_t> next = scheduler.next(isReady);
  return next ? &threads[*next] : nullptr;
}

/// The fiber to switch to for `next`, or for run() if that is null.
Fiber &Block::prepare(Thread *next) {
  if (!next)
    return caller;
  if (next->fiber)
    return *next->fiber;
  next->fiber = fibers.take();
  if (!next->fiber) {
    failure = makeError(Code::OutOfMemory,
                        "no memory for the stack of a "
                        "thread of kernel ",
                        launch.name);
    return caller;
  }
  starting = next;
  next->fiber->start(&runThreads, this);
  return *next->fiber;
}

/// Runs a thread, then others that have not started, on one stack.
void Block::runThreads(void *argument) {
  Block &block = *static_cast<Block *>(argument);
  Thread *thread = block.starting;
  Fiber &own = *thread->fiber;
  while (true) {
    block.launch.kernel(thread, block.launch.parameters);
    block.finish(*thread);
    Thread *next = block.chooseNext();
    if (!next || next->fiber) {
      block.fibers.give(&own);
      own.endWith(block.prepare(next));
    }
    thread = next;
    thread->fiber = &own;
  }
}

void Block::finish(Thread &thread) {
  thread.state = State::done;
  isReady[thread.thread] = false;
  ++doneCount;
  uint32_t number = thread.thread / kWarpSize;
  Warp &warp = warps[number];
  warp.present &= ~(1u << thread.thread % kWarpSize);
  // Others of the warp may have waited for this one.
  while (warp.waiting) {
    uint32_t lane = std::countr_zero(warp.waiting);
    const WarpCall &call = threads[number * kWarpSize + lane].call;
    if (!isComplete(number, call))
      return;
    completeCall(number, call);
  }
}

void Block::wait(Thread &thread, State state) {
  thread.state = state;
  isReady[thread.thread] = false;
  if (Thread *next = chooseNext(); next != &thread)
    thread.fiber->switchTo(prepare(next));
}

void Block::setReady(Thread &thread) {
  thread.state = State::ready;
  isReady[thread.thread] = true;
}

void Block::waitAtBarrier(Thread &thread) {
  if (++barrierCount < threads.size())
    return wait(thread, State::atBarrier);
  barrierCount = 0;
  races.syncBlock();
  for (Thread &other : threads)
    setReady(other);
}

uint64_t Block::callWarp(Thread &thread, const WarpCall &call) {
  uint32_t warp = thread.thread / kWarpSize;
  uint32_t lane = 1u << thread.thread % kWarpSize;
  if (!(call.mask & lane))
    fail(thread, "is not in its own mask of lanes");
  thread.call = call;
  warps[warp].waiting |= lane;
  if (isComplete(warp, call))
    completeCall(warp, thread.call);
  else
    wait(thread, State::atWarpCall);
  return thread.call.result;
}

/// Calls body(thread) for each of the lanes.
template <typename Threads, typename Body>
static void forEachLane(Threads &threads, uint32_t warp, uint32_t lanes,
                        Body body) {
  for (; lanes; lanes &= lanes - 1)
    body(threads[warp * kWarpSize + std::countr_zero(lanes)]);
}

/// Whether all lanes of the mask that are not done have made the same call.
bool Block::isComplete(uint32_t warp, const WarpCall &call) const {
  uint32_t lanes = call.mask & warps[warp].present;
  if (lanes & ~warps[warp].waiting)
    return false;
  bool areSame = true;
  forEachLane(threads, warp, lanes, [&](const Thread &other) {
    areSame &= other.call.kind == call.kind && other.call.mask == call.mask;
  });
  return areSame;
}

/// mma.sync, which all lanes of the warp must execute.
void Block::multiply(uint32_t warp) {
  if (warps[warp].present != ~0u)
    return setFailure(concat("warp ", warp, " multiplies without all lanes"));
  std::array<WarpFactors, kWarpSize> lanes;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    lanes[lane] = threads[warp * kWarpSize + lane].call.factors;
  multiplyWarp(lanes);
}

/// Gives each lane its result; then they are ready.
void Block::completeCall(uint32_t warp, const WarpCall &call) {
  uint32_t lanes = call.mask & warps[warp].present;
  if (call.kind == WarpCall::Kind::multiply)
    multiply(warp);
  uint32_t votes = 0;
  forEachLane(threads, warp, lanes, [&](Thread &thread) {
    votes |= uint32_t(thread.call.value != 0) << thread.thread % kWarpSize;
  });
  forEachLane(threads, warp, lanes, [&](Thread &thread) {
    thread.call.result = thread.call.kind == WarpCall::Kind::shuffle
                             ? shuffle(thread, lanes)
                             : votes;
    setReady(thread);
  });
  warps[warp].waiting &= ~lanes;
  // A barrier of some of the lanes is not remembered.
  if (call.kind == WarpCall::Kind::sync && lanes == warps[warp].present)
    races.syncWarp(warp);
}

/// shfl.sync among `lanes`, as PTX defines it.
uint64_t Block::shuffle(const Thread &reader, uint32_t lanes) const {
  const WarpCall &call = reader.call;
  int lane = reader.thread % kWarpSize;
  int operand = call.lane & 31, clamp = call.clamp & 31;
  int segment = call.clamp >> 8 & 31;
  int first = lane & segment, last = first | (clamp & ~segment);
  int source = lane;
  bool isInside = false;
  switch (call.mode) {
  case ShuffleMode::up:
    source = lane - operand;
    isInside = source >= last;
    break;
  case ShuffleMode::down:
    source = lane + operand;
    isInside = source <= last;
    break;
  case ShuffleMode::butterfly:
    source = lane ^ operand;
    isInside = source <= last;
    break;
  case ShuffleMode::index:
    source = first | (operand & ~segment);
    isInside = source <= last;
    break;
  }
  source = isInside ? source : lane;
  uint32_t value = lanes >> source & 1
                       ? threads[reader.thread - lane + source].call.value
                       : kUndefined;
  return value | uint64_t(isInside) << 32;
}

std::byte *Block::useShared(Thread &thread, uint32_t bytes) {
  if (bytes > kMaxSharedBytes || (sharedBytes && bytes != sharedBytes))
    fail(thread, "asks for ", bytes, " bytes of shared memory, of at most ",
         sharedBytes ? sharedBytes : kMaxSharedBytes);
  if (!sharedBytes) {
    sharedBytes = bytes;
    memset(shared - kFenceBytes, int(kFence), bytes + 2 * kFenceBytes);
    memset(shared, kPoison, bytes);
  }
  return shared;
}

/// Whether `address` lies in the memory around the shared one.
static bool isNear(const std::byte *address, const std::byte *shared) {
  return address >= shared - kFenceBytes &&
         address < shared + kMaxSharedBytes + kFenceBytes;
}

static bool isAligned(const void *address, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

void Block::checkParameter(Thread &thread, uint32_t index, const void *address,
                           uint32_t alignment) {
  if (!isAligned(address, alignment))
    fail(thread, "takes parameter ", index, " for a multiple of ", alignment,
         " bytes");
}

void Block::checkAccess(Thread &thread, const void *address, uint32_t bytes,
                        uint32_t alignment, AccessKind kind) {
  auto *first = static_cast<const std::byte *>(address);
  const char *verb = kind == AccessKind::read ? "reads" : "writes";
  if (isNear(first, shared) &&
      (first < shared || first + bytes > shared + sharedBytes))
    fail(thread, verb, " ", bytes, " bytes at ", first - shared, " of ",
         sharedBytes, " bytes of shared memory");
  if (!isAligned(address, alignment))
    fail(thread, verb, " ", bytes,
         " bytes at an address that is no multiple of ", alignment);
  auto conflict = races.access(thread.thread, address, bytes, kind);
  if (!conflict)
    return;
  report(thread, verb, " ", bytes, " bytes ", describePlace(first),
         " that thread ", conflict->thread, " of block ", conflict->block, " ",
         conflict->isWrite ? "writes" : "reads", ", in no order");
  stop(thread);
}

/// Where an address lies: in shared memory or behind a parameter.
std::string Block::describePlace(const std::byte *address) const {
  if (isNear(address, shared))
    return concat("at ", address - shared, " of shared memory");
  return concat("at address ", reinterpret_cast<uintptr_t>(address));
}

template <typename... Parts>
void Block::report(const Thread &thread, const Parts &...parts) {
  setFailure(concat("thread ", thread.thread, " ", parts...));
}

void Block::stop(Thread &thread) { thread.fiber->switchTo(caller); }

template <typename... Parts>
void Block::fail(Thread &thread, const Parts &...parts) {
  report(thread, parts...);
  stop(thread);
}

void Block::setFailure(const std::string &message) {
  if (failure.ok())
    failure = makeError(Code::Internal, "kernel ", launch.name, ", block ",
                        index, ": ", message);
}

static bool isFence(const std::byte *first) {
  return std::all_of(first, first + kFenceBytes,
                     [](std::byte byte) { return byte == kFence; });
}

Status Block::end() {
  if (doneCount < threads.size())
    setFailure(describeDeadlock());
  else if (sharedBytes &&
           !(isFence(shared - kFenceBytes) && isFence(shared + sharedBytes)))
    setFailure(concat("writes outside of its ", sharedBytes,
                      " bytes of shared memory"));
  for (Thread &thread : threads)
    if (thread.fiber && thread.state != State::done)
      fibers.give(thread.fiber);
  return std::move(failure);
}

std::string Block::describeDeadlock() const {
  std::string text = "deadlock:";
  auto describe = [&](State state, const char *what) {
    auto is = [state](const Thread &thread) { return thread.state == state; };
    auto first = std::find_if(threads.begin(), threads.end(), is);
    if (first != threads.end())
      text += concat(" ", std::count_if(first, threads.end(), is), " threads ",
                     what, " (first ", first->thread, ")");
  };
  describe(State::atBarrier, "wait at a barrier");
  describe(State::atWarpCall, "wait for lanes of their warp");
  describe(State::done, "are done");
  return text;
}

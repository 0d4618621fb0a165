#include "runtime/devices/emulated/Block.h"

#include <algorithm>
#include <array>
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
    [](const EmulatedThread *thread, const void *address, uint32_t bytes,
       AccessKind kind) {
      Thread &self = toThread(thread);
      self.owner->checkAccess(self, address, bytes, kind);
    },
};

Block::Thread &Block::toThread(const EmulatedThread *thread) {
  return *static_cast<Thread *>(const_cast<EmulatedThread *>(thread));
}

Block::Block()
    : sharedStorage(kMaxSharedBytes + 2 * kFenceBytes + kSharedAlignment) {
  auto address = reinterpret_cast<uintptr_t>(sharedStorage.data());
  shared = sharedStorage.data() + kFenceBytes;
  shared += -(address + kFenceBytes) & (kSharedAlignment - 1);
}

void Block::beginLaunch(const Launch &newLaunch) {
  launch = newLaunch;
  failure = {};
  threads.resize(launch.threads);
  races.beginLaunch();
}

void Block::begin(uint32_t newIndex) {
  index = newIndex;
  doneCount = barrierCount = 0;
  sharedBytes = 0;
  races.beginBlock(index, {shared, kMaxSharedBytes});
  for (uint32_t i = 0; i < launch.threads; ++i) {
    Thread &thread = threads[i];
    thread.thread = i;
    thread.block = index;
    thread.threads = launch.threads;
    thread.blocks = launch.blocks;
    thread.calls = &kCalls;
    thread.owner = this;
    thread.state = State::ready;
  }
}

void Block::runThread(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  Block &block = *thread.owner;
  block.launch.kernel(&thread, block.launch.parameters);
  thread.state = State::done;
}

void Block::step(uint32_t i) {
  Thread &thread = threads[i];
  if (!thread.fiber.hasStack()) {
    std::byte *stack = stacks.take();
    if (!stack) {
      failure = makeError(Code::OutOfMemory,
                          "no memory for the stack of a "
                          "thread of kernel ",
                          launch.name);
      return;
    }
    thread.fiber.start(stack, &runThread, &thread);
  }
  thread.fiber.resume();
  if (thread.state == State::done)
    finishThread(thread);
}

void Block::finishThread(Thread &thread) {
  stacks.give(thread.fiber.takeStack());
  ++doneCount;
  // The others of its warp may have waited for this one.
  uint32_t warp = thread.thread / kWarpSize;
  size_t end = std::min<size_t>(threads.size(), (warp + 1) * kWarpSize);
  for (size_t i = warp * kWarpSize; i < end; ++i)
    if (threads[i].state == State::atWarpCall &&
        isComplete(warp, threads[i].call))
      completeCall(warp, threads[i].call);
}

void Block::waitAtBarrier(Thread &thread) {
  if (++barrierCount < threads.size()) {
    thread.state = State::atBarrier;
    return thread.fiber.pause();
  }
  barrierCount = 0;
  races.syncBlock();
  for (Thread &other : threads)
    other.state = State::ready;
}

uint64_t Block::callWarp(Thread &thread, const WarpCall &call) {
  uint32_t warp = thread.thread / kWarpSize;
  uint32_t lane = thread.thread % kWarpSize;
  if (!(call.mask >> lane & 1)) {
    fail(thread, "is not in its own mask of lanes");
    return 0;
  }
  thread.call = call;
  thread.state = State::atWarpCall;
  if (isComplete(warp, call))
    completeCall(warp, call);
  else
    thread.fiber.pause();
  return thread.call.result;
}

Block::Thread *Block::findLane(uint32_t warp, uint32_t lane) {
  size_t i = size_t(warp) * kWarpSize + lane;
  bool isThere = i < threads.size() && threads[i].state != State::done;
  return isThere ? &threads[i] : nullptr;
}

/// Whether all lanes of the mask that are not done have made the same call.
bool Block::isComplete(uint32_t warp, const WarpCall &call) {
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    Thread *other = call.mask >> lane & 1 ? findLane(warp, lane) : nullptr;
    if (other &&
        (other->state != State::atWarpCall || other->call.kind != call.kind ||
         other->call.mask != call.mask))
      return false;
  }
  return true;
}

/// Gives each lane its result; then they are ready.
void Block::completeCall(uint32_t warp, const WarpCall &call) {
  Lanes lanes;
  uint32_t votes = 0;
  bool isWhole = true;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    Thread *thread = findLane(warp, lane);
    bool takesPart = call.mask >> lane & 1;
    isWhole = isWhole && (takesPart || !thread);
    lanes[lane] = takesPart ? thread : nullptr;
    if (lanes[lane])
      votes |= uint32_t(lanes[lane]->call.value != 0) << lane;
  }
  for (Thread *thread : lanes)
    if (thread)
      thread->call.result = call.kind == WarpCall::Kind::shuffle
                                ? shuffle(lanes, *thread)
                                : votes;
  for (Thread *thread : lanes)
    if (thread)
      thread->state = State::ready;
  if (call.kind == WarpCall::Kind::sync && isWhole)
    races.syncWarp(warp);
}

/// shfl.sync as PTX defines it.
uint64_t Block::shuffle(const Lanes &lanes, const Thread &reader) {
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
  const Thread *from = lanes[isInside ? source : lane];
  return (from ? from->call.value : kUndefined) | uint64_t(isInside) << 32;
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

void Block::checkAccess(Thread &thread, const void *address, uint32_t bytes,
                        AccessKind kind) {
  auto *first = static_cast<const std::byte *>(address);
  const char *verb = kind == AccessKind::read ? "reads" : "writes";
  if (isNear(first, shared) &&
      (first < shared || first + bytes > shared + sharedBytes))
    fail(thread, verb, " ", bytes, " bytes at ", first - shared, " of ",
         sharedBytes, " bytes of shared memory");
  auto conflict = races.access(thread.thread, address, bytes, kind);
  if (conflict)
    fail(thread, verb, " ", bytes, " bytes ", describePlace(first),
         " that thread ", conflict->thread, " of block ", conflict->block, " ",
         conflict->isWrite ? "writes" : "reads", ", in no order");
}

/// Where an address lies: in shared memory or behind a parameter.
std::string Block::describePlace(const std::byte *address) const {
  if (isNear(address, shared))
    return concat("at ", address - shared, " of shared memory");
  return concat("at address ", reinterpret_cast<uintptr_t>(address));
}

template <typename... Parts>
void Block::fail(Thread &thread, const Parts &...parts) {
  setFailure(concat("thread ", thread.thread, " ", parts...));
  thread.fiber.pause(); // for good
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
  if (!isDone())
    setFailure(describeDeadlock());
  else if (sharedBytes &&
           !(isFence(shared - kFenceBytes) && isFence(shared + sharedBytes)))
    setFailure(concat("writes outside of its ", sharedBytes,
                      " bytes of shared memory"));
  for (Thread &thread : threads)
    if (thread.fiber.hasStack())
      stacks.give(thread.fiber.takeStack());
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

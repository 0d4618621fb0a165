#include "runtime/ranks/Recorder.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <atomic>
#include <utility>

using namespace tcc;
using namespace tcc::runtime;

std::string runtime::describe(const Position &position) {
  const CollectiveCall &last = position.last;
  std::string text = position.step > 0 ? concat("at update ", position.step)
                                       : "before the first update";
  if (last.number == 0)
    return text;
  text += concat(last.end < 0 ? " in " : " after ", nameOf(last.kind), " ",
                 last.number);
  if (last.of[0])
    text += concat(" of ", last.of);
  return text;
}

int64_t Recorder::now() const {
  return std::chrono::nanoseconds(Clock::now() - made).count();
}

void Recorder::setStep(int64_t number) {
  std::lock_guard lock(mutex);
  step = number;
}

static CollectiveCall makeCall(int64_t step, CollectiveKind kind, size_t count,
                               DType dtype, std::string_view of) {
  CollectiveCall call = {
      .step = step, .count = count, .kind = kind, .dtype = dtype};
  of.copy(call.of, sizeof(call.of) - 1);
  return call;
}

void Recorder::add(CollectiveCall call) const {
  call.number = ++number;
  call.begin = now();
  last() = call;
}

void Recorder::begin(CollectiveKind kind, size_t count, DType dtype,
                     std::string_view of) {
  std::lock_guard lock(mutex);
  advance();
  add(makeCall(step, kind, count, dtype, of));
}

void Recorder::give(CollectiveKind kind, size_t count, DType dtype,
                    std::string_view of, DeviceProgress &progress,
                    uint64_t index) {
  std::lock_guard lock(mutex);
  if (!isFrozen)
    given.push_back({makeCall(step, kind, count, dtype, of), &progress, index});
}

void Recorder::forget(const DeviceProgress &progress) {
  std::lock_guard lock(mutex);
  advance();
  std::erase_if(given,
                [&](const Given &call) { return call.progress == &progress; });
}

void Recorder::freeze() {
  std::lock_guard lock(mutex);
  advance();
  if (!given.empty())
    step = given.front().call.step;
  given.clear();
  isFrozen = true;
}

/// Takes over what devices have said since the last time.
void Recorder::advance() const {
  for (; !given.empty(); given.pop_front()) {
    Given &next = given.front();
    uint64_t reached =
        std::atomic_ref(*next.progress).load(std::memory_order_acquire);
    if (reached > 2 * next.index && !std::exchange(next.hasBegun, true))
      add(next.call);
    if (reached < 2 * next.index + 2)
      return;
    last().end = now();
  }
}

void Recorder::end() {
  std::lock_guard lock(mutex);
  last().end = now();
}

Position Recorder::position() const {
  std::lock_guard lock(mutex);
  advance();
  bool isOfDevice = !given.empty();
  return {isOfDevice ? given.front().call.step : step, last()};
}

std::vector<CollectiveCall> Recorder::collectives() const {
  std::lock_guard lock(mutex);
  advance();
  std::vector<CollectiveCall> kept;
  uint64_t count = std::min<uint64_t>(number, kKept);
  for (uint64_t i = number - count + 1; i <= number; ++i)
    kept.push_back(ring[i % kKept]);
  return kept;
}

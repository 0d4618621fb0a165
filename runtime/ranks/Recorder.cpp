#include "runtime/ranks/Recorder.h"

#include "runtime/base/Status.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

std::string_view runtime::nameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "all-reduce";
  case CollectiveKind::ReduceScatter:
    return "reduce-scatter";
  case CollectiveKind::AllGather:
    return "all-gather";
  case CollectiveKind::Broadcast:
    return "broadcast";
  case CollectiveKind::Barrier:
    return "barrier";
  }
  return "";
}

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

void Recorder::begin(CollectiveKind kind, size_t count, DType dtype,
                     std::string_view of) {
  std::lock_guard lock(mutex);
  ++number;
  CollectiveCall &added = last();
  added = {.number = number,
           .step = step,
           .count = count,
           .begin = now(),
           .kind = kind,
           .dtype = dtype};
  of.copy(added.of, sizeof(added.of) - 1);
}

void Recorder::end() {
  std::lock_guard lock(mutex);
  last().end = now();
}

Position Recorder::position() const {
  std::lock_guard lock(mutex);
  return {step, ring[number % kKept]};
}

std::vector<CollectiveCall> Recorder::collectives() const {
  std::lock_guard lock(mutex);
  std::vector<CollectiveCall> kept;
  uint64_t count = std::min<uint64_t>(number, kKept);
  for (uint64_t i = number - count + 1; i <= number; ++i)
    kept.push_back(ring[i % kKept]);
  return kept;
}

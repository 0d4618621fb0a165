//===- PackedEvents.h - Events of runs in few bytes -------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_PACKEDEVENTS_H
#define TCC_TOOLS_TCCRUN_TRACE_PACKEDEVENTS_H

#include "runtime/trace/Trace.h"

#include <span>
#include <string>
#include <unordered_map>

namespace tcc::tools {

/// What the events of a run became. Only who packed them can unpack them.
struct PackedEvents {
  size_t count = 0;
  int64_t begin = 0; ///< of the first one
  std::string bytes;
};

/// Packs events in 2 bytes or so each where runs do again what runs before did:
/// how long one took and, where that is not what is expected, how long after
/// the event before it began, and the number of all else that is known of it.
/// So a long trace touches little memory, of which each new page takes
/// microseconds.
class EventPacker {
public:
  /// The events are in the order of their begins.
  PackedEvents pack(std::span<const runtime::TraceEvent> events);
  std::vector<runtime::TraceEvent> unpack(const PackedEvents &packed) const;

private:
  /// An event without its times.
  struct Work {
    uint32_t command, cause, lane;
    int64_t flops, bytes;
    bool operator==(const Work &) const = default;
  };
  struct HashWork {
    size_t operator()(const Work &work) const;
  };
  size_t find(const Work &work);

  std::string buffer;      ///< that `pack` writes to
  std::vector<Work> works; ///< by number
  std::unordered_map<Work, size_t, HashWork> numbers;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_PACKEDEVENTS_H

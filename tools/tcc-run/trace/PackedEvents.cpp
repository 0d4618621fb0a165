#include "tools/tcc-run/trace/PackedEvents.h"

#include <algorithm>
#include <protozero/varint.hpp>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using protozero::decode_varint;
using protozero::decode_zigzag64;
using protozero::encode_zigzag64;
using protozero::write_varint;

size_t EventPacker::HashWork::operator()(const Work &work) const {
  size_t hash = 0;
  for (uint64_t part :
       {uint64_t(work.command), uint64_t(work.cause), uint64_t(work.lane),
        uint64_t(work.flops), uint64_t(work.bytes)})
    hash = (hash ^ part) * 0x9E3779B97F4A7C15 + (hash >> 29);
  return hash;
}

size_t EventPacker::find(const Work &work) {
  auto [found, isNew] = numbers.try_emplace(work, works.size());
  if (isNew)
    works.push_back(work);
  return found->second;
}

/// The bytes have the length of each event and, unless it is the expected one
/// and begins where the one before ended, what differs.
PackedEvents EventPacker::pack(std::span<const TraceEvent> events) {
  PackedEvents packed = {.count = events.size(), .begin = 0, .bytes = {}};
  if (events.empty())
    return packed;
  packed.begin = events.front().begin;
  buffer.resize(events.size() * 3 * protozero::max_varint_length);
  char *end = buffer.data();
  int64_t last = packed.begin;
  size_t expected = 0;
  for (const TraceEvent &event : events) {
    Work work = {event.command, event.cause, event.lane, event.flops,
                 event.bytes};
    bool isExpected = expected < works.size() && works[expected] == work;
    size_t number = isExpected ? expected : find(work);
    auto length = uint64_t(std::max<int64_t>(event.end - event.begin, 0));
    bool differs = number != expected || event.begin != last;
    end += write_varint(end, length << 1 | uint64_t(differs));
    if (differs) {
      end += write_varint(end, encode_zigzag64(int64_t(number - expected)));
      end += write_varint(end, encode_zigzag64(event.begin - last));
    }
    expected = number + 1;
    last = event.begin + int64_t(length);
  }
  packed.bytes.assign(buffer.data(), end);
  return packed;
}

std::vector<TraceEvent> EventPacker::unpack(const PackedEvents &packed) const {
  std::vector<TraceEvent> events;
  const char *place = packed.bytes.data();
  const char *stop = place + packed.bytes.size();
  auto readSigned = [&] {
    return decode_zigzag64(decode_varint(&place, stop));
  };
  int64_t last = packed.begin;
  size_t number = 0;
  for (size_t i = 0; i < packed.count; ++i, ++number) {
    uint64_t head = decode_varint(&place, stop);
    int64_t begin = last;
    if (head & 1) {
      number += size_t(readSigned());
      begin += readSigned();
    }
    last = begin + int64_t(head >> 1);
    const Work &work = works[number];
    events.push_back({.begin = begin,
                      .end = last,
                      .command = work.command,
                      .cause = work.cause,
                      .flops = work.flops,
                      .bytes = work.bytes,
                      .lane = work.lane});
  }
  return events;
}

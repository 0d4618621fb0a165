#include "tools/tcc-run/ArenaUse.h"

#include "runtime/base/Alignment.h"
#include "runtime/package/Commands.h"
#include "runtime/package/LaneOrder.h"
#include "runtime/package/Names.h"

#include <algorithm>

using namespace tcc;

namespace {

class Walk {
public:
  Walk(const format::Entry &entry, ArenaUse &use)
      : buffers(*entry.buffers()), use(use), spans(buffers.size()),
        order(entry.lane_count()) {}

  /// What is used in a block at `depth` 1 or more is used in all the command of
  /// the entry point that it belongs to.
  void visit(const format::Block &block, int depth);
  void finish();

private:
  struct Span {
    int64_t begin = -1, end = -1;
    const format::Launch *writer = nullptr; ///< null: no launch comes first
  };

  /// A command of another lane that lane 0 has not waited for yet.
  struct Flight {
    size_t lane;
    uint32_t number; ///< of the command on its lane
    std::vector<uint32_t> buffers;
  };

  void visit(const format::Command &command, int depth);
  void follow(const format::Command &command);
  void endFlights();
  void touch(uint32_t buffer, const format::Launch *launch);

  const flatbuffers::Vector<flatbuffers::Offset<format::Buffer>> &buffers;
  ArenaUse &use;
  std::vector<Span> spans;
  runtime::LaneOrder order; ///< of the entry's own block
  std::vector<Flight> flights;
};

} // namespace

void Walk::touch(uint32_t buffer, const format::Launch *launch) {
  while (buffers[buffer]->base() >= 0)
    buffer = uint32_t(buffers[buffer]->base());
  Span &span = spans[buffer];
  if (span.begin < 0)
    span = {use.positions, use.positions, launch};
  span.end = use.positions + 1;
}

void Walk::visit(const format::Command &command, int depth) {
  const format::Launch *launch = command.action_as_Launch();
  runtime::forEachBuffer(command,
                         [&](uint32_t buffer) { touch(buffer, launch); });
  runtime::forEachBlock(
      command, [&](const format::Block &block) { visit(block, depth + 1); });
}

/// What comes before this of lane 0 has ended.
void Walk::endFlights() {
  std::erase_if(flights, [&](const Flight &flight) {
    if (order.countDone(0, flight.lane) < flight.number)
      return false;
    for (uint32_t buffer : flight.buffers)
      touch(buffer, nullptr);
    return true;
  });
}

/// Lanes are joined where a block ends: only the entry's own block has flights
/// that go on beside what it counts.
void Walk::follow(const format::Command &command) {
  size_t lane = command.lane();
  if (const format::RecordEvent *record = command.action_as_RecordEvent())
    return order.record(lane, record->event());
  if (const format::WaitEvent *wait = command.action_as_WaitEvent()) {
    order.wait(lane, wait->event());
    return endFlights();
  }
  order.add(lane);
  if (lane == 0)
    return;
  Flight &flight = flights.emplace_back(lane, order.countDone(lane, lane));
  runtime::forEachBuffer(
      command, [&](uint32_t buffer) { flight.buffers.push_back(buffer); });
}

void Walk::visit(const format::Block &block, int depth) {
  for (const format::Command *command : *block.commands()) {
    visit(*command, depth);
    if (depth > 0)
      continue;
    follow(*command);
    use.positions += 2;
  }
}

void Walk::finish() {
  auto print = [](const flatbuffers::String *text) {
    return text ? text->str() : "";
  };
  for (size_t i = 0; i < spans.size(); ++i) {
    const format::Buffer &buffer = *buffers[i];
    if (buffer.storage() != format::StorageClass::scratch ||
        spans[i].begin < 0 || buffer.base() >= 0)
      continue;
    auto bytes = int64_t(alignTensor(buffer.max_bytes()));
    const format::Launch *writer = spans[i].writer;
    use.tensors.push_back({writer ? print(writer->node()) : "",
                           writer ? print(writer->module_()) : "", bytes,
                           spans[i].begin, spans[i].end});
  }
}

ArenaUse tools::getArenaUse(const format::Entry &entry) {
  ArenaUse use{nameOf(entry), int64_t(entry.scratch_bytes()), 0, {}};
  Walk walk(entry, use);
  walk.visit(*entry.body(), 0);
  walk.finish();
  return use;
}

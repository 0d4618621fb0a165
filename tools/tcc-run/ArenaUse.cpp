#include "tools/tcc-run/ArenaUse.h"

#include "runtime/base/Alignment.h"
#include "runtime/package/Commands.h"
#include "runtime/package/Names.h"

#include <algorithm>

using namespace tcc;

namespace {

class Walk {
public:
  Walk(const format::Entry &entry, ArenaUse &use)
      : buffers(*entry.buffers()), use(use), spans(buffers.size()) {}

  /// What is used in a block at `depth` 1 or more is used in all the command of
  /// the entry point that it belongs to.
  void visit(const format::Block &block, int depth);
  void finish();

private:
  struct Span {
    int64_t begin = -1, end = -1;
    const flatbuffers::String *node = nullptr;
  };

  void visit(const format::Command &command, int depth);
  void touch(uint32_t buffer, const flatbuffers::String *node);

  const flatbuffers::Vector<flatbuffers::Offset<format::Buffer>> &buffers;
  ArenaUse &use;
  std::vector<Span> spans;
};

} // namespace

void Walk::touch(uint32_t buffer, const flatbuffers::String *node) {
  while (buffers[buffer]->base() >= 0)
    buffer = uint32_t(buffers[buffer]->base());
  Span &span = spans[buffer];
  if (span.begin < 0)
    span = {use.positions, use.positions, node};
  span.end = use.positions + 1;
}

void Walk::visit(const format::Command &command, int depth) {
  const format::Launch *launch = command.action_as_Launch();
  runtime::forEachBuffer(command, [&](uint32_t buffer) {
    touch(buffer, launch ? launch->node() : nullptr);
  });
  runtime::forEachBlock(
      command, [&](const format::Block &block) { visit(block, depth + 1); });
}

void Walk::visit(const format::Block &block, int depth) {
  for (const format::Command *command : *block.commands()) {
    visit(*command, depth);
    if (depth == 0)
      use.positions += 2;
  }
}

void Walk::finish() {
  for (size_t i = 0; i < spans.size(); ++i) {
    const format::Buffer &buffer = *buffers[i];
    if (buffer.storage() != format::StorageClass::scratch ||
        spans[i].begin < 0 || buffer.base() >= 0)
      continue;
    auto bytes = int64_t(alignTensor(buffer.max_bytes()));
    use.tensors.push_back({spans[i].node ? spans[i].node->str() : "", bytes,
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

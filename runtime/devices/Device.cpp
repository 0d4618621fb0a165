#include "runtime/devices/Device.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

/// The buffer that a chain of views begins with.
static const format::Buffer &rootOf(const format::Entry &entry,
                                    uint32_t index) {
  const format::Buffer *buffer = entry.buffers()->Get(index);
  while (buffer->base() >= 0)
    buffer = entry.buffers()->Get(buffer->base());
  return *buffer;
}

static bool mayOverlap(const format::Buffer &a, const format::Buffer &b) {
  if (a.storage() != b.storage())
    return false;
  if (a.storage() != format::StorageClass::scratch)
    return a.index() == b.index();
  return a.offset() < b.offset() + b.max_bytes() &&
         b.offset() < a.offset() + a.max_bytes();
}

static void measureCopy(const format::Entry &entry, const format::Copy &copy,
                        LaunchLimits &limits) {
  if (!mayOverlap(rootOf(entry, copy.from()), rootOf(entry, copy.to())))
    return;
  uint64_t most = std::min(entry.buffers()->Get(copy.from())->max_bytes(),
                           entry.buffers()->Get(copy.to())->max_bytes());
  limits.shifted = std::max(limits.shifted, most);
}

static void measureBlock(const format::Entry &entry, const format::Block &block,
                         LaunchLimits &limits) {
  for (const format::Command *command : *block.commands()) {
    if (const format::Launch *launch = command->action_as_Launch()) {
      size_t buffers = launch->buffers() ? launch->buffers()->size() : 0;
      size_t sizes = launch->sizes() ? launch->sizes()->size() : 0;
      limits.buffers = std::max(limits.buffers, buffers);
      limits.sizes = std::max(limits.sizes, sizes);
      limits.faulting += launch->fault();
    }
    if (const format::Copy *copy = command->action_as_Copy())
      measureCopy(entry, *copy, limits);
    if (const format::If *branch = command->action_as_If()) {
      measureBlock(entry, *branch->then_block(), limits);
      measureBlock(entry, *branch->else_block(), limits);
    }
    if (const format::Loop *loop = command->action_as_Loop())
      measureBlock(entry, *loop->body(), limits);
  }
}

LaunchLimits runtime::measureLaunches(const format::Entry &entry) {
  LaunchLimits limits;
  measureBlock(entry, *entry.body(), limits);
  return limits;
}

std::string_view runtime::nameNode(const flatbuffers::String *node) {
  return node ? node->string_view() : std::string_view("?");
}

Status runtime::indexError(const format::Launch &launch, int64_t index) {
  return makeError(Code::Usage, "node '", nameNode(launch.node()), "': index ",
                   index, " is out of range");
}

#include "runtime/devices/Device.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

static void measureBlock(const format::Block &block, LaunchLimits &limits) {
  for (const format::Command *command : *block.commands()) {
    if (const format::Launch *launch = command->action_as_Launch()) {
      size_t buffers = launch->buffers() ? launch->buffers()->size() : 0;
      size_t sizes = launch->sizes() ? launch->sizes()->size() : 0;
      limits.buffers = std::max(limits.buffers, buffers);
      limits.sizes = std::max(limits.sizes, sizes);
      limits.faulting += launch->fault();
    }
    if (const format::If *branch = command->action_as_If()) {
      measureBlock(*branch->then_block(), limits);
      measureBlock(*branch->else_block(), limits);
    }
    if (const format::Loop *loop = command->action_as_Loop())
      measureBlock(*loop->body(), limits);
  }
}

LaunchLimits runtime::measureLaunches(const format::Entry &entry) {
  LaunchLimits limits;
  measureBlock(*entry.body(), limits);
  return limits;
}

std::string_view runtime::nameNode(const flatbuffers::String *node) {
  return node ? node->string_view() : std::string_view("?");
}

Status runtime::indexError(const format::Launch &launch, int64_t index) {
  return makeError(Code::Usage, "node '", nameNode(launch.node()), "': index ",
                   index, " is out of range");
}

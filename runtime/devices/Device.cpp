#include "runtime/devices/Device.h"

#include "runtime/package/Commands.h"

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

namespace {

struct Measure {
  const format::Entry &entry;
  LaunchLimits &limits;

  void operator()(const format::Launch &launch) const {
    size_t buffers = launch.buffers() ? launch.buffers()->size() : 0;
    size_t sizes = launch.sizes() ? launch.sizes()->size() : 0;
    limits.buffers = std::max(limits.buffers, buffers);
    limits.sizes = std::max(limits.sizes, sizes);
    limits.faulting += launch.fault();
  }
  void operator()(const format::Copy &copy) const {
    if (!mayOverlap(rootOf(entry, copy.from()), rootOf(entry, copy.to())))
      return;
    uint64_t most = std::min(entry.buffers()->Get(copy.from())->max_bytes(),
                             entry.buffers()->Get(copy.to())->max_bytes());
    limits.shifted = std::max(limits.shifted, most);
  }
  void operator()(const format::SetSize &) const {}
  void operator()(const format::ReadSize &) const {}
  void operator()(const format::If &) const {}
  void operator()(const format::Loop &) const {}
  void operator()(const format::RecordEvent &) const {}
  void operator()(const format::WaitEvent &) const {}
  void operator()(const Collective auto &) const {}
  void operator()(const UnknownCommand &) const {}
};

} // namespace

LaunchLimits runtime::measureLaunches(const format::Entry &entry) {
  LaunchLimits limits;
  forEachCommand(*entry.body(), [&](const format::Command &command) {
    visitCommand(command, Measure{entry, limits});
  });
  return limits;
}

std::string_view runtime::nameNode(const flatbuffers::String *node) {
  return node ? node->string_view() : std::string_view("?");
}

Status runtime::indexError(const format::Launch &launch, int64_t index) {
  return makeError(Code::Usage, "node '", nameNode(launch.node()), "': index ",
                   index, " is out of range");
}

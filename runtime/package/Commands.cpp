#include "runtime/package/Commands.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

namespace {

struct BlockVisitor {
  const BlockFunction &call;

  void operator()(const format::If &branch) const {
    call(*branch.then_block());
    call(*branch.else_block());
  }
  void operator()(const format::Loop &loop) const { call(*loop.body()); }
  void operator()(const format::Launch &) const {}
  void operator()(const format::Copy &) const {}
  void operator()(const format::SetSize &) const {}
  void operator()(const format::ReadSize &) const {}
  void operator()(const format::RecordEvent &) const {}
  void operator()(const format::WaitEvent &) const {}
  void operator()(const Collective auto &) const {}
  void operator()(const UnknownCommand &) const {}
};

struct BufferVisitor {
  const BufferFunction &call;

  void operator()(const format::Launch &launch) const {
    if (launch.buffers())
      std::ranges::for_each(*launch.buffers(), call);
  }
  void operator()(const format::Copy &copy) const {
    call(copy.from());
    call(copy.to());
  }
  void operator()(const format::ReadSize &read) const { call(read.buffer()); }
  void operator()(const format::If &branch) const { call(branch.condition()); }
  void operator()(const format::Loop &loop) const {
    if (loop.condition() >= 0)
      call(static_cast<uint32_t>(loop.condition()));
  }
  void operator()(const Collective auto &collective) const {
    call(collective.from());
    call(collective.to());
  }
  void operator()(const format::SetSize &) const {}
  void operator()(const format::RecordEvent &) const {}
  void operator()(const format::WaitEvent &) const {}
  void operator()(const UnknownCommand &) const {}
};

/// Whether the command itself makes the host read a buffer.
struct ReadVisitor {
  bool operator()(const format::ReadSize &) const { return true; }
  bool operator()(const format::If &) const { return true; }
  bool operator()(const format::Loop &loop) const {
    return loop.condition() >= 0;
  }
  bool operator()(const format::Launch &) const { return false; }
  bool operator()(const format::Copy &) const { return false; }
  bool operator()(const format::SetSize &) const { return false; }
  bool operator()(const format::RecordEvent &) const { return false; }
  bool operator()(const format::WaitEvent &) const { return false; }
  bool operator()(const Collective auto &) const { return false; }
  bool operator()(const UnknownCommand &) const { return false; }
};

} // namespace

void runtime::forEachBlock(const format::Command &command,
                           const BlockFunction &call) {
  visitCommand(command, BlockVisitor{call});
}

void runtime::forEachCommand(const format::Block &block,
                             const CommandFunction &call) {
  for (const format::Command *command : *block.commands()) {
    call(*command);
    forEachBlock(*command, [&](const format::Block &inner) {
      forEachCommand(inner, call);
    });
  }
}

void runtime::forEachLaunch(const format::Block &block,
                            const LaunchFunction &call) {
  forEachCommand(block, [&](const format::Command &command) {
    if (const format::Launch *launch = command.action_as_Launch())
      call(*launch);
  });
}

void runtime::forEachBuffer(const format::Command &command,
                            const BufferFunction &call) {
  visitCommand(command, BufferVisitor{call});
}

bool runtime::readsBuffers(const format::Block &block) {
  bool reads = false;
  forEachCommand(block, [&](const format::Command &command) {
    reads = reads || visitCommand(command, ReadVisitor());
  });
  return reads;
}

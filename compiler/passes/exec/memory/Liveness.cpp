#include "compiler/passes/exec/memory/Liveness.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace tcc::exec {

llvm::SetVector<Operation *> getCommands(BufferOp buffer) {
  llvm::SetVector<Operation *> commands;
  SmallVector<Value> values = {buffer};
  while (!values.empty()) {
    for (Operation *user : values.pop_back_val().getUsers()) {
      if (auto view = dyn_cast<ViewOp>(user))
        values.push_back(view);
      else
        commands.insert(user);
    }
  }
  return commands;
}

namespace {

/// First and last position of a command and what is nested in it.
struct Span {
  int64_t begin, end;
};
using Spans = llvm::DenseMap<Operation *, Span>;

} // namespace

static void numberCommands(Block &block, int64_t &position, Spans &spans) {
  for (Operation &op : block) {
    if (!isa<CommandOpInterface>(op))
      continue;
    int64_t begin = position++;
    for (Region &region : op.getRegions())
      numberCommands(region.front(), position, spans);
    spans[&op] = {begin, position++};
  }
}

std::vector<Lifetime> computeLifetimes(EntryOp entry) {
  Spans spans;
  int64_t count = 0;
  numberCommands(entry.getBody().front(), count, spans);
  std::vector<Lifetime> lifetimes;
  entry.walk([&](BufferOp buffer) {
    if (buffer.getStorage() != StorageClass::scratch)
      return;
    Lifetime lifetime = {buffer, INT64_MAX, -1};
    for (Operation *command : getCommands(buffer)) {
      Operation *own = buffer->getBlock()->findAncestorOpInBlock(*command);
      lifetime.begin = std::min(lifetime.begin, spans[own].begin);
      lifetime.end = std::max(lifetime.end, spans[own].end);
    }
    if (lifetime.end >= 0)
      lifetimes.push_back(lifetime);
  });
  return lifetimes;
}

} // namespace tcc::exec

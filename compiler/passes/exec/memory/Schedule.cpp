#include "compiler/passes/exec/memory/Schedule.h"

#include "compiler/passes/exec/memory/Liveness.h"
#include <numeric>
#include <set>

using namespace mlir;

namespace tcc::exec {

BlockGraph::BlockGraph(Block &block) : block(&block) {
  for (Operation &op : block)
    if (isa<CommandOpInterface>(op)) {
      indices[&op] = nodes.size();
      nodes.push_back({&op, {}, 0, {}, 0});
    }
  collectBuffers();
  connect();
}

void BlockGraph::collectBuffers() {
  for (auto buffer : block->getOps<BufferOp>()) {
    if (buffer.getStorage() != StorageClass::scratch)
      continue;
    std::set<unsigned> users;
    for (Operation *command : getCommands(buffer))
      users.insert(indices.lookup(block->findAncestorOpInBlock(*command)));
    for (unsigned user : users)
      nodes[user].buffers.push_back(bufferBytes.size());
    bufferBytes.push_back(buffer.getBound());
    useCounts.push_back(users.size());
  }
}

namespace {

/// What a command, with all that is nested in it, reads and writes: buffers by
/// their roots, and size slots.
struct Effects {
  llvm::SetVector<const void *> reads, writes;
  bool isBarrier = false;
};

/// Keeps, for one buffer or slot, who accessed it last.
struct History {
  std::optional<unsigned> writer;
  SmallVector<unsigned> readers;
};

} // namespace

/// A slot as a key beside those of buffers.
static const void *getSlotKey(EntryOp entry, int64_t slot) {
  return reinterpret_cast<const char *>(entry.getOperation()) + 1 + 2 * slot;
}

/// The slots that the maps of `op` read.
static void addSlots(Operation *op, EntryOp entry, Effects &effects) {
  for (NamedAttribute attr : op->getAttrs())
    if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
      for (unsigned slot = 0; slot < map.getValue().getNumSymbols(); ++slot)
        if (map.getValue().isFunctionOfSymbol(slot))
          effects.reads.insert(getSlotKey(entry, slot));
}

static Effects getEffects(Operation *command, EntryOp entry) {
  Effects effects;
  command->walk([&](CommandOpInterface nested) {
    effects.isBarrier |= nested.isBarrier();
    for (Value buffer : nested.getReads())
      effects.reads.insert(getRoot(buffer));
    for (Value buffer : nested.getWrites())
      effects.writes.insert(getRoot(buffer));
    if (nested.getSetSlot() >= 0)
      effects.writes.insert(getSlotKey(entry, nested.getSetSlot()));
    addSlots(nested, entry, effects);
    for (Value operand : nested->getOperands())
      for (auto view = operand.getDefiningOp<ViewOp>(); view;
           view = view.getBase().getDefiningOp<ViewOp>())
        addSlots(view, entry, effects);
  });
  return effects;
}

void BlockGraph::addEdge(unsigned from, unsigned to) {
  if (from == to || llvm::is_contained(nodes[from].successors, to))
    return;
  nodes[from].successors.push_back(to);
  ++nodes[to].predecessorCount;
}

void BlockGraph::connect() {
  auto entry = dyn_cast<EntryOp>(block->getParentOp());
  if (!entry)
    entry = block->getParentOp()->getParentOfType<EntryOp>();
  llvm::DenseMap<const void *, History> histories;
  std::optional<unsigned> barrier;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    Effects effects = getEffects(nodes[i].command, entry);
    if (barrier)
      addEdge(*barrier, i);
    if (effects.isBarrier) {
      for (unsigned before = 0; before < i; ++before)
        addEdge(before, i);
      barrier = i;
    }
    for (const void *key : effects.reads) {
      History &history = histories[key];
      if (history.writer)
        addEdge(*history.writer, i);
      history.readers.push_back(i);
    }
    for (const void *key : effects.writes) {
      History &history = histories[key];
      if (history.writer)
        addEdge(*history.writer, i);
      for (unsigned reader : history.readers)
        addEdge(reader, i);
      history = {i, {}};
    }
  }
}

BlockGraph::Progress BlockGraph::start() const {
  return {useCounts, std::vector<bool>(useCounts.size())};
}

int64_t BlockGraph::getGrowth(unsigned node, const Progress &progress) const {
  int64_t growth = 0;
  for (unsigned buffer : nodes[node].buffers) {
    if (!progress.isLive[buffer])
      growth += bufferBytes[buffer];
    if (progress.usesLeft[buffer] == 1)
      growth -= bufferBytes[buffer];
  }
  return growth;
}

std::pair<int64_t, int64_t> BlockGraph::run(unsigned node,
                                            Progress &progress) const {
  int64_t added = 0, freed = 0;
  for (unsigned buffer : nodes[node].buffers) {
    if (!progress.isLive[buffer])
      added += bufferBytes[buffer];
    progress.isLive[buffer] = true;
    if (--progress.usesLeft[buffer] == 0)
      freed += bufferBytes[buffer];
  }
  return {added, freed};
}

std::vector<unsigned> BlockGraph::getProgramOrder() const {
  std::vector<unsigned> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<unsigned> BlockGraph::getSmallestOrder() const {
  Progress progress = start();
  std::vector<unsigned> waiting, order;
  std::set<unsigned> ready;
  for (auto [i, node] : llvm::enumerate(nodes)) {
    waiting.push_back(node.predecessorCount);
    if (!node.predecessorCount)
      ready.insert(i);
  }
  while (!ready.empty()) {
    unsigned next = *std::min_element(
        ready.begin(), ready.end(), [&](unsigned i, unsigned j) {
          return std::pair(getGrowth(i, progress), i) <
                 std::pair(getGrowth(j, progress), j);
        });
    ready.erase(next);
    order.push_back(next);
    run(next, progress);
    for (unsigned successor : nodes[next].successors)
      if (--waiting[successor] == 0)
        ready.insert(successor);
  }
  return order;
}

std::vector<int64_t> BlockGraph::getGrowths(ArrayRef<unsigned> order) const {
  Progress progress = start();
  std::vector<int64_t> growths(nodes.size());
  for (unsigned node : order) {
    auto [added, freed] = run(node, progress);
    growths[node] = added - freed;
  }
  return growths;
}

/// From the end: whoever waits for a command has its place by then.
std::vector<unsigned> BlockGraph::delayGrowth(ArrayRef<unsigned> order) const {
  std::vector<int64_t> growths = getGrowths(order);
  std::vector<unsigned> reversed;
  for (unsigned node : llvm::reverse(order)) {
    auto place = reversed.end();
    if (growths[node] > 0 && !nodes[node].successors.empty())
      while (!llvm::is_contained(nodes[node].successors, *std::prev(place)))
        --place;
    reversed.insert(place, node);
  }
  return {reversed.rbegin(), reversed.rend()};
}

std::vector<unsigned>
BlockGraph::hastenRelease(ArrayRef<unsigned> order) const {
  std::vector<int64_t> growths = getGrowths(order);
  std::vector<unsigned> result;
  for (unsigned node : order) {
    auto place = result.end();
    if (growths[node] < 0)
      while (place != result.begin() &&
             !llvm::is_contained(nodes[*std::prev(place)].successors, node))
        --place;
    result.insert(place, node);
  }
  return result;
}

std::vector<unsigned>
BlockGraph::getTightOrder(ArrayRef<unsigned> order) const {
  return hastenRelease(delayGrowth(order));
}

int64_t BlockGraph::getPeak(ArrayRef<unsigned> order) const {
  Progress progress = start();
  int64_t live = 0, peak = 0;
  for (unsigned node : order) {
    auto [added, freed] = run(node, progress);
    peak = std::max(peak, live + added + nodes[node].innerBytes);
    live += added - freed;
  }
  return peak;
}

} // namespace tcc::exec

#include "compiler/passes/exec/memory/Schedule.h"

#include "compiler/passes/exec/memory/LiveRanges.h"
#include "dialects/exec/Effects.h"
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
    std::vector<unsigned> &users = bufferUses.emplace_back();
    for (Operation *command : getUses(buffer))
      users.push_back(indices.lookup(command));
    for (unsigned user : users)
      nodes[user].buffers.push_back(bufferBytes.size());
    bufferBytes.push_back(getArenaBytes(buffer));
  }
}

void BlockGraph::addEdge(unsigned from, unsigned to) {
  if (from == to || llvm::is_contained(nodes[from].successors, to))
    return;
  nodes[from].successors.push_back(to);
  ++nodes[to].predecessorCount;
}

namespace {

/// Who used a resource last.
struct History {
  std::optional<unsigned> writer;
  SmallVector<unsigned> readers; ///< since
};

} // namespace

void BlockGraph::connect() {
  llvm::DenseMap<Resource, History> histories;
  for (unsigned i = 0; i < nodes.size(); ++i) {
    Effects effects = getEffects(nodes[i].command);
    for (const Resource &resource : effects.reads) {
      History &history = histories[resource];
      if (history.writer)
        addEdge(*history.writer, i);
      history.readers.push_back(i);
    }
    for (const Resource &resource : effects.writes) {
      History &history = histories[resource];
      if (history.writer)
        addEdge(*history.writer, i);
      for (unsigned reader : history.readers)
        addEdge(reader, i);
      history = {i, {}};
    }
  }
}

BlockGraph::Progress BlockGraph::start() const {
  Progress progress{{}, std::vector<bool>(bufferUses.size())};
  for (const std::vector<unsigned> &users : bufferUses)
    progress.usesLeft.push_back(users.size());
  return progress;
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

void BlockGraph::run(unsigned node, Progress &progress) const {
  for (unsigned buffer : nodes[node].buffers) {
    progress.isLive[buffer] = true;
    --progress.usesLeft[buffer];
  }
}

std::vector<LiveRange> BlockGraph::getRanges(ArrayRef<unsigned> order) const {
  std::vector<int64_t> positions(nodes.size());
  for (auto [position, node] : llvm::enumerate(order))
    positions[node] = position;
  std::vector<LiveRange> ranges;
  for (auto [bytes, users] : llvm::zip(bufferBytes, bufferUses)) {
    LiveRange range = {INT64_MAX, -1, bytes};
    for (unsigned user : users) {
      range.begin = std::min(range.begin, positions[user]);
      range.end = std::max(range.end, positions[user]);
    }
    if (!users.empty())
      ranges.push_back(range);
  }
  return ranges;
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
  std::vector<int64_t> growths(nodes.size());
  for (const LiveRange &range : getRanges(order)) {
    growths[order[range.begin]] += range.bytes;
    growths[order[range.end]] -= range.bytes;
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
  int64_t peak = 0;
  for (auto [node, live] :
       llvm::zip(order, countLive(getRanges(order), order.size())))
    peak = std::max(peak, live + nodes[node].innerBytes);
  return peak;
}

/// `order` with what is at `from` at `to` instead.
static std::vector<unsigned> move(std::vector<unsigned> order, size_t from,
                                  size_t to) {
  auto begin = order.begin();
  if (to < from)
    std::rotate(begin + to, begin + from, begin + from + 1);
  else
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  return order;
}

void BlockGraph::moveTowards(size_t from, size_t to,
                             std::vector<unsigned> &order) const {
  if (to == from)
    return;
  int64_t most = getPeak(order);
  for (; to != from; to < from ? ++to : --to)
    if (auto moved = move(order, from, to); getPeak(moved) <= most) {
      order = std::move(moved);
      return;
    }
}

std::vector<unsigned>
BlockGraph::getOverlappedOrder(std::vector<unsigned> order) const {
  auto mustPrecede = [&](unsigned a, unsigned b) {
    return llvm::is_contained(nodes[a].successors, b);
  };
  for (size_t i = 0; i < order.size(); ++i) {
    size_t to = i;
    if (TokenOpInterface::isStart(nodes[order[i]].command))
      while (to > 0 && !mustPrecede(order[to - 1], order[i]))
        --to;
    moveTowards(i, to, order);
  }
  for (size_t i = order.size(); i-- > 0;) {
    size_t to = i;
    if (isa<WaitOp>(nodes[order[i]].command))
      while (to + 1 < order.size() && !mustPrecede(order[i], order[to + 1]))
        ++to;
    moveTowards(i, to, order);
  }
  return order;
}

} // namespace tcc::exec

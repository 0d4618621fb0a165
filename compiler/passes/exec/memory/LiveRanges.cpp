#include "compiler/passes/exec/memory/LiveRanges.h"

#include "runtime/base/Alignment.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc::exec {

Commands getUses(BufferOp buffer) {
  Commands uses;
  for (Operation *command : getCommands(buffer))
    uses.insert(buffer->getBlock()->findAncestorOpInBlock(*command));
  return uses;
}

int64_t getArenaBytes(BufferOp buffer) {
  return llvm::alignTo(buffer.getBound(), kTensorAlignment);
}

std::vector<int64_t> countLive(ArrayRef<LiveRange> ranges, size_t count) {
  std::vector<int64_t> live(count + 1);
  for (const LiveRange &range : ranges) {
    live[range.begin] += range.bytes;
    live[range.end + 1] -= range.bytes;
  }
  for (size_t i = 1; i < live.size(); ++i)
    live[i] += live[i - 1];
  live.pop_back();
  return live;
}

bool LiveRanges::precede(const Commands &first, const Commands &second) const {
  return llvm::all_of(first, [&](Operation *a) {
    return llvm::all_of(second,
                        [&](Operation *b) { return order.precedes(a, b); });
  });
}

bool LiveRanges::isFirstUse(BufferOp buffer, Operation *command) const {
  Commands others = getUses(buffer), self;
  self.insert(command);
  return others.remove(command) && precede(self, others);
}

bool LiveRanges::isLastUse(BufferOp buffer, Operation *command) const {
  Commands others = getUses(buffer), self;
  self.insert(command);
  return others.remove(command) && precede(others, self);
}

// --- Scratch -----------------------------------------------------------------

namespace {

/// When commands of one block run: they begin after `begin`, and have ended at
/// `end`. One set precedes another if its end is no later than the other's
/// begin on any lane.
struct Times {
  SmallVector<unsigned, 4> begin, end;
};

/// Finds what is live at the same time though one has its positions before the
/// other's: lanes do not keep the order of the program.
class ConflictFinder {
public:
  ConflictFinder(const Order &order, ArrayRef<BufferOp> buffers);

  bool areOrdered(unsigned a, unsigned b) const;

private:
  Times getTimes(const Commands &uses) const;
  Times getTimes(unsigned buffer, Block *block) const;

  const Order &order;
  ArrayRef<BufferOp> buffers;
  std::vector<Times> times; ///< of each buffer, in its own block
};

} // namespace

ConflictFinder::ConflictFinder(const Order &order, ArrayRef<BufferOp> buffers)
    : order(order), buffers(buffers) {
  for (BufferOp buffer : buffers)
    times.push_back(getTimes(getUses(buffer)));
}

Times ConflictFinder::getTimes(const Commands &uses) const {
  Times times;
  times.begin.assign(order.getLanes(), UINT_MAX);
  times.end.assign(order.getLanes(), 0);
  for (Operation *use : uses) {
    unsigned &end = times.end[cast<CommandOpInterface>(use).getLane()];
    end = std::max(end, order.getRank(use) + 1);
    for (auto [begin, known] : llvm::zip(times.begin, order.getClock(use)))
      begin = std::min(begin, known);
  }
  return times;
}

/// As seen from `block`: the buffer's own block is nested in one command of it.
Times ConflictFinder::getTimes(unsigned buffer, Block *block) const {
  if (BufferOp(buffers[buffer])->getBlock() == block)
    return times[buffer];
  Commands use;
  use.insert(block->findAncestorOpInBlock(*buffers[buffer]));
  return getTimes(use);
}

/// The innermost block that holds both.
static Block *getCommonBlock(Operation *a, Operation *b) {
  Block *block = a->getBlock();
  while (!block->findAncestorOpInBlock(*b))
    block = block->getParentOp()->getBlock();
  return block;
}

/// `a` has its positions before `b`. Those of two branches of one command never
/// live together.
bool ConflictFinder::areOrdered(unsigned a, unsigned b) const {
  BufferOp first = buffers[a], second = buffers[b];
  Block *block = getCommonBlock(first, second);
  Operation *outer = block->findAncestorOpInBlock(*first);
  if (outer != first && outer == block->findAncestorOpInBlock(*second))
    return true;
  Times before = getTimes(a, block), after = getTimes(b, block);
  return llvm::all_of(llvm::zip(before.end, after.begin), [](auto pair) {
    return std::get<0>(pair) <= std::get<1>(pair);
  });
}

LiveRanges::Scratch LiveRanges::getScratch() const {
  Scratch scratch;
  order.getEntry()->walk([&](BufferOp buffer) {
    if (buffer.getStorage() != StorageClass::scratch || buffer->use_empty())
      return;
    Allocation range(INT64_MAX, -1, getArenaBytes(buffer));
    for (Operation *use : getUses(buffer)) {
      range.begin = std::min(range.begin, order.getSpan(use).begin);
      range.end = std::max(range.end, order.getSpan(use).end);
    }
    if (range.end < 0)
      return;
    scratch.buffers.push_back(buffer);
    scratch.allocations.push_back(range);
  });
  if (order.getLanes() == 1)
    return scratch;
  ConflictFinder finder(order, scratch.buffers);
  std::vector<Allocation> &ranges = scratch.allocations;
  scratch.unordered.assign(ranges.size(), llvm::BitVector(ranges.size()));
  for (unsigned i = 0; i < ranges.size(); ++i) {
    ranges[i].id = i;
    ranges[i].unordered = &scratch.unordered[i];
    for (unsigned j = 0; j < ranges.size(); ++j)
      if (ranges[i].end < ranges[j].begin && !finder.areOrdered(i, j)) {
        scratch.unordered[i].set(j);
        scratch.unordered[j].set(i);
      }
  }
  return scratch;
}

} // namespace tcc::exec

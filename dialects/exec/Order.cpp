#include "dialects/exec/Order.h"

using namespace mlir;

namespace tcc::exec {

Order::Order(EntryOp entry) : entry(entry), lanes(EntryOp(entry).getLanes()) {
  int64_t position = 0;
  visit(EntryOp(entry).getBody().front(), position);
}

size_t Order::store(Clock clock) {
  clocks.insert(clocks.end(), clock.begin(), clock.end());
  return clocks.size() - lanes;
}

void Order::visit(Block &block, int64_t &position) {
  using Counts = SmallVector<unsigned, 4>;
  Counts none(lanes), counts(lanes);
  SmallVector<Counts> now(lanes, none); // what each lane knows to have ended
  llvm::DenseMap<Value, Counts> marked;
  now[0][0] = counts[0] = 1; // the beginning of the block
  for (Operation &op : block) {
    auto command = dyn_cast<CommandOpInterface>(op);
    if (!command)
      continue;
    unsigned lane = command.getLane();
    Counts &known = now[lane];
    if (auto wait = dyn_cast<WaitOp>(op))
      for (auto [mine, other] : llvm::zip(known, marked[wait.getToken()]))
        mine = std::max(mine, other);
    int64_t begin = position++;
    size_t clock = store(known);
    for (Region &region : op.getRegions())
      visit(region.front(), position);
    nodes[&op] = {begin, position++, lane, counts[lane], clock};
    known[lane] = ++counts[lane];
    if (auto token = dyn_cast<TokenOpInterface>(op))
      marked[token.getToken()] = known;
  }
  size_t end = store(now[0]);
  blocks[&block] = {end, store(counts)};
}

Order::Clock Order::getClock(Operation *command) const {
  return load(nodes.find(command)->second.clock);
}

Order::Clock Order::getEnd(Block *block) const {
  return load(blocks.find(block)->second.end);
}

Order::Clock Order::getCounts(Block *block) const {
  return load(blocks.find(block)->second.counts);
}

bool Order::precedes(Operation *a, Operation *b) const {
  while (a->getBlock() != b->getBlock()) {
    if (Operation *own = a->getBlock()->findAncestorOpInBlock(*b))
      b = own;
    else
      a = a->getParentOp();
  }
  const Node &first = nodes.find(a)->second, &second = nodes.find(b)->second;
  if (lanes == 1)
    return first.begin < second.begin;
  return a != b && first.rank < load(second.clock)[first.lane];
}

} // namespace tcc::exec

#include "tests/compiler/passes/exec/HappensBefore.h"

#include <map>

using namespace mlir;
using namespace tcc::exec;
using namespace tcc::tests;

CommandList tcc::tests::getCommands(Block &block) {
  CommandList commands;
  for (Operation &op : block)
    if (isa<CommandOpInterface>(op))
      commands.push_back(&op);
  return commands;
}

HappensBefore::HappensBefore(const CommandList &commands, Operation *without) {
  nodes.emplace_back();
  for (Operation *command : commands)
    addNode(command);
  nodes.emplace_back();
  addEdges(without);
  for (size_t node = 0; node < nodes.size(); ++node)
    search(node);
}

/// The arena counts in units, what lies elsewhere as a whole.
void HappensBefore::addBytes(Value buffer, Bytes &bytes) {
  constexpr int64_t kUnit = 64;
  BufferOp root = getRoot(buffer);
  if (!root.getOffset()) {
    bytes.insert({root, 0});
    return;
  }
  auto begin = int64_t(*root.getOffset());
  for (int64_t i = 0; i < int64_t(root.getBound()); i += kUnit)
    bytes.insert({nullptr, (begin + i) / kUnit});
}

void HappensBefore::addNode(Operation *op) {
  Node &node = nodes.emplace_back();
  node.op = op;
  node.lane = cast<CommandOpInterface>(op).getLane();
  op->walk([&](CommandOpInterface nested) {
    if (isa<WaitOp>(*nested))
      return;
    for (Value buffer : nested.getReads())
      addBytes(buffer, node.reads);
    for (Value buffer : nested.getWrites())
      addBytes(buffer, node.writes);
  });
}

void HappensBefore::addEdges(Operation *without) {
  std::map<uint64_t, size_t> last; // of each lane
  std::map<Operation *, size_t> latest;
  for (size_t node = 0; node < nodes.size(); ++node) {
    auto [before, isFirst] = last.try_emplace(nodes[node].lane, node);
    if (!isFirst)
      nodes[before->second].next.push_back(node);
    before->second = node;
    latest[nodes[node].op] = node;
    auto wait = dyn_cast_or_null<WaitOp>(nodes[node].op);
    if (wait && wait != without)
      nodes[latest.at(wait.getMarked())].next.push_back(node);
  }
}

void HappensBefore::search(size_t from) {
  std::vector<size_t> open = {from};
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    for (size_t next : nodes[node].next)
      if (nodes[from].reached.insert(next).second)
        open.push_back(next);
  }
}

size_t HappensBefore::find(Operation *op) const {
  return llvm::find_if(nodes, [&](const Node &node) { return node.op == op; }) -
         nodes.begin();
}

bool HappensBefore::precedes(Operation *a, Operation *b) const {
  return nodes[find(a)].reached.contains(find(b));
}

bool HappensBefore::areInConflict(const Node &a, const Node &b) {
  auto haveCommon = [](const Bytes &lhs, const Bytes &rhs) {
    return llvm::any_of(lhs, [&](auto each) { return rhs.contains(each); });
  };
  return haveCommon(a.writes, b.reads) || haveCommon(a.reads, b.writes) ||
         haveCommon(a.writes, b.writes);
}

std::set<HappensBefore::Pair> HappensBefore::findRaces() const {
  std::set<Pair> races;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (size_t j = i + 1; j < nodes.size(); ++j) {
      const Node &a = nodes[i], &b = nodes[j];
      if (!a.reached.contains(j) && areInConflict(a, b))
        races.insert(a.lane > b.lane ? Pair(a.op, b.op) : Pair(b.op, a.op));
    }
  return races;
}

std::set<Operation *> HappensBefore::findLoose() const {
  std::set<Operation *> loose;
  for (size_t node = 1; node + 1 < nodes.size(); ++node)
    if (!nodes.front().reached.contains(node) ||
        !nodes[node].reached.contains(nodes.size() - 1))
      loose.insert(nodes[node].op);
  return loose;
}

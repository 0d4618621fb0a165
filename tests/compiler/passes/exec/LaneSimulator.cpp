#include "tests/compiler/passes/exec/LaneSimulator.h"

using namespace mlir;
using namespace tcc::exec;
using namespace tcc::tests;

static constexpr int64_t kUnit = 64;

LaneSimulator::LaneSimulator(EntryOp entry, unsigned seed)
    : random(seed), arena(*entry.getScratchBytes() / kUnit, kSpoiled),
      lanes(entry.getLanes()) {
  unroll(entry.getBody().front());
  isDone.resize(steps.size());
}

void LaneSimulator::unroll(Block &block) {
  for (Operation &op : block) {
    if (auto branch = dyn_cast<IfOp>(op)) {
      unroll((random() % 2 ? branch.getThenRegion() : branch.getElseRegion())
                 .front());
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      for (uint64_t i = 0; i < loop.getMaxTrips(); ++i)
        unroll(loop.getBody().front());
    } else if (isa<CommandOpInterface>(op)) {
      addStep(op);
    }
  }
}

void LaneSimulator::addStep(Operation &op) {
  auto command = cast<CommandOpInterface>(op);
  lanes[command.getLane()].steps.push_back(steps.size());
  latest[&op] = steps.size();
  Step &step = steps.emplace_back();
  step.op = &op;
  if (auto wait = dyn_cast<WaitOp>(op)) {
    step.waitsFor = latest.at(wait.getMarked()) + 1;
    return;
  }
  for (Value value : command.getReads())
    step.expected[getRoot(value)] = written[getRoot(value)];
  for (Value value : command.getWrites())
    written[getRoot(value)] = Tag(steps.size());
}

LaneSimulator::Units LaneSimulator::getUnits(BufferOp buffer) {
  if (!buffer.getOffset())
    return {&others[buffer]};
  Units units;
  int64_t begin = *buffer.getOffset() / kUnit;
  for (int64_t i = 0; i * kUnit < int64_t(buffer.getBound()); ++i)
    units.push_back(&arena[begin + i]);
  return units;
}

bool LaneSimulator::readsRight(const Step &step, bool isAtEnd) {
  auto writes = cast<CommandOpInterface>(step.op).getWrites();
  for (auto [buffer, tag] : step.expected) {
    auto root = cast<BufferOp>(buffer);
    bool isInPlace = llvm::is_contained(writes, root.getResult());
    for (Tag *unit : getUnits(root))
      if (*unit != tag && !(isAtEnd && isInPlace))
        return false;
  }
  return true;
}

void LaneSimulator::write(const Step &step, Tag tag) {
  for (Value value : cast<CommandOpInterface>(step.op).getWrites())
    for (Tag *unit : getUnits(getRoot(value)))
      *unit = tag;
}

bool LaneSimulator::canRun(size_t lane) const {
  const Lane &each = lanes[lane];
  if (each.next == each.steps.size())
    return false;
  size_t waitsFor = steps[each.steps[each.next]].waitsFor;
  return waitsFor == 0 || isDone[waitsFor - 1];
}

/// Begins the next command of the lane, or ends it.
bool LaneSimulator::advance(size_t lane) {
  Lane &each = lanes[lane];
  size_t index = each.steps[each.next];
  const Step &step = steps[index];
  if (!isa<WaitOp>(step.op)) {
    if (!readsRight(step, /*isAtEnd=*/each.hasBegun))
      return false;
    write(step, each.hasBegun ? Tag(index + 1) : kSpoiled);
    each.hasBegun = !each.hasBegun;
    if (each.hasBegun)
      return true;
  }
  isDone[index] = true;
  ++each.next;
  return true;
}

bool LaneSimulator::run(Choice choice) {
  for (;;) {
    std::vector<size_t> ready;
    for (size_t lane = 0; lane < lanes.size(); ++lane)
      if (canRun(lane))
        ready.push_back(lane);
    if (ready.size() > 1)
      std::erase(ready, size_t(choice.last));
    if (ready.empty())
      return llvm::all_of(isDone, [](bool done) { return done; });
    if (!advance(ready[random() % ready.size()]))
      return false;
  }
}

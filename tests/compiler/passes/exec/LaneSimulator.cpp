#include "tests/compiler/passes/exec/LaneSimulator.h"

using namespace mlir;
using namespace tcc::exec;
using namespace tcc::tests;

static constexpr int64_t kUnit = 64;

LaneSimulator::LaneSimulator(EntryOp entry, unsigned seed)
    : random(seed), arena(*entry.getScratchBytes() / kUnit, kUnwritten),
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
      uint64_t trips = random() % (uint64_t(loop.getMaxTrips()) + 1);
      for (uint64_t i = 0; i < trips; ++i)
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

std::vector<Operation *> LaneSimulator::getCommands() const {
  std::vector<Operation *> commands;
  for (const Step &step : steps)
    commands.push_back(step.op);
  return commands;
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

bool LaneSimulator::isWritten(const Step &step, Tag tag) {
  auto writes = cast<CommandOpInterface>(step.op).getWrites();
  return llvm::all_of(writes, [&](Value value) {
    return llvm::all_of(getUnits(getRoot(value)),
                        [&](Tag *unit) { return *unit == tag; });
  });
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

/// Whether the lane is the last of all, or within the slow command.
bool LaneSimulator::isPutOff(size_t lane, const Choice &choice) const {
  const Lane &each = lanes[lane];
  return int(lane) == choice.last ||
         (each.hasBegun && steps[each.steps[each.next]].op == choice.slow);
}

/// Lanes that can go on; those that are put off only if there is no other.
std::vector<size_t> LaneSimulator::findReady(const Choice &choice) const {
  std::vector<size_t> ready, putOff;
  for (size_t lane = 0; lane < lanes.size(); ++lane)
    if (canRun(lane))
      (isPutOff(lane, choice) ? putOff : ready).push_back(lane);
  return ready.empty() ? putOff : ready;
}

/// Begins the next command of the lane, or ends it.
bool LaneSimulator::advance(size_t lane) {
  Lane &each = lanes[lane];
  size_t index = each.steps[each.next];
  const Step &step = steps[index];
  Tag left = Tag(index + 1), spoiled = kUnwritten - left;
  if (!isa<WaitOp>(step.op)) {
    if (!readsRight(step, /*isAtEnd=*/each.hasBegun) ||
        (each.hasBegun && !isWritten(step, spoiled)))
      return false;
    write(step, each.hasBegun ? left : spoiled);
    each.hasBegun = !each.hasBegun;
    if (each.hasBegun)
      return true;
  }
  isDone[index] = true;
  ++each.next;
  return true;
}

bool LaneSimulator::run(const Choice &choice) {
  for (;;) {
    std::vector<size_t> ready = findReady(choice);
    if (ready.empty())
      return llvm::all_of(isDone, [](bool done) { return done; });
    if (!advance(ready[random() % ready.size()]))
      return false;
  }
}

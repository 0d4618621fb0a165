//===- VerifyLanes.cpp - No two lanes race --------------------------------===//
#include "dialects/exec/Effects.h"
#include "dialects/exec/Order.h"

using namespace mlir;

namespace tcc::exec {

namespace {

/// The commands of one block.
class LaneVerifier {
public:
  LaneVerifier(const Order &order, Block &block);

  LogicalResult verify();

private:
  struct Command {
    Operation *op;
    unsigned lane;
    SmallVector<Access> accesses;
  };

  LogicalResult verifyFork(const Command &command);
  LogicalResult verifyJoin();
  LogicalResult verifyRaces(const Command &command);

  const Order &order;
  Block &block;
  std::vector<Command> commands;
  Operation *first = nullptr, *last = nullptr; ///< commands of lane 0
};

} // namespace

/// Fails with a note on the other command, if there is one.
static LogicalResult nameOther(InFlightDiagnostic error, StringRef what,
                               Operation *other) {
  if (other)
    error.attachNote(other->getLoc()) << what << ": " << other->getName();
  return error;
}

LaneVerifier::LaneVerifier(const Order &order, Block &block)
    : order(order), block(block) {
  for (Operation &op : block) {
    auto command = dyn_cast<CommandOpInterface>(op);
    if (!command)
      continue;
    commands.push_back({&op, unsigned(command.getLane()), getAccesses(&op)});
    if (command.getLane() > 0)
      continue;
    first = first ? first : &op;
    last = &op;
  }
}

LogicalResult LaneVerifier::verifyFork(const Command &command) {
  if (order.getClock(command.op)[0] > 0)
    return success();
  return nameOther(command.op->emitOpError("runs on lane ")
                       << command.lane
                       << ", which has not waited for lane 0 in this block yet",
                   "the first command of lane 0", first);
}

LogicalResult LaneVerifier::verifyJoin() {
  Order::Clock counts = order.getCounts(&block), end = order.getEnd(&block);
  for (const Command &command : llvm::reverse(commands))
    if (command.lane > 0 && end[command.lane] < counts[command.lane])
      return nameOther(command.op->emitOpError("ends on lane ")
                           << command.lane
                           << ", which lane 0 does not wait for in this block",
                       "the last command of lane 0", last);
  return success();
}

/// What runs beside `command`, on lane 0 or on one that comes later.
LogicalResult LaneVerifier::verifyRaces(const Command &command) {
  for (const Command &other : commands) {
    if (other.lane >= command.lane || order.precedes(other.op, command.op) ||
        order.precedes(command.op, other.op) ||
        !areInConflict(command.accesses, other.accesses))
      continue;
    return nameOther(command.op->emitOpError("on lane ")
                         << command.lane
                         << " may run at the same time as a command on lane "
                         << other.lane
                         << " that uses the same bytes, and one of them "
                            "writes them",
                     "the other command", other.op);
  }
  return success();
}

LogicalResult LaneVerifier::verify() {
  for (const Command &command : commands)
    if (command.lane > 0 && failed(verifyRaces(command)))
      return failure();
  for (const Command &command : commands)
    if (failed(verifyFork(command)))
      return failure();
  return verifyJoin();
}

LogicalResult verifyLanes(const Order &order) {
  if (order.getLanes() == 1)
    return success();
  WalkResult result = order.getEntry()->walk([&](Block *block) {
    return WalkResult(LaneVerifier(order, *block).verify());
  });
  return failure(result.wasInterrupted());
}

} // namespace tcc::exec

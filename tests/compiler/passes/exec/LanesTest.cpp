//===- LanesTest.cpp - Plans of random programs with lanes ----------------===//
//
// Programs of launches, copies, collectives, branches and loops get lanes and a
// plan. A simulator that knows nothing of orders and live ranges runs the lanes
// in any way that waits allow, on an arena whose every unit has a tag of who
// wrote it: what a command reads must be what the program's order says. What
// the verifier of lanes reports is held against the simulator, and against a
// search along the edges that are left.
//
//===----------------------------------------------------------------------===//
#include "tests/compiler/passes/exec/HappensBefore.h"
#include "tests/compiler/passes/exec/LaneSimulator.h"
#include "tests/compiler/passes/exec/RandomProgram.h"

#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/LiveRanges.h"
#include "dialects/graph/GraphOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::exec;
using namespace tcc::tests;

namespace {

class LanesTest : public testing::Test {
protected:
  LanesTest() {
    context.loadDialect<ExecDialect, graph::GraphDialect>();
    context.disableMultithreading();
    context.printOpOnDiagnostic(false); // its note would count as a command
  }

  EntryOp parse(const std::string &source) {
    module = parseSourceString<ModuleOp>(source, &context);
    return module ? *module->getOps<EntryOp>().begin() : EntryOp();
  }

  bool runPasses() {
    PassManager pm(&context);
    pm.addPass(createScheduleCommandsPass());
    pm.addPass(createAssignLanesPass());
    pm.addPass(createPlanMemoryPass());
    pm.addPass(createVerifyLanesPass());
    if (failed(pm.run(*module)))
      return false;
    numberCommands();
    return true;
  }

  /// Gives each op a location of its own: its number.
  void numberCommands() {
    ops.clear();
    module->walk([&](Operation *op) {
      op->setLoc(FileLineColLoc::get(&context, "op", ops.size(), 0));
      ops.push_back(op);
    });
  }

  Operation *getOp(Location loc) {
    return ops[cast<FileLineColLoc>(loc).getLine()];
  }

  /// The command that the verifier reports, with that of its note.
  std::optional<HappensBefore::Pair> verify(EntryOp entry) {
    HappensBefore::Pair found = {};
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      found.first = getOp(diagnostic.getLocation());
      for (Diagnostic &note : diagnostic.getNotes())
        found.second = getOp(note.getLocation());
      return success();
    });
    if (succeeded(verifyLanes(Order(entry))))
      return std::nullopt;
    return found;
  }

  /// Some interleavings, those in which one lane is always last among them.
  bool isExecuted(EntryOp entry, unsigned seed) {
    for (unsigned lane = 0; lane < entry.getLanes(); ++lane)
      if (!LaneSimulator(entry, seed).run({.last = int(lane)}))
        return false;
    for (unsigned round = 0; round < 3; ++round)
      if (!LaneSimulator(entry, seed + round).run({}))
        return false;
    return true;
  }

  /// Whether an interleaving goes wrong in which a command takes long that is
  /// one of the two, or nested in it: if neither precedes the other, all of the
  /// other may happen meanwhile.
  bool goesWrong(EntryOp entry, HappensBefore::Pair race, unsigned seed) {
    CommandList slow;
    for (Operation *each : {race.first, race.second})
      each->walk([&](CommandOpInterface command) { slow.push_back(command); });
    for (unsigned i = 0; i < kTries; ++i)
      for (Operation *command : slow)
        if (!LaneSimulator(entry, seed + i).run({.slow = command}))
          return true;
    return false;
  }

  /// Whether what is nested in the two orders them whenever it runs: as
  /// commands of their block they are in no order.
  bool areOrderedInside(EntryOp entry, HappensBefore::Pair race,
                        unsigned seed) {
    for (unsigned i = 0; i < kTries; ++i) {
      HappensBefore order(LaneSimulator(entry, seed + i).getCommands());
      for (auto [first, second] : order.findRaces())
        if ((race.first->isAncestor(first) &&
             race.second->isAncestor(second)) ||
            (race.first->isAncestor(second) && race.second->isAncestor(first)))
          return false;
    }
    return true;
  }

  /// Branches are taken, or not, at random.
  static constexpr unsigned kTries = 50;

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<Operation *> ops; ///< by their numbers
};

/// A wait that is out of its block as long as this lives.
class WithoutWait {
public:
  explicit WithoutWait(WaitOp wait)
      : wait(wait), block(wait->getBlock()), next(wait->getNextNode()) {
    wait->remove();
  }
  WithoutWait(const WithoutWait &) = delete;
  ~WithoutWait() {
    block->getOperations().insert(next ? Block::iterator(next) : block->end(),
                                  wait);
  }

private:
  WaitOp wait;
  Block *block;
  Operation *next;
};

TEST_F(LanesTest, PlansReuseNoBufferInFlight) {
  constexpr unsigned kPrograms = 1000;
  unsigned lanes[5] = {}, shared = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE(testing::Message() << "program " << seed);
    EntryOp entry = parse(makeRandomProgram(seed));
    ASSERT_TRUE(entry);
    ASSERT_TRUE(runPasses());
    ASSERT_LE(entry.getLanes(), 4u);
    ++lanes[entry.getLanes()];
    int64_t bytes = 0;
    entry.walk([&](BufferOp buffer) {
      bytes += buffer.getOffset() ? getArenaBytes(buffer) : 0;
    });
    shared += bytes > int64_t(*entry.getScratchBytes());
    ASSERT_TRUE(isExecuted(entry, seed));
  }
  EXPECT_GT(lanes[2], kPrograms / 20);
  EXPECT_GT(lanes[3], kPrograms / 20);
  EXPECT_GT(lanes[4], kPrograms / 20);
  EXPECT_GT(shared, kPrograms * 9 / 10); // else there is nothing to go wrong
}

TEST_F(LanesTest, SimulatorFindsWhatPlansByPositionsShare) {
  unsigned found = 0, reported = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    EntryOp entry = parse(makeRandomProgram(seed));
    ASSERT_TRUE(entry && runPasses());
    LiveRanges::Scratch scratch = LiveRanges(entry).getScratch();
    for (Allocation &allocation : scratch.allocations)
      allocation.unordered = nullptr;
    Placement placement = placeAllocations(scratch.allocations);
    entry.setScratchBytes(placement.size);
    for (auto [buffer, offset] : llvm::zip(scratch.buffers, placement.offsets))
      buffer.setOffset(offset);
    bool isRight = isExecuted(entry, seed);
    std::optional<HappensBefore::Pair> race = verify(entry);
    found += !isRight;
    reported += race.has_value();
    ASSERT_TRUE(isRight || race) << "program " << seed;
    ASSERT_TRUE(!race || goesWrong(entry, *race, seed) ||
                areOrderedInside(entry, *race, seed))
        << "program " << seed;
  }
  EXPECT_GT(found, 20u);
  EXPECT_GE(reported, found);
}

/// The edge of a wait that others do not imply is missed, with two commands:
/// two that use the same bytes in no order; else one that may begin before its
/// block or end after it, and one of lane 0. If there is neither, it does no
/// harm.
TEST_F(LanesTest, VerifierReportsWaitsThatAreMissing) {
  unsigned removed = 0, implied = 0, races = 0, wrong = 0, loose = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    EntryOp entry = parse(makeRandomProgram(seed));
    ASSERT_TRUE(entry && runPasses());
    SmallVector<WaitOp> waits;
    entry.walk([&](WaitOp wait) { waits.push_back(wait); });
    for (auto [number, wait] : llvm::enumerate(waits)) {
      SCOPED_TRACE(testing::Message()
                   << "program " << seed << ", wait " << number);
      HappensBefore left(getCommands(*wait->getBlock()), wait);
      bool isImplied = left.precedes(wait.getMarked(), wait);
      std::set<HappensBefore::Pair> unordered = left.findRaces();
      std::set<Operation *> freeCommands = left.findLoose();
      WithoutWait without(wait);
      std::optional<HappensBefore::Pair> report = verify(entry);
      ++removed;
      implied += isImplied;
      races += !unordered.empty();
      loose += unordered.empty() && report;
      ASSERT_EQ(report.has_value(),
                !unordered.empty() || !freeCommands.empty());
      ASSERT_FALSE(report && isImplied);
      if (!unordered.empty()) {
        ASSERT_TRUE(unordered.contains(*report));
        bool isWrong = goesWrong(entry, *report, seed);
        ASSERT_TRUE(isWrong || areOrderedInside(entry, *report, seed));
        wrong += isWrong;
      } else if (report) {
        ASSERT_TRUE(freeCommands.contains(report->first));
        ASSERT_TRUE(report->second);
        ASSERT_EQ(cast<CommandOpInterface>(report->second).getLane(), 0u);
      } else {
        ASSERT_TRUE(isExecuted(entry, seed));
      }
    }
  }
  EXPECT_GT(removed, 1000u);
  EXPECT_GT(implied, 10u);
  EXPECT_GT(races, removed / 3);
  EXPECT_GT(wrong, races * 99 / 100);
  EXPECT_GT(loose, 10u);
  RecordProperty("removed", int(removed));
  RecordProperty("implied", int(implied));
  RecordProperty("races", int(races));
  RecordProperty("wrong", int(wrong));
  RecordProperty("loose", int(loose));
}

} // namespace

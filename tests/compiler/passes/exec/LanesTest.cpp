//===- LanesTest.cpp - Plans of random programs with lanes ----------------===//
//
// Programs of launches, copies, collectives, branches and loops get lanes and a
// plan. A simulator that knows nothing of orders and live ranges runs the lanes
// in any way that waits allow, on an arena whose every unit has a tag of who
// wrote it: what a command reads must be what the program's order says.
//
//===----------------------------------------------------------------------===//
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
    return succeeded(pm.run(*module));
  }

  /// How many commands the report of a race names; 0 if there is none.
  int countRacers(EntryOp entry) {
    int count = 0;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      count = 1 + int(llvm::range_size(diagnostic.getNotes()));
      return success();
    });
    return failed(verifyLanes(Order(entry))) ? count : 0;
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

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
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
    int racers = countRacers(entry);
    found += !isRight;
    reported += racers == 2;
    ASSERT_TRUE(isRight || racers == 2) << "program " << seed;
  }
  EXPECT_GT(found, 20u);
  EXPECT_GE(reported, found);
}

/// Those of other lanes than lane 0 are there for a reason each. One of lane 0
/// may be implied by another that follows. What is not reported does no harm.
TEST_F(LanesTest, VerifierReportsWaitsThatAreMissing) {
  unsigned removed = 0, races = 0, wrong = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "program " << seed);
    EntryOp entry = parse(makeRandomProgram(seed));
    ASSERT_TRUE(entry && runPasses());
    SmallVector<WaitOp> waits;
    entry.walk([&](WaitOp wait) { waits.push_back(wait); });
    for (WaitOp wait : waits) {
      // On the lane of what is waited for it waits for nothing.
      uint64_t lane = wait.getLane();
      wait.setLane(cast<CommandOpInterface>(*wait.getMarked()).getLane());
      int racers = countRacers(entry);
      bool isRight = isExecuted(entry, seed);
      EXPECT_TRUE(racers > 0 || (isRight && lane == 0));
      ++removed;
      races += racers == 2;
      wrong += !isRight;
      wait.setLane(lane);
    }
  }
  EXPECT_GT(removed, 1000u);
  EXPECT_GT(races, removed / 3);
  EXPECT_GT(wrong, removed / 4);
  RecordProperty("removed", int(removed));
  RecordProperty("races", int(races));
  RecordProperty("wrong", int(wrong));
}

} // namespace

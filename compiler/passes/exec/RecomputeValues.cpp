//===- RecomputeValues.cpp - Keep entry points within a budget ------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/recompute/Frontier.h"
#include "compiler/passes/exec/recompute/Rewrite.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_RECOMPUTEVALUESPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct RecomputeValuesPass
    : impl::RecomputeValuesPassBase<RecomputeValuesPass> {
  using RecomputeValuesPassBase::RecomputeValuesPassBase;
  void runOnOperation() override;
};

/// One entry point against the budget.
class EntryFitter {
public:
  EntryFitter(EntryOp entry, const Trace &trace, int64_t budget)
      : entry(entry), trace(trace), simulation(trace), budget(budget) {}

  /// Replaces the entry. If no choice needs as little as the budget, keeps it
  /// and tells what is needed.
  LogicalResult run(DecisionLog &log);

  std::optional<int64_t> needed;
  std::string inTheWay; ///< names of nodes with bytes

private:
  FailureOr<int64_t> plan(const Choice &choice);
  void apply(const FrontierPoint &point, DecisionLog &log);
  LogicalResult findNeeded(ArrayRef<FrontierPoint> frontier, DecisionLog &log);
  void nameTensors();

  EntryOp entry;
  const Trace &trace;
  Simulation simulation;
  int64_t budget;
  /// Of next values of states, those that `budget` leaves room for: with all
  /// values kept they are not written over the current ones either.
  int64_t nextBytes = INT64_MAX;
  double leastMicroseconds = 0;
};

} // namespace

/// A module with a copy of the kernels of `entry`, one for each of its
/// launches.
static OwningOpRef<ModuleOp> copyKernels(EntryOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> copy = ModuleOp::create(entry.getLoc());
  (*copy)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  SymbolTable kernels(module);
  llvm::StringSet<> copied;
  entry.walk([&](LaunchOp launch) {
    if (copied.insert(launch.getKernel()).second)
      copy->push_back(kernels.lookup(launch.getKernel())->clone());
  });
  return copy;
}

/// Bytes of the next values of states that are not written over the current.
static int64_t getNextBytes(EntryOp entry) {
  int64_t bytes = 0;
  for (auto buffer : entry.getBody().getOps<BufferOp>())
    if (buffer.getStorage() == StorageClass::state && buffer.getNext() &&
        !buffer.getInPlace())
      bytes += buffer.getBound();
  return bytes;
}

/// Bytes of the arena as the passes that follow plan it, and of states that
/// are no longer updated in place.
FailureOr<int64_t> EntryFitter::plan(const Choice &choice) {
  simulation.run(choice);
  OwningOpRef<ModuleOp> module = copyKernels(entry);
  EntryOp copy = buildEntry(trace, simulation, *module);
  PassManager pm(module->getContext());
  pm.enableVerifier(false); // of a copy that is thrown away
  pm.addPass(createScheduleCommandsPass());
  pm.addPass(createShareBuffersPass());
  pm.addPass(createPlanMemoryPass());
  if (failed(pm.run(*module)))
    return failure();
  int64_t next = getNextBytes(copy);
  nextBytes = std::min(nextBytes, next);
  return int64_t(*copy.getScratchBytes()) + next - nextBytes;
}

void EntryFitter::apply(const FrontierPoint &point, DecisionLog &log) {
  auto module = entry->getParentOfType<ModuleOp>();
  simulation.run(point.choice);
  buildEntry(trace, simulation, module)->moveBefore(entry);
  log.add(entry, "fitted",
          (entry.getSymName() + " computes values again").str(),
          {{"bytes", double(point.peak)},
           {"budget_bytes", double(budget)},
           {"microseconds", point.microseconds},
           {"microseconds_unbounded", leastMicroseconds}});
  for (const Step &step : simulation.getSteps()) {
    if (!step.isUnit)
      continue;
    const Unit &unit = trace.units[step.id];
    double bytes = 0;
    for (const Unit::Output &output : unit.outputs)
      bytes += double(output.bytes);
    log.add(trace.commands[unit.launch].op, "recomputed",
            unit.isWhole ? "the whole kernel" : "a part of the kernel",
            {{"bytes", bytes}, {"microseconds", unit.microseconds}});
  }
}

/// What is live at the peak of the last run, by the nodes that compute it, or
/// first use it where several write.
void EntryFitter::nameTensors() {
  constexpr size_t kMostNamed = 5;
  ArrayRef<int64_t> live = simulation.getLive();
  unsigned peak = llvm::max_element(live) - live.begin();
  llvm::MapVector<StringAttr, int64_t> bytes;
  llvm::DenseSet<InstanceId> named;
  for (const Step &step : simulation.getSteps()) {
    CommandId id = step.isUnit ? trace.units[step.id].launch : step.id;
    Operation *op = trace.commands[id].op;
    auto launch = dyn_cast<LaunchOp>(op);
    auto node = StringAttr::get(
        op->getContext(), launch ? launch.getNode().str() : getNodeName(op));
    for (InstanceId id :
         llvm::concat<const InstanceId>(step.writes, step.reads)) {
      if (id == kNone || !named.insert(id).second)
        continue;
      const Instance &instance = simulation.getInstances()[id];
      if (instance.begin <= peak && instance.end >= peak)
        bytes[node] += instance.bytes;
    }
  }
  auto rows = bytes.takeVector();
  llvm::sort(rows, [](auto &a, auto &b) {
    return std::pair(b.second, a.first.getValue()) <
           std::pair(a.second, b.first.getValue());
  });
  for (auto &[node, sum] : ArrayRef(rows).take_front(kMostNamed))
    inTheWay += (inTheWay.empty() ? "" : ", ") + node.str() + " (" +
                std::to_string(sum) + " bytes)";
}

/// How much less than was counted a plan may need: scratch that lies in
/// outputs.
static int64_t getSlack(const FrontierPoint &point) {
  constexpr int64_t kParts = 40;
  return point.peak / kParts;
}

LogicalResult EntryFitter::findNeeded(ArrayRef<FrontierPoint> frontier,
                                      DecisionLog &log) {
  for (const FrontierPoint &point : llvm::reverse(frontier)) {
    if (needed && point.peak >= *needed)
      break;
    FailureOr<int64_t> bytes = plan(point.choice);
    if (failed(bytes))
      return failure();
    // A point is only tried where its peak about fits.
    needed = std::min(needed.value_or(INT64_MAX),
                      std::max(*bytes, point.peak - getSlack(point)));
  }
  simulation.run(frontier.back().choice);
  nameTensors();
  log.add(entry, "refused", (entry.getSymName() + " needs more").str(),
          {{"bytes", double(*needed)}});
  return success();
}

LogicalResult EntryFitter::run(DecisionLog &log) {
  std::vector<FrontierPoint> frontier = findFrontier(trace);
  leastMicroseconds = frontier.front().microseconds;
  for (const FrontierPoint &point : frontier)
    log.add(
        entry, "possible", (entry.getSymName() + " at a smaller peak").str(),
        {{"bytes", double(point.peak)}, {"microseconds", point.microseconds}});
  Choice keepAll;
  keepAll.isDropped.assign(trace.values.size(), false);
  if (getNextBytes(entry) > 0 && failed(plan(keepAll)))
    return failure();
  for (const FrontierPoint &point : frontier) {
    if (point.peak - getSlack(point) > budget)
      continue;
    FailureOr<int64_t> bytes = plan(point.choice);
    if (failed(bytes))
      return failure();
    if (*bytes > budget)
      continue;
    apply(point, log);
    entry.erase();
    return success();
  }
  return findNeeded(frontier, log);
}

static void eraseUnlaunched(ModuleOp module) {
  llvm::StringSet<> launched;
  module.walk([&](LaunchOp launch) { launched.insert(launch.getKernel()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
    if (!launched.contains(kernel.getSymName()))
      kernel.erase();
}

void RecomputeValuesPass::runOnOperation() {
  DecisionLog log(getOperation(), "recompute-values");
  fusion::CostModel host(getOperation());
  fusion::CostModel device(getOperation(), fusion::Machine::getDevice());
  int64_t needed = 0;
  std::string inTheWay;
  SmallVector<EntryOp> entries(getOperation().getOps<EntryOp>());
  for (EntryOp entry : entries) {
    if (entry.getSymName() == "prepare") // runs when nothing else does
      continue;
    Trace trace(entry, host, device);
    EntryFitter fitter(entry, trace, budget - fixed);
    if (failed(fitter.run(log)))
      return signalPassFailure();
    if (fitter.needed.value_or(0) > needed) {
      needed = *fitter.needed;
      inTheWay = "@" + entry.getSymName().str() + ": " + fitter.inTheWay;
    }
  }
  eraseUnlaunched(getOperation());
  if (needed == 0)
    return;
  emitError(UnknownLoc::get(&getContext()))
      << "does not fit into " << int64_t(budget)
      << " bytes; the smallest budget is " << fixed + needed
      << " bytes, of which " << int64_t(fixed)
      << " are no arena; the largest in " << inTheWay;
  signalPassFailure();
}

} // namespace tcc

//===- RecomputeValues.cpp - Keep entry points within a budget ------------===//
#include "compiler/passes/exec/RecomputeValues.h"

#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/recompute/Frontier.h"
#include "compiler/passes/exec/recompute/Rewrite.h"
#include "dialects/graph/NodeNames.h"
#include "runtime/package/Names.h"

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
  EntryFitter(EntryOp entry, const Trace &trace, int64_t budget,
              DecisionLog &log)
      : entry(entry), trace(trace), simulation(trace), budget(budget),
        log(log) {}

  /// Replaces the entry. If no choice needs as little as the budget, keeps it
  /// and tells what is needed.
  FailureOr<EntryRecompute> run();

private:
  /// Logs a decision about the entry, at `op`.
  void note(Operation *op, StringRef decision, StringRef reason,
            ArrayRef<std::pair<StringRef, double>> numbers) {
    log.add(op, decision, reason, numbers, entry.getSymName());
  }
  FailureOr<int64_t> plan(const Choice &choice);
  void apply(const FrontierPoint &point);
  FailureOr<int64_t> findNeeded(ArrayRef<FrontierPoint> frontier);
  std::string nameTensors() const;

  EntryOp entry;
  const Trace &trace;
  Simulation simulation;
  int64_t budget;
  /// Bytes of the next values of states that `budget` leaves room for: with all
  /// values kept they are not written over the current ones either.
  int64_t nextBytes = INT64_MAX;
  EntryRecompute result;
  DecisionLog &log;
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
  addMemoryPlan(pm);
  if (failed(pm.run(*module)))
    return failure();
  int64_t next = getNextBytes(copy);
  nextBytes = std::min(nextBytes, next);
  return int64_t(*copy.getScratchBytes()) + next - nextBytes;
}

void EntryFitter::apply(const FrontierPoint &point) {
  auto module = entry->getParentOfType<ModuleOp>();
  simulation.run(point.choice);
  buildEntry(trace, simulation, module)->moveBefore(entry);
  result.chosen = {point.peak, point.microseconds};
  note(entry, "fitted", (entry.getSymName() + " computes values again").str(),
       {{"bytes", double(point.peak)},
        {"budget_bytes", double(budget)},
        {"microseconds", point.microseconds},
        {"microseconds_unbounded", result.keptMicroseconds}});
  for (const Step &step : simulation.getSteps()) {
    if (!step.isUnit)
      continue;
    const Unit &unit = trace.units[step.id];
    Operation *launch = trace.commands[unit.launch].op;
    const char *what =
        unit.isWhole ? "the whole kernel" : "a part of the kernel";
    int64_t bytes = 0;
    for (const Unit::Output &output : unit.outputs)
      bytes += output.bytes;
    note(launch, "recomputed", what,
         {{"bytes", double(bytes)}, {"microseconds", unit.microseconds}});
    result.recomputed.push_back(
        {getNodeName(launch), what, bytes, unit.microseconds});
  }
}

/// What is live at the peak of the last run, by the nodes that compute it, or
/// first use it where several write.
std::string EntryFitter::nameTensors() const {
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
      const LiveRange &instance = simulation.getInstances()[id];
      if (instance.begin <= peak && instance.end >= peak)
        bytes[node] += instance.bytes;
    }
  }
  auto rows = bytes.takeVector();
  llvm::sort(rows, [](auto &a, auto &b) {
    return std::pair(b.second, a.first.getValue()) <
           std::pair(a.second, b.first.getValue());
  });
  std::string names;
  for (auto &[node, sum] : ArrayRef(rows).take_front(kMostNamed))
    names += (names.empty() ? "" : ", ") + node.str() + " (" +
             std::to_string(sum) + " bytes)";
  return names;
}

/// How much less than was counted a plan may need: scratch that lies in
/// outputs.
static int64_t getSlack(const FrontierPoint &point) {
  constexpr int64_t kParts = 40;
  return point.peak / kParts;
}

/// Bytes of the smallest plan; leaves the simulation at the choice that was
/// counted with the fewest.
FailureOr<int64_t> EntryFitter::findNeeded(ArrayRef<FrontierPoint> frontier) {
  std::optional<int64_t> needed;
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
  note(entry, "refused", (entry.getSymName() + " needs more").str(),
       {{"bytes", double(*needed)}});
  return *needed;
}

FailureOr<EntryRecompute> EntryFitter::run() {
  std::vector<FrontierPoint> frontier = findFrontier(trace);
  result.entry = entry.getSymName().str();
  result.keptMicroseconds = frontier.front().microseconds;
  for (const FrontierPoint &point : frontier) {
    result.possible.push_back({point.peak, point.microseconds});
    note(entry, "possible", (entry.getSymName() + " at a smaller peak").str(),
         {{"bytes", double(point.peak)}, {"microseconds", point.microseconds}});
  }
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
    apply(point);
    entry.erase();
    return std::move(result);
  }
  FailureOr<int64_t> needed = findNeeded(frontier);
  if (failed(needed))
    return failure();
  result.neededBytes = *needed;
  result.inTheWay = nameTensors();
  return std::move(result);
}

static void eraseUnlaunched(ModuleOp module) {
  llvm::StringSet<> launched;
  module.walk([&](LaunchOp launch) { launched.insert(launch.getKernel()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
    if (!launched.contains(kernel.getSymName()))
      kernel.erase();
}

FailureOr<RecomputeResult> recomputeValues(ModuleOp module, int64_t budget) {
  DecisionLog log(module, "recompute-values");
  fusion::CostModels models(module);
  RecomputeResult result;
  SmallVector<EntryOp> entries(module.getOps<EntryOp>());
  for (EntryOp entry : entries) {
    // It runs when nothing else does.
    if (entry.getSymName() == format::nameOf(format::EntryKind::prepare))
      continue;
    Trace trace(entry, models);
    FailureOr<EntryRecompute> row =
        EntryFitter(entry, trace, budget, log).run();
    if (failed(row))
      return failure();
    result.entries.push_back(std::move(*row));
  }
  eraseUnlaunched(module);
  return std::move(result);
}

const EntryRecompute *RecomputeResult::getRefused() const {
  const EntryRecompute *refused = nullptr;
  for (const EntryRecompute &row : entries)
    if (!row.chosen && (!refused || row.neededBytes > refused->neededBytes))
      refused = &row;
  return refused;
}

int64_t RecomputeResult::getLeastBytes() const {
  int64_t least = 0;
  for (const EntryRecompute &row : entries)
    least = std::max(least, row.possible.back().bytes);
  return least;
}

double RecomputeResult::getShareOver(const RecomputeResult &kept) const {
  double share = 0;
  for (const EntryRecompute &row : entries) {
    auto own = llvm::find_if(kept.entries, [&](const auto &other) {
      return other.entry == row.entry;
    });
    if (row.chosen && own != kept.entries.end() && own->keptMicroseconds > 0)
      share =
          std::max(share, row.chosen->microseconds / own->keptMicroseconds - 1);
  }
  return share;
}

std::string describeRefusal(const EntryRecompute &refused, int64_t budget,
                            int64_t fixed) {
  return "does not fit into " + std::to_string(budget) +
         " bytes; the smallest budget is " +
         std::to_string(fixed + refused.neededBytes) + " bytes, of which " +
         std::to_string(fixed) + " are no arena; the largest in @" +
         refused.entry + ": " + refused.inTheWay;
}

void RecomputeValuesPass::runOnOperation() {
  FailureOr<RecomputeResult> result =
      recomputeValues(getOperation(), budget - fixed);
  if (failed(result))
    return signalPassFailure();
  const EntryRecompute *refused = result->getRefused();
  if (!refused)
    return;
  emitError(UnknownLoc::get(&getContext()))
      << describeRefusal(*refused, budget, fixed);
  signalPassFailure();
}

} // namespace tcc

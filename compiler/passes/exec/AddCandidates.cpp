//===- AddCandidates.cpp - Kernels by other plans -------------------------===//
#include "compiler/passes/exec/AddCandidates.h"

#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/LaunchCost.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/graph/fusion/Cost.h"
#include "compiler/target/Target.h"
#include "dialects/exec/KernelHash.h"
#include "dialects/graph/Shape.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_ADDCANDIDATESPASS
#include "compiler/passes/exec/Passes.h.inc"

std::string printPlan(DictionaryAttr plan) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  plan.print(stream);
  return text;
}

namespace {

/// Where kernels are launched, and how much of the time they take.
struct KernelUse {
  SmallVector<LaunchOp> launches;
  double share = 0; ///< of the entry point of which it takes most, but prepare
};

class CandidateAdder {
public:
  CandidateAdder(ModuleOp module, const CandidateRequest &request)
      : module(module), request(request), symbols(module),
        log(module, "add-candidates") {}
  LogicalResult run();
  const CandidateCounts &getCounts() const { return counts; }

private:
  void addUses(EntryOp entry);
  LogicalResult add(KernelOp kernel, const KernelUse &use);
  FailureOr<KernelInfo> plan(KernelOp kernel, DictionaryAttr attr) const;
  bool hasScratch(const KernelInfo &info, const KernelUse &use) const;
  FailureOr<DictionaryAttr> takeFastest(KernelOp kernel, const KernelUse &use,
                                        ArrayRef<DictionaryAttr> plans);

  ModuleOp module;
  const CandidateRequest &request;
  SymbolTable symbols;
  DecisionLog log;
  CandidateCounts counts;
  llvm::MapVector<Operation *, KernelUse> uses; // by kernel
};

struct AddCandidatesPass : impl::AddCandidatesPassBase<AddCandidatesPass> {
  using AddCandidatesPassBase::AddCandidatesPassBase;
  void runOnOperation() override {
    if (failed(addCandidates(getOperation(), {.plans = plans})))
      signalPassFailure();
  }
};

} // namespace

/// What `prepare` launches counts as little: it runs once, before anything
/// else.
void CandidateAdder::addUses(EntryOp entry) {
  SmallVector<int64_t> slots = getLargestSizes(entry);
  double all = 0;
  llvm::MapVector<Operation *, double> times;
  entry.walk([&](LaunchOp launch) {
    auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
    uses[kernel].launches.push_back(launch);
    double time = getMicroseconds(launch, kernel, slots);
    times[kernel] += time;
    all += time;
  });
  bool counts =
      entry.getSymName() != format::nameOf(format::EntryKind::prepare);
  for (auto [kernel, time] : times)
    if (counts && all > 0)
      uses[kernel].share = std::max(uses[kernel].share, time / all);
}

/// What the target says of the kernel by the plan, which it has from now on;
/// null: by the target's own.
FailureOr<KernelInfo> CandidateAdder::plan(KernelOp kernel,
                                           DictionaryAttr attr) const {
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  if (attr)
    fused->setAttr(kPlanAttr, attr);
  else
    fused->removeAttr(kPlanAttr);
  FailureOr<KernelInfo> info = getTarget(kernel).plan(fused);
  if (succeeded(info) && info->plan)
    fused->setAttr(kPlanAttr, info->plan);
  return info;
}

static int64_t getWorkerBytes(EntryOp entry) {
  return entry.getWorkerBytes().value_or(0);
}

bool CandidateAdder::hasScratch(const KernelInfo &info,
                                const KernelUse &use) const {
  return !request.keepsScratch || llvm::all_of(use.launches, [&](auto launch) {
    auto entry = launch->template getParentOfType<EntryOp>();
    return info.workerScratchBytes <= getWorkerBytes(entry);
  });
}

static void addScratch(const KernelInfo &info, const KernelUse &use) {
  for (LaunchOp launch : use.launches) {
    auto entry = launch->getParentOfType<EntryOp>();
    entry.setWorkerBytes(
        std::max<int64_t>(getWorkerBytes(entry), info.workerScratchBytes));
  }
}

/// The plan that the kernel has then: its own, or the fastest one known.
FailureOr<DictionaryAttr>
CandidateAdder::takeFastest(KernelOp kernel, const KernelUse &use,
                            ArrayRef<DictionaryAttr> plans) {
  auto own = kernel.getComputation()->getAttrOfType<DictionaryAttr>(kPlanAttr);
  std::string fastest =
      request.findFastest ? request.findFastest(hashOf(kernel)) : "";
  if (fastest.empty())
    return own;
  if (fastest == printPlan(own)) {
    ++counts.known;
    return own;
  }
  LaunchOp launch = use.launches.front();
  auto found = llvm::find_if(
      plans, [&](DictionaryAttr plan) { return printPlan(plan) == fastest; });
  if (found == plans.end()) {
    log.add(launch, "kept", "the target has no such plan: " + fastest);
    return own;
  }
  FailureOr<KernelInfo> info = plan(kernel, *found);
  if (succeeded(info) && !hasScratch(*info, use)) {
    log.add(launch, "kept", "too much scratch for the budget: " + fastest);
    info = plan(kernel, own);
  } else if (succeeded(info)) {
    log.add(launch, "tuned", fastest);
    ++counts.known;
  }
  if (failed(info))
    return failure();
  addScratch(*info, use);
  for (LaunchOp each : use.launches)
    each.setTasks(
        graph::makeSizeMap(each.bind(info->tasks), module.getContext()));
  return info->plan;
}

LogicalResult CandidateAdder::add(KernelOp kernel, const KernelUse &use) {
  constexpr double kLeastShare = 0.01;
  auto fused = cast<graph::FusedOp>(kernel.getComputation());
  auto own = fused->getAttrOfType<DictionaryAttr>(kPlanAttr);
  if (!own)
    return success();
  FailureOr<KernelInfo> first = plan(kernel, nullptr);
  if (failed(first))
    return failure();
  fused->setAttr(kPlanAttr, own);
  SmallVector<DictionaryAttr> plans = {first->plan};
  llvm::append_range(plans, first->alternatives);
  FailureOr<DictionaryAttr> taken = takeFastest(kernel, use, plans);
  if (failed(taken))
    return failure();
  llvm::erase(plans, *taken);
  if (use.share < kLeastShare)
    return success();
  SmallVector<Attribute> names;
  SmallVector<AffineExpr> tasks;
  OpBuilder builder(kernel->getContext());
  builder.setInsertionPointAfter(kernel);
  for (DictionaryAttr other : plans) {
    if (int64_t(names.size()) + 1 >= request.plans)
      break;
    auto copy = cast<KernelOp>(builder.clone(*kernel));
    copy.setSymName(
        (kernel.getSymName() + "_plan" + Twine(names.size() + 1)).str());
    FailureOr<KernelInfo> info = plan(copy, other);
    if (failed(info))
      return failure();
    if (!hasScratch(*info, use)) {
      copy.erase();
      continue;
    }
    builder.setInsertionPointAfter(copy);
    symbols.insert(copy);
    addScratch(*info, use);
    names.push_back(FlatSymbolRefAttr::get(copy));
    tasks.push_back(info->tasks);
  }
  if (names.empty())
    return success();
  ++counts.withCandidates;
  kernel.setCandidatesAttr(builder.getArrayAttr(names));
  for (LaunchOp launch : use.launches) {
    SmallVector<AffineExpr> bound = llvm::map_to_vector(
        tasks, [&](AffineExpr expression) { return launch.bind(expression); });
    launch.setCandidateTasks(graph::makeSizeMap(bound, module.getContext()));
  }
  log.add(use.launches.front(), "added", "as many other plans may be faster",
          {{"plans", double(names.size())}, {"share", use.share}});
  return success();
}

LogicalResult CandidateAdder::run() {
  for (auto entry : module.getOps<EntryOp>())
    addUses(entry);
  for (auto &[kernel, use] : uses)
    if (failed(add(cast<KernelOp>(kernel), use)))
      return failure();
  return success();
}

FailureOr<CandidateCounts> addCandidates(ModuleOp module,
                                         const CandidateRequest &request) {
  CandidateAdder adder(module, request);
  if (failed(adder.run()))
    return failure();
  return adder.getCounts();
}

} // namespace tcc

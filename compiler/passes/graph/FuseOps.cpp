//===- FuseOps.cpp - Partition each block into kernels --------------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/fusion/Outline.h"
#include "compiler/passes/graph/fusion/Partition.h"
#include "dialects/graph/NodeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tcc::fusion;

namespace tcc {

#define GEN_PASS_DEF_FUSEOPSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct FuseOpsPass : impl::FuseOpsPassBase<FuseOpsPass> {
  using FuseOpsPassBase::FuseOpsPassBase;
  void runOnOperation() override;
};

} // namespace

/// Blocks that hold tensor code, inner ones first: what an inner block reads
/// from outside is then known.
static SmallVector<Block *> collectBlocks(func::FuncOp function) {
  SmallVector<Block *> blocks;
  function->walk<WalkOrder::PostOrder>([&](Block *block) {
    if (!isa<graph::FusedOp>(block->getParentOp()))
      blocks.push_back(block);
  });
  return blocks;
}

/// What attention alone is made into, element by element: the value that its
/// kernel stores.
static Value followPointwise(Value value) {
  while (value.hasOneUse()) {
    Operation *reader = *value.user_begin();
    if (!isa<graph::PointwiseOpInterface>(reader) ||
        reader->getNumOperands() != 1)
      break;
    value = reader->getResult(0);
  }
  return value;
}

/// Who else reads rows that attention stores where a transpose moves them reads
/// them there: they are stored once.
static void readWhereStored(graph::KernelOpInterface op) {
  graph::KernelKind kind = op.getKernelKind();
  if (kind != graph::KernelKind::attention)
    return;
  Value value = followPointwise(op->getResult(0));
  auto moved = llvm::find_if(value.getUsers(), [&](Operation *reader) {
    return getStoreMap(reader, kind) &&
           reader->getBlock() == value.getParentBlock();
  });
  if (moved == value.user_end() || value.hasOneUse())
    return;
  Operation *move = *moved;
  if (!llvm::all_of(value.getUsers(), [&](Operation *reader) {
        return reader == move || isa<graph::PointwiseOpInterface>(reader);
      }))
    return;
  AffineMap map = getStoreMap(move, kind);
  move->moveAfter(value.getDefiningOp());
  OpBuilder builder(move->getContext());
  builder.setInsertionPointAfter(move);
  SmallVector<int64_t> permutation;
  for (AffineExpr axis : map.getResults())
    permutation.push_back(cast<AffineDimExpr>(axis).getPosition());
  Value back = builder.create<graph::TransposeOp>(
      move->getLoc(), move->getResult(0), permutation);
  value.replaceUsesWithIf(
      back, [&](OpOperand &use) { return use.getOwner() != move; });
}

/// The groups of `graph` in order, as they are now.
static std::vector<Step> makeSteps(KernelGraph &graph) {
  std::vector<Step> steps;
  for (GroupId group : graph.getOrder()) {
    Step &step = steps.emplace_back();
    for (OpId op : graph[group].members)
      step.members.push_back(graph.getOp(op));
    if (graph[group].isFixed)
      continue;
    step.results.assign(graph[group].results.begin(),
                        graph[group].results.end());
    step.region = graph[group].region;
  }
  return steps;
}

static void recordRefusals(KernelGraph &graph, DecisionLog &log) {
  for (const Refusal &refusal : explainPartition(graph)) {
    std::string reason =
        ("not with " + getNodeName(refusal.consumer) + ": " + refusal.reason)
            .str();
    SmallVector<std::pair<StringRef, double>> numbers{{"bytes", refusal.bytes}};
    if (refusal.microsecondsTogether > 0)
      numbers.append({{"microseconds_apart", refusal.microsecondsApart},
                      {"microseconds_together", refusal.microsecondsTogether}});
    log.add(refusal.producer, "not fused", reason, numbers);
  }
}

/// The nodes whose ops a kernel computes; a long list ends with a count.
static std::string listNodes(graph::FusedOp fused) {
  constexpr size_t kMaxListed = 8;
  llvm::SetVector<StringRef> names = getNodeNames(fused.getLoc());
  std::string list =
      llvm::join(names.getArrayRef().take_front(kMaxListed), ", ");
  if (names.size() > kMaxListed)
    list += " and " + std::to_string(names.size() - kMaxListed) + " more";
  return list;
}

static void recordKernels(ArrayRef<Step> steps, DecisionLog &log) {
  for (const Step &step : steps) {
    if (!step.region)
      continue;
    const Work &work = step.region->work;
    std::string reason =
        (graph::stringifyKernelKind(step.region->kind) + " kernel").str();
    if (std::string nodes = listNodes(step.fused); !nodes.empty())
      reason += " of " + nodes;
    log.add(
        step.fused, step.members.size() > 1 ? "fused" : "alone", reason,
        {{"ops", double(step.members.size())},
         {"bytes_read", work.bytesRead},
         {"bytes_written", work.bytesWritten},
         {"flops", work.flops + work.contractionFlops + work.libraryFlops}});
  }
}

static LogicalResult fuseBlock(Block &block, CostModel &model,
                               DecisionLog &log) {
  for (auto op : llvm::to_vector(block.getOps<graph::KernelOpInterface>()))
    readWhereStored(op);
  KernelGraph graph(block, model);
  if (failed(choosePartition(graph)))
    return failure();
  recordRefusals(graph, log);
  std::vector<Step> steps = makeSteps(graph);
  outlineSteps(block, steps);
  recordKernels(steps, log);
  return success();
}

void FuseOpsPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto fuse = [&](func::FuncOp function, DecisionLog &log) {
    CostModel model(module, getTarget(module));
    for (Block *block : collectBlocks(function))
      if (failed(fuseBlock(*block, model, log)))
        return failure();
    return success();
  };
  if (failed(forEachFunction(module, "fuse-ops", fuse)))
    signalPassFailure();
}

} // namespace tcc

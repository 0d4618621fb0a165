//===- ShareBuffers.cpp - Write results over inputs that are done ---------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/InPlace.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_SHAREBUFFERSPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct ShareBuffersPass : impl::ShareBuffersPassBase<ShareBuffersPass> {
  void runOnOperation() override;
};

} // namespace

/// The buffer of `value` if it is declared in the launch's block.
static BufferOp getOwnBuffer(Value value, LaunchOp launch) {
  auto buffer = value.getDefiningOp<BufferOp>();
  bool isOwn = buffer && buffer->getBlock() == launch->getBlock();
  return isOwn ? buffer : BufferOp();
}

static bool isDying(BufferOp input, LaunchOp launch) {
  return input.getStorage() == StorageClass::scratch &&
         getUses(input, launch->getBlock()).last == launch;
}

static bool isFirstWritten(BufferOp result, LaunchOp launch) {
  return (result.getStorage() == StorageClass::scratch ||
          result.getStorage() == StorageClass::output) &&
         getUses(result, launch->getBlock()).first == launch;
}

/// The position of an input whose buffer the result can take, or -1.
static int findInput(LaunchOp launch, graph::FusedOp fused, unsigned result) {
  for (auto [i, value] : llvm::enumerate(launch.getInputs())) {
    BufferOp input = getOwnBuffer(value, launch);
    if (input && isDying(input, launch) && canLieOver(launch, fused, result, i))
      return i;
  }
  return -1;
}

/// Adds to `kept` the buffers that are now declared too late.
static void shareResults(LaunchOp launch, graph::FusedOp fused,
                         llvm::SetVector<BufferOp> &kept, DecisionLog &log) {
  for (unsigned result = 0; result < launch.getOutputs().size(); ++result) {
    BufferOp buffer = getOwnBuffer(launch.getOutputs()[result], launch);
    if (!buffer || !isFirstWritten(buffer, launch))
      continue;
    int index = findInput(launch, fused, result);
    if (index < 0)
      continue;
    BufferOp input = getOwnBuffer(launch.getInputs()[index], launch);
    noteInPlace(fused, result, index);
    log.add(launch, "in place", "the input is not read afterwards",
            {{"bytes", double(buffer.getBound())}});
    // Of an output and scratch, the output stays.
    bool isOutput = buffer.getStorage() == StorageClass::output;
    BufferOp stays = isOutput ? buffer : input;
    BufferOp merged = isOutput ? input : buffer;
    kept.insert(stays);
    kept.remove(merged);
    merged.replaceAllUsesWith(stays.getResult());
    merged.erase();
  }
}

/// The buffers of one state.
struct StateBuffers {
  BufferOp current, next;
};

/// True if `next` may be written where `current` lies.
static bool canUpdateInPlace(StateBuffers state, Block *block,
                             const SymbolTable &kernels) {
  if (!state.current || !state.next ||
      state.current.getBytes() != state.next.getBytes())
    return false;
  Operation *lastRead = getUses(state.current, block).last;
  Operation *firstWrite = getUses(state.next, block).first;
  if (!lastRead || !firstWrite)
    return false;
  if (lastRead->isBeforeInBlock(firstWrite))
    return true;
  auto launch = dyn_cast<LaunchOp>(firstWrite);
  return launch && lastRead == firstWrite &&
         tryInPlace(launch, getComputation(launch, kernels), state.next,
                    state.current);
}

static void shareStates(EntryOp entry, const SymbolTable &kernels,
                        DecisionLog &log) {
  SmallVector<StateBuffers> states(entry.getStates().size());
  for (auto buffer : entry.getBody().getOps<BufferOp>())
    if (buffer.getStorage() == StorageClass::state) {
      StateBuffers &state = states[*buffer.getIndex()];
      (buffer.getNext() ? state.next : state.current) = buffer;
    }
  for (StateBuffers state : states) {
    if (!canUpdateInPlace(state, &entry.getBody().front(), kernels))
      continue;
    state.current.setInPlace(true);
    state.next.setInPlace(true);
    log.add(entry, "in place", "the state is not read after its update",
            {{"bytes", double(state.next.getBound())}});
  }
}

void ShareBuffersPass::runOnOperation() {
  DecisionLog log(getOperation(), "share-buffers");
  SymbolTable kernels(getOperation());
  for (auto entry : getOperation().getOps<EntryOp>()) {
    llvm::SetVector<BufferOp> kept;
    entry.walk([&](LaunchOp launch) {
      shareResults(launch, getComputation(launch, kernels), kept, log);
    });
    // Only now: each move has the order of a block's ops counted again.
    for (BufferOp buffer : kept)
      buffer->moveBefore(&buffer->getBlock()->front());
    shareStates(entry, kernels, log);
  }
}

} // namespace tcc

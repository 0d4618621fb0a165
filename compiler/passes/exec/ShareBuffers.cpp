//===- ShareBuffers.cpp - Write results over inputs that are done ---------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/InPlace.h"
#include "compiler/passes/exec/memory/LiveRanges.h"

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

namespace {

/// Shares the buffers of one entry point.
class BufferSharer {
public:
  BufferSharer(EntryOp entry, const SymbolTable &kernels, DecisionLog &log)
      : entry(entry), kernels(kernels), log(log), live(entry) {}

  void run();

private:
  int findInput(LaunchOp launch, graph::FusedOp fused, unsigned result) const;
  void shareResults(LaunchOp launch, graph::FusedOp fused);
  bool canUpdateInPlace(BufferOp current, BufferOp next) const;
  void shareStates();

  EntryOp entry;
  const SymbolTable &kernels;
  DecisionLog &log;
  LiveRanges live;
  llvm::SetVector<BufferOp> kept; ///< buffers that are now declared too late
};

} // namespace

/// The position of an input whose buffer the result can take, or -1.
int BufferSharer::findInput(LaunchOp launch, graph::FusedOp fused,
                            unsigned result) const {
  for (auto [i, value] : llvm::enumerate(launch.getInputs())) {
    BufferOp input = getOwnBuffer(value, launch);
    if (input && input.getStorage() == StorageClass::scratch &&
        live.isLastUse(input, launch) && canLieOver(launch, fused, result, i))
      return i;
  }
  return -1;
}

void BufferSharer::shareResults(LaunchOp launch, graph::FusedOp fused) {
  for (unsigned result = 0; result < launch.getOutputs().size(); ++result) {
    BufferOp buffer = getOwnBuffer(launch.getOutputs()[result], launch);
    if (!buffer ||
        (buffer.getStorage() != StorageClass::scratch &&
         buffer.getStorage() != StorageClass::output) ||
        !live.isFirstUse(buffer, launch))
      continue;
    int index = findInput(launch, fused, result);
    if (index < 0)
      continue;
    BufferOp input = getOwnBuffer(launch.getInputs()[index], launch);
    noteInPlace(fused, result, index);
    log.add(launch, "in place", "the input is not read afterwards",
            {{"bytes", double(buffer.getBound())}});
    // Where an output and scratch share, the output's buffer stays.
    bool isOutput = buffer.getStorage() == StorageClass::output;
    BufferOp stays = isOutput ? buffer : input;
    BufferOp merged = isOutput ? input : buffer;
    kept.insert(stays);
    kept.remove(merged);
    merged.replaceAllUsesWith(stays.getResult());
    merged.erase();
  }
}

/// True if `next` may be written where `current` lies: where that is read last,
/// or afterwards.
bool BufferSharer::canUpdateInPlace(BufferOp current, BufferOp next) const {
  if (!current || !next || current.getBytes() != next.getBytes())
    return false;
  Commands reads = getUses(current), writes = getUses(next);
  if (reads.empty() || writes.empty())
    return false;
  if (live.precede(reads, writes))
    return true;
  for (Operation *command : writes)
    if (auto launch = dyn_cast<LaunchOp>(command);
        launch && live.isFirstUse(next, launch) &&
        live.isLastUse(current, launch))
      return tryInPlace(launch, getComputation(launch, kernels), next, current);
  return false;
}

void BufferSharer::shareStates() {
  struct StateBuffers {
    BufferOp current, next;
  };
  SmallVector<StateBuffers> states(entry.getStates().size());
  for (auto buffer : entry.getBody().getOps<BufferOp>())
    if (buffer.getStorage() == StorageClass::state) {
      StateBuffers &state = states[*buffer.getIndex()];
      (buffer.getNext() ? state.next : state.current) = buffer;
    }
  for (StateBuffers state : states) {
    if (!canUpdateInPlace(state.current, state.next))
      continue;
    state.current.setInPlace(true);
    state.next.setInPlace(true);
    log.add(entry, "in place", "the state is not read after its update",
            {{"bytes", double(state.next.getBound())}});
  }
}

void BufferSharer::run() {
  entry.walk([&](LaunchOp launch) {
    shareResults(launch, getComputation(launch, kernels));
  });
  for (BufferOp buffer : kept)
    buffer->moveBefore(&buffer->getBlock()->front());
  shareStates();
}

void ShareBuffersPass::runOnOperation() {
  DecisionLog log(getOperation(), "share-buffers");
  SymbolTable kernels(getOperation());
  for (auto entry : getOperation().getOps<EntryOp>())
    BufferSharer(entry, kernels, log).run();
}

} // namespace tcc

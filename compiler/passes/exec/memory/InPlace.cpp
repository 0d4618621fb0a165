#include "compiler/passes/exec/memory/InPlace.h"

#include "compiler/codegen/Target.h"
#include "compiler/passes/exec/memory/Liveness.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tcc::exec {

Uses getUses(BufferOp buffer, Block *block) {
  Uses uses;
  for (Operation *command : getCommands(buffer)) {
    Operation *own = block->findAncestorOpInBlock(*command);
    if (!uses.first || own->isBeforeInBlock(uses.first))
      uses.first = own;
    if (!uses.last || uses.last->isBeforeInBlock(own))
      uses.last = own;
  }
  return uses;
}

graph::FusedOp getComputation(LaunchOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      launch->getParentOfType<EntryOp>(), launch.getKernelAttr());
  return cast<graph::FusedOp>(kernel.getComputation());
}

void noteInPlace(LaunchOp launch, unsigned result, unsigned input) {
  graph::FusedOp fused = getComputation(launch);
  Builder builder(launch.getContext());
  SmallVector<Attribute> pairs;
  if (auto old = fused->getAttrOfType<ArrayAttr>(codegen::kInPlaceAttr))
    llvm::append_range(pairs, old);
  pairs.push_back(builder.getDenseI64ArrayAttr({result, input}));
  fused->setAttr(codegen::kInPlaceAttr, builder.getArrayAttr(pairs));
}

bool tryInPlace(LaunchOp launch, Value result, Value input) {
  if (llvm::count(launch.getInputs(), input) != 1 ||
      llvm::count(launch.getOutputs(), result) != 1)
    return false;
  auto position = [](OperandRange range, Value value) {
    return std::distance(range.begin(), llvm::find(range, value));
  };
  unsigned to = position(launch.getOutputs(), result);
  unsigned from = position(launch.getInputs(), input);
  if (!codegen::canShareBuffer(getComputation(launch), to, from))
    return false;
  noteInPlace(launch, to, from);
  return true;
}

} // namespace tcc::exec

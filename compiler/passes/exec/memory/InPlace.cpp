#include "compiler/passes/exec/memory/InPlace.h"

#include "compiler/codegen/region/Sharing.h"
#include "compiler/target/Target.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tcc::exec {

graph::FusedOp getComputation(LaunchOp launch, const SymbolTable &kernels) {
  auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
  return cast<graph::FusedOp>(kernel.getComputation());
}

/// Whether result `result` may lie in the buffer of input `input`.
static bool canShare(graph::FusedOp fused, unsigned result, unsigned input) {
  const Target &target = getTarget(fused->getParentOfType<KernelOp>());
  return codegen::canShareBuffer(fused, result, input) &&
         target.canOverwrite(fused, result, input);
}

/// The buffer of `value` if it is no view, has none, and `launch` uses it once.
static BufferOp getWholeBuffer(Value value, LaunchOp launch) {
  auto buffer = value.getDefiningOp<BufferOp>();
  bool isWhole = buffer && llvm::count(launch->getOperands(), value) == 1 &&
                 llvm::none_of(buffer->getUsers(), llvm::IsaPred<ViewOp>);
  return isWhole ? buffer : BufferOp();
}

bool canLieOver(LaunchOp launch, graph::FusedOp computation, unsigned result,
                unsigned input) {
  BufferOp to = getWholeBuffer(launch.getOutputs()[result], launch);
  BufferOp from = getWholeBuffer(launch.getInputs()[input], launch);
  return to && from && to.getBytes() == from.getBytes() &&
         canShare(computation, result, input);
}

void noteInPlace(graph::FusedOp fused, unsigned result, unsigned input) {
  Builder builder(fused.getContext());
  SmallVector<Attribute> pairs;
  if (auto old = fused->getAttrOfType<ArrayAttr>(kInPlaceAttr))
    llvm::append_range(pairs, old);
  pairs.push_back(builder.getDenseI64ArrayAttr({result, input}));
  fused->setAttr(kInPlaceAttr, builder.getArrayAttr(pairs));
}

bool tryInPlace(LaunchOp launch, graph::FusedOp computation, Value result,
                Value input) {
  if (llvm::count(launch.getInputs(), input) != 1 ||
      llvm::count(launch.getOutputs(), result) != 1)
    return false;
  auto position = [](OperandRange range, Value value) {
    return std::distance(range.begin(), llvm::find(range, value));
  };
  unsigned to = position(launch.getOutputs(), result);
  unsigned from = position(launch.getInputs(), input);
  if (!canShare(computation, to, from))
    return false;
  noteInPlace(computation, to, from);
  return true;
}

} // namespace tcc::exec

#include "compiler/passes/exec/LaunchCost.h"

#include "compiler/target/Target.h"

using namespace mlir;

namespace tcc::exec {

fusion::Times getTimes(LaunchOp launch, KernelOp kernel,
                       ArrayRef<int64_t> slots) {
  auto count = [&](std::optional<AffineMap> amount) {
    return amount ? double(graph::evaluate(amount->getResult(0), slots)) : 0.0;
  };
  auto kind = cast<graph::FusedOp>(kernel.getComputation()).getKind();
  bool hasProducts = kind == graph::KernelKind::contraction ||
                     kind == graph::KernelKind::attention;
  double flops = count(launch.getFlops());
  fusion::Work work{.bytesRead = count(launch.getBytes())};
  if (kernel.getLibrary())
    work.libraryFlops = flops;
  else if (hasProducts)
    work.contractionFlops = flops;
  else
    work.flops = flops;
  return fusion::getTimes(work, getTarget(kernel).getMachine());
}

double getMicroseconds(LaunchOp launch, KernelOp kernel,
                       ArrayRef<int64_t> slots) {
  return getTimes(launch, kernel, slots).getAll();
}

SmallVector<int64_t> getLargestSizes(EntryOp entry) {
  SmallVector<int64_t> slots;
  auto module = entry->getParentOfType<ModuleOp>();
  for (graph::SymbolAttr symbol : graph::getSymbols(module))
    slots.push_back(symbol.getMax());
  slots.resize(std::max<size_t>(entry.getSlots(), slots.size()), 1);
  return slots;
}

} // namespace tcc::exec

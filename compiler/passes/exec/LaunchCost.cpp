#include "compiler/passes/exec/LaunchCost.h"

#include "compiler/target/Target.h"

using namespace mlir;

namespace tcc::exec {

format::Arithmetic getArithmetic(KernelOp kernel) {
  if (kernel.getLibrary())
    return format::Arithmetic::library_products;
  auto kind = cast<graph::FusedOp>(kernel.getComputation()).getKind();
  bool hasProducts = kind == graph::KernelKind::contraction ||
                     kind == graph::KernelKind::attention;
  return hasProducts ? format::Arithmetic::products
                     : format::Arithmetic::elements;
}

double getFlopsPerMicrosecond(const Machine &machine,
                              format::Arithmetic arithmetic) {
  switch (arithmetic) {
  case format::Arithmetic::elements:
    return machine.flopsPerMicrosecond;
  case format::Arithmetic::products:
    return machine.contractionFlopsPerMicrosecond;
  case format::Arithmetic::library_products:
    return machine.libraryFlopsPerMicrosecond;
  }
  llvm_unreachable("no other arithmetic");
}

fusion::Times getTimes(LaunchOp launch, KernelOp kernel,
                       ArrayRef<int64_t> slots) {
  auto count = [&](std::optional<AffineMap> amount) {
    return amount ? double(graph::evaluate(amount->getResult(0), slots)) : 0.0;
  };
  double flops = count(launch.getFlops());
  fusion::Work work{.bytesRead = count(launch.getBytes())};
  switch (getArithmetic(kernel)) {
  case format::Arithmetic::elements:
    work.flops = flops;
    break;
  case format::Arithmetic::products:
    work.contractionFlops = flops;
    break;
  case format::Arithmetic::library_products:
    work.libraryFlops = flops;
    break;
  }
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

#include "compiler/pipeline/Summary.h"

#include "dialects/exec/ExecOps.h"
#include "dialects/graph/Shape.h"

using namespace mlir;

namespace tcc {

void summarize(ModuleOp module, CompileReport &report) {
  llvm::SmallVector<int64_t> maxima;
  for (graph::SymbolAttr symbol : graph::getSymbols(module))
    maxima.push_back(symbol.getMax());
  auto kernels = module.getOps<exec::KernelOp>();
  report.kernels = std::distance(kernels.begin(), kernels.end());
  mlir::SymbolTable symbols(module);
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>()) {
    // The arena is shared. Work is that of one run, or of one training step.
    if (entry.getSymName() == "prepare")
      continue;
    report.arenaBytes = std::max<int64_t>(report.arenaBytes,
                                          entry.getScratchBytes().value_or(0));
    report.arenaBoundBytes = std::max<int64_t>(
        report.arenaBoundBytes, entry.getScratchBound().value_or(0));
    if (entry.getSymName() != "main" && entry.getSymName() != "train_step")
      continue;
    llvm::SmallVector<int64_t> slots = maxima;
    slots.resize(entry.getSlots(), 1);
    entry.walk([&](exec::LaunchOp launch) {
      ++report.launches;
      report.libraryCalls +=
          symbols.lookup<exec::KernelOp>(launch.getKernel()).isOfLibrary();
      if (auto flops = launch.getFlops())
        report.flops += graph::evaluate(flops->getResult(0), slots);
      if (auto bytes = launch.getBytes())
        report.bytes += graph::evaluate(bytes->getResult(0), slots);
    });
  }
}

} // namespace tcc

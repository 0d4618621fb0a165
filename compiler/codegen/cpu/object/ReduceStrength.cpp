#include "compiler/codegen/cpu/object/ReduceStrength.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopStrengthReduce.h"

using namespace llvm;

namespace {

/// Pointers that take about half of the 15 registers.
constexpr size_t kManyPointers = 7;
/// Vectors that a tile of a matrix sums up at least.
constexpr int64_t kManySums = 8;

class ReduceStrengthPass : public PassInfoMixin<ReduceStrengthPass> {
public:
  PreservedAnalyses run(Loop &loop, LoopAnalysisManager &analyses,
                        LoopStandardAnalysisResults &results,
                        LPMUpdater &updater);
};

} // namespace

/// The pointers from outside of `loop` that it reads or writes behind.
static size_t countPointers(const Loop &loop) {
  SmallPtrSet<const Value *, 16> pointers;
  for (const BasicBlock *block : loop.blocks())
    for (const Instruction &instruction : *block)
      if (auto *address = dyn_cast<GetElementPtrInst>(&instruction))
        if (loop.isLoopInvariant(address->getPointerOperand()))
          pointers.insert(address->getPointerOperand());
  return pointers.size();
}

/// The vectors that `loop` carries from one iteration to the next.
static int64_t countSums(const Loop &loop) {
  return count_if(loop.getHeader()->phis(), [](const PHINode &phi) {
    return phi.getType()->isVectorTy();
  });
}

PreservedAnalyses ReduceStrengthPass::run(Loop &loop,
                                          LoopAnalysisManager &analyses,
                                          LoopStandardAnalysisResults &results,
                                          LPMUpdater &updater) {
  if (!loop.isInnermost() || countSums(loop) < kManySums ||
      countPointers(loop) < kManyPointers)
    return PreservedAnalyses::all();
  return LoopStrengthReducePass().run(loop, analyses, results, updater);
}

void tcc::cpu::addStrengthReduction(PassBuilder &passes) {
  passes.registerOptimizerLastEPCallback([](ModulePassManager &modules,
                                            OptimizationLevel) {
    FunctionPassManager functions;
    functions.addPass(createFunctionToLoopPassAdaptor(ReduceStrengthPass()));
    modules.addPass(createModuleToFunctionPassAdaptor(std::move(functions)));
  });
}

#include "compiler/pipeline/Phases.h"

#include "compiler/lowering/Passes.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/graph/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace tcc {

void addSimplification(mlir::OpPassManager &pm) {
  pm.addPass(createSimplifyPass());
  pm.addPass(createRecognizeActivationsPass());
  pm.addPass(createRecognizeNormsPass());
  pm.addPass(createRecognizeSoftmaxPass());
  pm.addPass(createRecognizeAttentionPass());
  // Looks for batch norms, which have no kernel. They fold into plain weights;
  // panels are made of the folded ones.
  pm.addPass(createFoldBatchNormPass());
  pm.addPass(createDecomposePass());
  pm.addPass(createSimplifyPass());
  // Matches repeats in the form that simplify leaves.
  pm.addPass(createGroupHeadsPass());
  pm.addPass(createChannelsLastPass());
  pm.addPass(createPackWeightsPass());
  pm.addPass(createSplitPreparePass());
  pm.addPass(createSimplifyPass());
}

void addFusion(mlir::OpPassManager &pm) {
  // The addition that counts iterations is fused like any other op.
  pm.addPass(createCarryIterationPass());
  pm.addPass(createFuseOpsPass());
  pm.addPass(createVerifyFusionPass());
}

void addLowering(mlir::OpPassManager &pm) {
  pm.addPass(createLowerToExecPass());
}

void addPlanning(mlir::OpPassManager &pm) {
  pm.addPass(createScheduleCommandsPass());
  pm.addPass(createShareBuffersPass());
  // Which buffers are shared is part of what a kernel is, so equal kernels are
  // merged and described only now.
  pm.addPass(createMergeKernelsPass());
  pm.addPass(createSelectKernelsPass());
  pm.addPass(createPlanMemoryPass());
}

void registerPhases() {
  using mlir::PassPipelineRegistration;
  PassPipelineRegistration<>("tcc-phase-simplify", "the phase simplify",
                             addSimplification);
  PassPipelineRegistration<>("tcc-phase-fuse", "the phase fuse", addFusion);
  PassPipelineRegistration<>("tcc-phase-lower", "the phase lower", addLowering);
  PassPipelineRegistration<>("tcc-phase-plan", "the phase plan", addPlanning);
}

} // namespace tcc

#include "compiler/pipeline/Phases.h"

#include "compiler/lowering/Passes.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/graph/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace tcc {

static constexpr std::pair<Phase, llvm::StringLiteral> kNames[] = {
    {Phase::Import, "import"},
    {Phase::Recognize, "recognize"},
    {Phase::Differentiate, "differentiate"},
    {Phase::Simplify, "simplify"},
    {Phase::Fuse, "fuse"},
    {Phase::Lower, "lower"},
    {Phase::Plan, "plan"},
    {Phase::Codegen, "codegen"},
    {Phase::Package, "package"},
};

const std::vector<std::string> &getPhaseNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto &[phase, name] : kNames)
      result.push_back(name.str());
    return result;
  }();
  return names;
}

std::optional<Phase> findPhase(llvm::StringRef wanted) {
  for (const auto &[phase, name] : kNames)
    if (name == wanted)
      return phase;
  return std::nullopt;
}

void PhaseTimes::add(const PhaseTimes &others) {
  for (auto [phase, more] : others.seconds)
    add(phase, more);
}

std::vector<std::pair<std::string, double>> PhaseTimes::list() const {
  std::vector<std::pair<std::string, double>> rows;
  for (const auto &[phase, name] : kNames)
    if (auto found = seconds.find(phase); found != seconds.end())
      rows.emplace_back(name.str(), found->second);
  return rows;
}

PhaseTimer::~PhaseTimer() {
  using Seconds = std::chrono::duration<double>;
  times.add(phase, Seconds(std::chrono::steady_clock::now() - start).count());
}

/// After what recognises ops by their constants and types, before layouts: a
/// weight is converted once, whatever becomes of it then.
static void addPrecision(mlir::OpPassManager &pm, Target target,
                         const PrecisionRules &rules) {
  if (rules.type == Precision::F32)
    return;
  if (rules.type == Precision::F64)
    pm.addPass(createWidenFloatsPass());
  else
    pm.addPass(createMixPrecisionPass(
        {getName(rules.type), rules.keepF32, target == Target::Cuda}));
  // Nothing is stored otherwise in tf32.
  if (rules.type != Precision::TF32)
    pm.addPass(createSimplifyPass());
}

void addRecognition(mlir::OpPassManager &pm) {
  pm.addPass(createSimplifyPass());
  pm.addPass(createRecognizeActivationsPass());
  pm.addPass(createRecognizeNormsPass());
  pm.addPass(createRecognizeSoftmaxPass());
}

void addCleanup(mlir::OpPassManager &pm) { pm.addPass(createSimplifyPass()); }

void addWidening(mlir::OpPassManager &pm) {
  pm.addPass(createWidenFloatsPass());
  pm.addPass(createSimplifyPass());
}

void addDifferentiation(mlir::OpPassManager &pm,
                        const GradientRequest &gradients) {
  pm.addPass(createDifferentiatePass({gradients.of, gradients.wrt}));
  pm.addPass(createSimplifyPass());
}

/// Whether attention may have matrices of 16 bits, which tensor cores take.
static bool narrowsAttention(Target target, const PrecisionRules &rules) {
  return target == Target::Cuda &&
         (rules.type == Precision::BF16 || rules.type == Precision::F16);
}

void addAttentionForGradients(mlir::OpPassManager &pm, Target target,
                              const PrecisionRules &precision) {
  if (narrowsAttention(target, precision))
    pm.addPass(createRecognizeAttentionPass({/*fitsTensorCores=*/true}));
}

void addArithmetic(mlir::OpPassManager &pm, Target target,
                   const PrecisionRules &precision) {
  bool narrows = narrowsAttention(target, precision);
  pm.addPass(createRecognizeAttentionPass());
  // Looks for batch norms, which have no kernel. They fold into plain weights;
  // panels are made of the folded ones.
  pm.addPass(createFoldBatchNormPass());
  pm.addPass(createDecomposePass({/*awaitsPrecision=*/narrows}));
  pm.addPass(createSimplifyPass());
  // Matches repeats in the form that simplify leaves.
  pm.addPass(createGroupHeadsPass());
  addPrecision(pm, target, precision);
  if (narrows) {
    pm.addPass(createMergeAttentionPass());
    // What stayed wide.
    pm.addPass(createDecomposePass());
  }
}

void addSimplification(mlir::OpPassManager &pm, Target target,
                       const PrecisionRules &precision) {
  addArithmetic(pm, target, precision);
  pm.addPass(createChannelsLastPass());
  // Panels are what the CPU's matrix kernels read; a launch costs a GPU more
  // than slices do.
  if (target == Target::Cpu)
    pm.addPass(createPackWeightsPass());
  else
    pm.addPass(createMergeProductsPass());
  pm.addPass(createSplitPreparePass());
  pm.addPass(createSimplifyPass());
  // The CPU makes panels of parameters in each step, and rounds them there.
  if (target == Target::Cuda)
    pm.addPass(createKeepRoundedPass());
}

void addFusion(mlir::OpPassManager &pm, Target target) {
  if (target == Target::Cuda)
    pm.addPass(createSumOperandsPass());
  // Nothing simplifies the steps into one again.
  pm.addPass(createSplitReductionsPass());
  // The addition that counts iterations is fused like any other op.
  pm.addPass(createCarryIterationPass());
  pm.addPass(createFuseOpsPass({target == Target::Cuda}));
  pm.addPass(createVerifyFusionPass());
}

void addLowering(mlir::OpPassManager &pm, Target target) {
  pm.addPass(createLowerToExecPass({target == Target::Cuda}));
}

void addScheduling(mlir::OpPassManager &pm) {
  pm.addPass(createUpdateVariablesPass());
  pm.addPass(createScheduleCommandsPass());
}

void addRescheduling(mlir::OpPassManager &pm) {
  pm.addPass(createScheduleCommandsPass());
}

void addPlacement(mlir::OpPassManager &pm) {
  addMemoryPlan(pm);
  // Which buffers are shared is part of what a kernel is, so equal kernels are
  // merged and described only now.
  pm.addPass(createMergeKernelsPass());
  pm.addPass(createSelectKernelsPass());
  pm.addPass(createVerifyLanesPass());
}

void registerPhases() {
  using mlir::PassPipelineRegistration;
  PassPipelineRegistration<>("tcc-phase-recognize", "the phase recognize",
                             addRecognition);
  PassPipelineRegistration<>(
      "tcc-phase-simplify", "the phase simplify",
      [](mlir::OpPassManager &pm) { addSimplification(pm); });
  PassPipelineRegistration<>("tcc-phase-fuse", "the phase fuse",
                             [](mlir::OpPassManager &pm) { addFusion(pm); });
  PassPipelineRegistration<>("tcc-phase-lower", "the phase lower",
                             [](mlir::OpPassManager &pm) { addLowering(pm); });
  PassPipelineRegistration<>("tcc-phase-plan", "the phase plan",
                             [](mlir::OpPassManager &pm) {
                               addScheduling(pm);
                               addPlacement(pm);
                             });
}

} // namespace tcc

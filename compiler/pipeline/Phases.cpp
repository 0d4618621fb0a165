#include "compiler/pipeline/Phases.h"

#include "compiler/lowering/Passes.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/target/Passes.h"

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
static void addPrecision(mlir::OpPassManager &pm, const PrecisionRules &rules) {
  if (rules.type == Precision::F32)
    return;
  if (rules.type == Precision::F64)
    pm.addPass(createWidenFloatsPass());
  else
    pm.addPass(createMixPrecisionPass({getName(rules.type), rules.keepF32}));
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

/// Whether attention and its gradients may be of matrices of 16 bits.
static bool narrowsAttention(const Target &target,
                             const PrecisionRules &rules) {
  return target.getCapabilities().hasTensorAttention &&
         (rules.type == Precision::BF16 || rules.type == Precision::F16);
}

void addAttentionForGradients(mlir::OpPassManager &pm, const Target &target,
                              const PrecisionRules &precision) {
  if (narrowsAttention(target, precision))
    pm.addPass(createRecognizeAttentionPass({/*fitsTensorCores=*/true}));
}

void addArithmetic(mlir::OpPassManager &pm, const Target &target,
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
  addPrecision(pm, precision);
  if (narrows) {
    pm.addPass(createMergeAttentionPass());
    // What stayed wide.
    pm.addPass(createDecomposePass());
  }
}

void addSimplification(mlir::OpPassManager &pm, const Target &target,
                       const PrecisionRules &precision) {
  addArithmetic(pm, target, precision);
  pm.addPass(createChannelsLastPass());
  target.addPasses(pm, TargetStage::Layout);
  pm.addPass(createSplitPreparePass());
  pm.addPass(createSimplifyPass());
  target.addPasses(pm, TargetStage::Prepared);
}

void addFusion(mlir::OpPassManager &pm, const Target &target) {
  target.addPasses(pm, TargetStage::Fusion);
  // Nothing simplifies the steps into one again.
  pm.addPass(createSplitReductionsPass());
  // The addition that counts iterations is fused like any other op.
  pm.addPass(createCarryIterationPass());
  pm.addPass(createFuseOpsPass());
  pm.addPass(createVerifyFusionPass());
}

void addLowering(mlir::OpPassManager &pm) {
  pm.addPass(createLowerToExecPass());
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
  pm.addPass(createGeneralizeSizesPass());
  pm.addPass(createMergeKernelsPass());
  pm.addPass(createSelectKernelsPass());
  pm.addPass(createVerifyLanesPass());
}

namespace {

/// The options of a phase that asks the target for passes.
struct PhaseOptions : mlir::PassPipelineOptions<PhaseOptions> {
  Option<std::string> target{
      *this, "target", llvm::cl::desc("as of tcc's --target; none: the host"),
      llvm::cl::init("")};
};

} // namespace

/// Adds a phase for the target of that name, which tcc-set-target checks.
static void addFor(mlir::OpPassManager &pm, const PhaseOptions &options,
                   void (*addPhase)(mlir::OpPassManager &, const Target &)) {
  pm.addPass(createSetTargetPass({options.target}));
  const Target *target =
      options.target.empty() ? &getHostTarget() : findTarget(options.target);
  if (target)
    addPhase(pm, *target);
}

void registerPhases() {
  using mlir::PassPipelineRegistration;
  PassPipelineRegistration<>("tcc-phase-recognize", "the phase recognize",
                             addRecognition);
  PassPipelineRegistration<PhaseOptions>(
      "tcc-phase-simplify", "the phase simplify",
      [](mlir::OpPassManager &pm, const PhaseOptions &options) {
        addFor(pm, options, [](mlir::OpPassManager &pm, const Target &target) {
          addSimplification(pm, target, {});
        });
      });
  PassPipelineRegistration<PhaseOptions>(
      "tcc-phase-fuse", "the phase fuse",
      [](mlir::OpPassManager &pm, const PhaseOptions &options) {
        addFor(pm, options, addFusion);
      });
  PassPipelineRegistration<>("tcc-phase-lower", "the phase lower", addLowering);
  PassPipelineRegistration<>("tcc-phase-plan", "the phase plan",
                             [](mlir::OpPassManager &pm) {
                               addScheduling(pm);
                               addPlacement(pm);
                             });
}

} // namespace tcc

#include "compiler/pipeline/Build.h"

#include "compiler/passes/exec/AddCandidates.h"
#include "compiler/passes/graph/BindSymbols.h"
#include "compiler/passes/graph/Differentiate.h"
#include "compiler/pipeline/RunPasses.h"
#include "compiler/train/BuildSteps.h"
#include "compiler/train/Prologue.h"
#include "frontends/IndexRanges.h"
#include "runtime/base/CpuFeatures.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using tcc::runtime::Code;

namespace tcc {

namespace {

/// A program under way. Each phase gives why it ends here, if it does.
class Builder {
public:
  Builder(const Model &model, const Variant &variant, BuildResult &result)
      : model(model), variant(variant), result(result),
        messages(model.module.get().getContext(), model.path) {
    program.module = model.module.get().clone();
    program.variant = variant;
    setTarget(*program.module, *variant.target);
  }

  using PhaseFunction = std::optional<Refusal> (Builder::*)();
  std::optional<Refusal> differentiate();
  std::optional<Refusal> simplify();
  std::optional<Refusal> fuse();
  std::optional<Refusal> lower();
  std::optional<Refusal> plan();

  /// Moves what there is into the result.
  void finish(std::optional<Refusal> refusal);

private:
  std::optional<Refusal> takeSamples();
  std::optional<Refusal> buildTraining();
  std::optional<Refusal> recompute();
  std::optional<Refusal> chooseKernelPlans();
  std::optional<Refusal> checkBudget();
  Refusal takeRefusal(Code code, llvm::StringRef step) {
    return messages.takeRefusal(code, *program.module, step);
  }
  std::optional<Refusal>
  runPasses(llvm::function_ref<void(OpPassManager &)> addPasses, Code code) {
    return tcc::runPasses(*program.module, addPasses, code, messages);
  }

  const Model &model;
  const Variant &variant;
  BuildResult &result;
  Messages messages;
  PlannedProgram program;
};

/// The phases of a build, in order.
constexpr std::pair<Phase, Builder::PhaseFunction> kPhases[] = {
    {Phase::Differentiate, &Builder::differentiate},
    {Phase::Simplify, &Builder::simplify},
    {Phase::Fuse, &Builder::fuse},
    {Phase::Lower, &Builder::lower},
    {Phase::Plan, &Builder::plan},
};

} // namespace

// --- Differentiate ---

/// What was recognised with an open batch gets its samples. Another one is held
/// against them where the steps are built.
std::optional<Refusal> Builder::takeSamples() {
  if (!variant.samples || model.batch.empty())
    return std::nullopt;
  llvm::StringMap<int64_t> values;
  values[model.batch] = *variant.samples;
  if (failed(bindSymbols(*program.module, values)))
    return takeRefusal(Code::Usage, "bind-symbols");
  program.module->walk([](func::FuncOp main) { setIndexRanges(main); });
  return runPasses(addCleanup, Code::Internal);
}

/// Ops without a derivative are among the problems already.
std::optional<Refusal> Builder::buildTraining() {
  train::Recipe recipe = *variant.recipe;
  if (variant.samples)
    recipe.batch.takeMicro(*variant.samples);
  if (recipe.compute == Precision::F64)
    if (auto refusal = runPasses(addWidening, Code::Internal))
      return refusal;
  Problems problems(model.path);
  train::addPrologues(*program.module, recipe, problems);
  if (!problems.empty())
    return makeRefusal(problems);
  auto steps = train::buildSteps(*program.module, model.weights, recipe,
                                 variant.chunksLogits, problems);
  if (failed(steps))
    return problems.empty() ? takeRefusal(Code::Unsupported, "build-steps")
                            : makeRefusal(problems);
  result.parameters = std::move(steps->lines);
  llvm::append_range(messages.notes, steps->notes);
  result.hasChunks = steps->hasChunks;
  return std::nullopt;
}

std::optional<Refusal> Builder::differentiate() {
  const GradientRequest &gradients = variant.gradients;
  if (!variant.recipe && gradients.of.empty())
    return std::nullopt;
  if (auto refusal = takeSamples())
    return refusal;
  auto addAttention = [this](OpPassManager &pm) {
    addAttentionForGradients(pm, *variant.target, variant.precision);
  };
  if (auto refusal = runPasses(addAttention, Code::Internal))
    return refusal;
  if (variant.recipe)
    return buildTraining();
  for (const std::string &problem :
       findGradientProblems(*program.module, gradients.of, gradients.wrt))
    messages.problems.push_back(model.path + ": " + problem);
  if (!messages.problems.empty())
    return takeRefusal(Code::Usage, "differentiate");
  auto addPasses = [&](OpPassManager &pm) {
    addDifferentiation(pm, gradients);
  };
  return runPasses(addPasses, Code::Unsupported);
}

// --- From tensors to commands ---

std::optional<Refusal> Builder::simplify() {
  auto addPasses = [this](OpPassManager &pm) {
    addSimplification(pm, *variant.target, variant.precision);
  };
  return runPasses(addPasses, Code::Internal);
}

/// Fusion and the target refuse ops that have no kernel.
std::optional<Refusal> Builder::fuse() {
  auto addPasses = [this](OpPassManager &pm) {
    addFusion(pm, *variant.target);
  };
  return runPasses(addPasses, Code::Unsupported);
}

std::optional<Refusal> Builder::lower() {
  return runPasses(addLowering, Code::Internal);
}

// --- Plan ---

/// Leaves the arena what the budget has beside all else, as it is without one.
std::optional<Refusal> Builder::recompute() {
  OwningOpRef<ModuleOp> copy = program.module->clone();
  if (auto refusal =
          tcc::runPasses(*copy, addPlacement, Code::Unsupported, messages))
    return refusal;
  int64_t fixed =
      std::max(getMemoryPlan(*copy, variant.threads, false).getFixed(),
               getMemoryPlan(*copy, variant.threads, true).getFixed());
  fixed += variant.budget->reserved;
  FailureOr<RecomputeResult> recomputed =
      recomputeValues(*program.module, variant.budget->bytes - fixed);
  if (failed(recomputed))
    return takeRefusal(Code::Internal, "recompute-values");
  result.recomputed = std::move(*recomputed);
  result.leastBytes = fixed + result.recomputed.getLeastBytes();
  program.recomputedShare = result.recomputed.getShareOver(result.recomputed);
  if (const EntryRecompute *refused = result.recomputed.getRefused())
    return makeRefusal(
        Code::OutOfMemory,
        model.path + ": " +
            describeRefusal(*refused, variant.budget->bytes, fixed));
  return runPasses(addRescheduling, Code::Internal);
}

std::optional<Refusal> Builder::checkBudget() {
  int64_t needed = program.getBudgeted() + variant.budget->reserved;
  if (needed <= variant.budget->bytes)
    return std::nullopt;
  std::string problem = model.path + ": needs " + std::to_string(needed) +
                        " bytes, which is more than the memory budget";
  int64_t alone = program.memory.getBudgeted() + variant.budget->reserved;
  if (alone < needed)
    problem +=
        "; of one rank (parallel.data = 1) it needs " + std::to_string(alone);
  return makeRefusal(Code::OutOfMemory, problem);
}

/// Gives kernels plans that were measured, and others to measure.
std::optional<Refusal> Builder::chooseKernelPlans() {
  if (variant.candidates <= 1 && !variant.tunings)
    return std::nullopt;
  CandidateRequest request{.plans = variant.candidates,
                           .keepsScratch = variant.budget.has_value()};
  if (variant.tunings)
    request.findFastest = [this](llvm::StringRef hash) {
      return variant.tunings->findPlan(hash.str(), runtime::getCpuName(),
                                       variant.tunedThreads);
    };
  FailureOr<CandidateCounts> counts = addCandidates(*program.module, request);
  if (failed(counts))
    return takeRefusal(Code::Internal, "add-candidates");
  if (variant.tunings)
    messages.notes.push_back("the tune cache knows the fastest plans of " +
                             std::to_string(counts->known) + " kernels");
  if (variant.candidates > 1 && counts->withCandidates == 0)
    messages.notes.push_back(
        "no kernel has candidates: it takes matrix products of a CPU that are "
        "worth it");
  return std::nullopt;
}

std::optional<Refusal> Builder::plan() {
  if (auto refusal = runPasses(addScheduling, Code::Unsupported))
    return refusal;
  bool recomputes = !variant.recipe || variant.recipe->recomputes();
  if (variant.budget && recomputes)
    if (auto refusal = recompute())
      return refusal;
  if (auto refusal = runPasses(addPlacement, Code::Unsupported))
    return refusal;
  if (auto refusal = chooseKernelPlans())
    return refusal;
  ModuleOp planned = *program.module;
  program.memory = getMemoryPlan(planned, variant.threads, /*hasRanks=*/false);
  if (mayHaveRanks(planned))
    program.memoryOfRanks =
        getMemoryPlan(planned, variant.threads, /*hasRanks=*/true);
  return variant.budget ? checkBudget() : std::nullopt;
}

// --- The whole ---

void Builder::finish(std::optional<Refusal> refusal) {
  result.notes = std::move(messages.notes);
  if (!refusal) {
    result.outcome = std::move(program);
    return;
  }
  result.refused = std::move(program.module);
  result.outcome = std::move(*refusal);
}

BuildResult build(const Model &model, const Variant &variant, Phase last) {
  BuildResult result;
  Builder builder(model, variant, result);
  std::optional<Refusal> refusal;
  for (auto [phase, run] : kPhases) {
    if (refusal || phase > last)
      break;
    PhaseTimer timer(result.phases, phase);
    refusal = (builder.*run)();
  }
  builder.finish(std::move(refusal));
  return result;
}

} // namespace tcc

#include "compiler/pipeline/ReadModel.h"

#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/BindSymbols.h"
#include "compiler/pipeline/Batch.h"
#include "compiler/pipeline/RunPasses.h"
#include "compiler/pipeline/Weights.h"
#include "compiler/target/Target.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/NodeNames.h"
#include "frontends/IndexRanges.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using tcc::runtime::Code;

namespace tcc {

static FailureOr<Model> importFixed(const CompileOptions &options,
                                    const Variant &variant,
                                    MLIRContext *context, Problems &problems) {
  ImportOptions import = options.import;
  import.trains = variant.recipe.has_value();
  if (import.trains)
    import.minBatch = import.maxBatch = variant.recipe->batch.micro.value_or(1);
  return importModel(options.model, import, context, problems);
}

/// Importers refuse tensors beyond some size, so the range of an open batch is
/// the largest that they take. What is refused with few samples, too, has other
/// problems: it is not tried with the numbers between.
static FailureOr<Model> importOpen(const CompileOptions &options,
                                   const Variant &variant, MLIRContext *context,
                                   Problems &problems) {
  constexpr int64_t kFewSamples = 16, kFactor = 16;
  ImportOptions import = options.import;
  import.trains = true;
  auto attempt = [&](int64_t samples) {
    import.maxBatch = samples;
    problems = Problems(options.model);
    return importModel(options.model, import, context, problems);
  };
  int64_t most = std::min(variant.recipe->batch.global.value_or(kMostSamples),
                          kMostSamples);
  FailureOr<Model> model = attempt(most);
  if (succeeded(model) || most <= kFewSamples)
    return model;
  FailureOr<Model> few = attempt(kFewSamples);
  if (failed(few))
    return few;
  while (failed(model) && (most /= kFactor) > kFewSamples)
    model = attempt(most);
  return succeeded(model) ? std::move(model) : std::move(few);
}

/// What is wrong with the code that plugins bring for the target.
static void checkCode(const Model &model, const Target &target,
                      Problems &problems) {
  llvm::DenseSet<std::pair<Attribute, unsigned>> seen;
  model.module.get()->walk([&](graph::ExternalKernelOpInterface op) {
    graph::CustomKernelAttr kernel = op.findKernel(target.getName());
    if (!kernel && !op.hasDecomposition())
      problems.add(
          {ProblemClass::unsupported, getNodeName(op),
           getOrigin(op->getLoc()).op.str(),
           "has no kernel for " + target.getName().str() + ", and no body"});
    unsigned buffers = op->getNumOperands() + op->getNumResults();
    if (!kernel || !seen.insert({kernel, buffers}).second)
      return;
    for (auto code : kernel.getCodes().getAsRange<graph::CustomCodeAttr>())
      for (const std::string &problem : target.checkCode(op, code))
        problems.add({ProblemClass::badBytes, getNodeName(op),
                      getOrigin(op->getLoc()).op.str(),
                      ("kernel '" + kernel.getSymbol().getValue() + "' for " +
                       code.getMachine().getValue() + " " + problem)
                          .str()});
  });
}

static std::variant<Model, Refusal> import(const CompileOptions &options,
                                           const Variant &variant,
                                           MLIRContext *context) {
  Problems problems(options.model);
  FailureOr<Model> model =
      variant.searchesSamples()
          ? importOpen(options, variant, context, problems)
          : importFixed(options, variant, context, problems);
  if (succeeded(model))
    if (const Target *target = findTarget(options.target))
      checkCode(*model, *target, problems);
  if (failed(model) || !problems.empty())
    return makeRefusal(problems);
  if (options.weightsFile.empty())
    return std::move(*model);
  runtime::Status status = replaceWeights(*model, options.weightsFile);
  if (!status.ok())
    return makeRefusal(status);
  return std::move(*model);
}

static int64_t countOps(ModuleOp module) {
  int64_t ops = 0;
  module.walk([&](Operation *op) {
    ops += isa<graph::GraphDialect>(op->getDialect());
  });
  return ops;
}

/// Gives each variant its function, at its sizes.
static std::optional<Refusal> bindVariants(Model &model, Messages &messages) {
  if (model.variants.empty())
    return std::nullopt;
  if (failed(tcc::bindVariants(*model.module, model.variants)))
    return messages.takeRefusal(Code::Usage, *model.module, "bind-variants");
  for (auto main : model.module->getOps<func::FuncOp>())
    setIndexRanges(main);
  return std::nullopt;
}

ReadResult readModel(const CompileOptions &options, const Variant &variant,
                     MLIRContext *context, Phase last) {
  ReadResult result;
  Messages messages(context, options.model);
  {
    PhaseTimer timer(result.phases, Phase::Import);
    result.outcome = import(options, variant, context);
  }
  auto *model = std::get_if<Model>(&result.outcome);
  if (!model)
    return result;
  result.ops = countOps(*model->module);
  if (!options.recordsDecisions)
    stopRecording(*model->module);
  std::optional<Refusal> refusal = bindVariants(*model, messages);
  if (!refusal && last >= Phase::Recognize) {
    PhaseTimer timer(result.phases, Phase::Recognize);
    refusal =
        runPasses(*model->module, addRecognition, Code::Internal, messages);
  }
  llvm::append_range(result.notes, model->notes);
  llvm::append_range(result.notes, messages.notes);
  if (refusal)
    result.outcome = std::move(*refusal);
  return result;
}

} // namespace tcc

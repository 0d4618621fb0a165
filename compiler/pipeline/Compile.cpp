#include "tcc/compiler.h"

#include "compiler/codegen/cpu/ObjectEmitter.h"
#include "compiler/codegen/cuda/DeviceCode.h"
#include "compiler/pipeline/Batch.h"
#include "compiler/pipeline/Chunks.h"
#include "compiler/pipeline/GenerateCode.h"
#include "compiler/pipeline/Provenance.h"
#include "compiler/pipeline/ReadModel.h"
#include "compiler/pipeline/Register.h"
#include "compiler/pipeline/RunPasses.h"
#include "compiler/pipeline/Shadow.h"
#include "compiler/pipeline/Summary.h"
#include "compiler/pipeline/WriteText.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/GraphOps.h"
#include "frontends/Frontend.h"
#include "runtime/package/Names.h"

#include <thread>

using namespace mlir;
using namespace tcc;
using runtime::Code;
using runtime::Status;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllTccDialects(registry);
  cpu::registerCodeEmission(registry);
  cuda::registerDeviceCode(registry);
  return registry;
}

/// The last phase that the options ask for; nothing if they name none.
static std::optional<Phase> getLastPhase(const CompileOptions &options) {
  return options.stopAfter.empty() ? getPhaseOf(options.artifact)
                                   : findPhase(options.stopAfter);
}

// --- The program ---

/// Builds what the variant leaves to a search, and the rest as far as `last`.
static BuildResult chooseProgram(const Model &model, const Variant &variant,
                                 const std::string &recipeFile, Phase last) {
  if (last < Phase::Plan && !variant.searchesSamples())
    return build(model, variant, last);
  BuildResult planned = variant.searchesSamples()
                            ? buildLargestBatch(model, variant, recipeFile)
                            : buildFaster(model, variant);
  PlannedProgram *program = planned.getProgram();
  if (last >= Phase::Plan || !program)
    return planned;
  Variant found = variant;
  found.samples = program->samples;
  BuildResult built = build(model, found, last);
  built.notes = std::move(planned.notes);
  return built;
}

/// Of the steps with whole logits, before they are simplified.
static void comparePrecision(const Model &model, Variant variant,
                             int64_t samples, CompileReport &report) {
  if (variant.searchesSamples())
    variant.samples = samples;
  BuildResult built = build(model, variant, Phase::Differentiate);
  if (PlannedProgram *program = built.getProgram())
    reportShadow(*program->module, model.weights, variant.target,
                 variant.precision, report);
}

static void describePlan(const PlannedProgram &program, CompileReport &report) {
  report.memory = program.memory;
  report.recomputedShare = program.recomputedShare;
  summarize(*program.module, report);
  report.arenas = getArenaUses(*program.module);
}

// --- Output ---

static bool hasPrepare(ModuleOp module) {
  const char *name = format::nameOf(format::EntryKind::prepare);
  return module.lookupSymbol<exec::EntryOp>(name) != nullptr;
}

/// Code generation and the package, or as much of it as `last` says.
static std::optional<Refusal>
writePackage(ModuleOp module, const Model &model, const CompileOptions &options,
             const Machines &machines, CodeGenerator generator, Phase last,
             PhaseTimes &phases, Messages &messages, CompileReport &report) {
  FailureOr<GeneratedCode> code = failure();
  {
    PhaseTimer timer(phases, Phase::Codegen);
    code = generator.generate(hasPrepare(module) && options.import.readWeights);
  }
  if (failed(code))
    return messages.takeRefusal(Code::Unsupported);
  llvm::append_range(report.notes, code->notes);
  if (last == Phase::Codegen)
    return std::nullopt;
  PhaseTimer timer(phases, Phase::Package);
  package::PackageInputs inputs{module, model.weights, model.metadata,
                                std::move(code->variants)};
  inputs.host = code->host ? &*code->host : nullptr;
  inputs.embedWeights = options.import.readWeights;
  inputs.options = describeOptions(options, machines.cpus);
  inputs.decisions = describeDecisions(module);
  inputs.threads = generator.getJobs();
  uint64_t weightBytes = 0;
  Status status = package::writePackage(inputs, options.output, weightBytes);
  report.weightBytes = weightBytes;
  return status.ok() ? std::nullopt : std::optional(makeRefusal(status));
}

/// Writes what the options ask for of a program that was built as far as
/// `last` or to its plan.
static std::optional<Refusal> writeProgram(ModuleOp module, const Model &model,
                                           const CompileOptions &options,
                                           const Machines &machines, Phase last,
                                           PhaseTimes &phases,
                                           CompileReport &report) {
  Messages messages(module.getContext(), options.model);
  int cores = std::max(1u, std::thread::hardware_concurrency());
  CodeGenerator generator(module, options, machines,
                          options.jobs > 0 ? options.jobs : cores);
  std::optional<Refusal> refusal;
  if (last > Phase::Plan)
    refusal = writePackage(module, model, options, machines, generator, last,
                           phases, messages, report);
  else if (options.stopAfter.empty())
    refusal = writeText(module, options, generator, messages);
  llvm::append_range(report.notes, messages.notes);
  report.decisions = describeDecisions(module);
  return refusal;
}

// --- The whole ---

/// What there is when `refusal` ends a compilation is in the report.
static std::optional<Refusal> run(const CompileOptions &options,
                                  MLIRContext &context, PhaseTimes &phases,
                                  CompileReport &report) {
  std::optional<Phase> last = getLastPhase(options);
  if (!last)
    return makeRefusal(Code::Usage,
                       "no phase is named '" + options.stopAfter + "'");
  Machines machines;
  std::string problem = resolveMachines(options, machines);
  if (!problem.empty())
    return makeRefusal(Code::Usage, problem);
  auto variantOrRefusal = readVariant(options);
  if (auto *refusal = std::get_if<Refusal>(&variantOrRefusal))
    return std::move(*refusal);
  const auto &variant = std::get<Variant>(variantOrRefusal);

  ReadResult read = readModel(options, variant, &context, *last);
  llvm::append_range(report.notes, read.notes);
  phases.add(read.phases);
  report.ops = read.ops;
  if (auto *refusal = std::get_if<Refusal>(&read.outcome))
    return std::move(*refusal);
  const auto &model = std::get<Model>(read.outcome);
  if (*last <= Phase::Recognize)
    return std::nullopt;

  BuildResult built = chooseProgram(model, variant, options.recipeFile, *last);
  llvm::append_range(report.notes, built.notes);
  phases.add(built.phases);
  report.parameters = std::move(built.parameters);
  report.decisions = std::move(built.decisions);
  if (auto *refusal = std::get_if<Refusal>(&built.outcome))
    return std::move(*refusal);
  PlannedProgram &program = *built.getProgram();
  report.microBatch = program.samples;
  if (*last >= Phase::Plan)
    describePlan(program, report);
  if (options.comparesPrecision && *last >= Phase::Simplify)
    comparePrecision(model, variant, program.samples, report);
  return writeProgram(*program.module, model, options, machines, *last, phases,
                      report);
}

CompileReport tcc::compile(const CompileOptions &options) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  MLIRContext context(makeRegistry());
  // Threads of code generation must not load dialects.
  context.loadAllAvailableDialects();
  PhaseTimes phases;
  CompileReport report;
  if (auto refusal = run(options, context, phases, report)) {
    report.exitCode = int(refusal->code);
    report.problems = std::move(refusal->problems);
    report.reproducer = std::move(refusal->reproducer);
  }
  report.phases = phases.list();
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

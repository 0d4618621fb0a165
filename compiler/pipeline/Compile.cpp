#include "tcc/compiler.h"

#include "compiler/codegen/cache/CodeCache.h"
#include "compiler/codegen/cache/KernelKey.h"
#include "compiler/package/PackageBuilder.h"
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

#include "llvm/Support/Path.h"
#include <thread>

using namespace mlir;
using namespace tcc;
using runtime::Code;
using runtime::Status;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllTccDialects(registry);
  return registry;
}

/// The last phase that the options ask for; nothing if they name none.
static std::optional<Phase> getLastPhase(const CompileOptions &options) {
  return options.stopAfter.empty() ? getPhaseOf(options.artifact)
                                   : findPhase(options.stopAfter);
}

// --- The program ---

/// Builds what the variant leaves to a search, and the rest as far as `last`:
/// what is shown of a phase is what the package has of it.
static BuildResult chooseProgram(const Model &model, const Variant &variant,
                                 const std::string &recipeFile, Phase last) {
  bool searches = variant.searchesSamples() || variant.searchesChunks();
  if (last < Phase::Plan && !searches)
    return build(model, variant, last);
  BuildResult planned = variant.searchesSamples()
                            ? buildLargestBatch(model, variant, recipeFile)
                            : buildFaster(model, variant);
  PlannedProgram *program = planned.getProgram();
  // Phases of what does not fit can be looked at, unless it has no samples.
  if (last >= Phase::Plan || (!program && variant.searchesSamples()))
    return planned;
  BuildResult built = build(model, program ? program->variant : variant, last);
  if (program)
    built.notes = std::move(planned.notes);
  built.phases.add(planned.phases);
  return built;
}

/// Reports what low precision costs unsimplified steps with whole logits.
static void comparePrecision(const Model &model, Variant variant,
                             CompileReport &report) {
  variant.chunksLogits = false;
  BuildResult built = build(model, variant, Phase::Differentiate);
  if (PlannedProgram *program = built.getProgram())
    reportShadow(*program->module, model.weights, *variant.target,
                 variant.precision, report);
}

static void describePlan(const PlannedProgram &program, CompileReport &report) {
  report.memory = program.memory;
  report.memoryOfRanks = program.memoryOfRanks;
  report.recomputedShare = program.recomputedShare;
  summarize(*program.module, report);
  report.arenas = getArenaUses(*program.module);
  report.messages = getMessages(*program.module);
}

// --- Output ---

static bool hasPrepare(ModuleOp module) {
  const char *name = format::nameOf(format::EntryKind::prepare);
  return module.lookupSymbol<exec::EntryOp>(name) != nullptr;
}

namespace {

/// A program to write, as the options ask for, and where is told what came of
/// it.
struct Output {
  ModuleOp module;
  const Model &model;
  const CompileOptions &options;
  const Machines &machines;
  int64_t plannedBudget; ///< the most bytes of what is planned; 0: any
  const runtime::Tunings *tunings; ///< by which kernels were chosen, or null
  Phase last; ///< of the compilation; the program was built to it or its plan
  codegen::CodeCache *cache; ///< null without one
  PhaseTimes &phases;
  CompileReport &report;

  int getJobs() const {
    int cores = std::max(1u, std::thread::hardware_concurrency());
    return options.jobs > 0 ? options.jobs : cores;
  }
  CodeGenerator getGenerator() const {
    return {module, options, machines, {getJobs(), cache}};
  }
};

} // namespace

static FailureOr<GeneratedCode> generateCode(const Output &out) {
  PhaseTimer timer(out.phases, Phase::Codegen);
  FailureOr<GeneratedCode> code = out.getGenerator().generate(
      hasPrepare(out.module) && out.options.import.readWeights);
  if (succeeded(code))
    llvm::append_range(out.report.notes, code->notes);
  return code;
}

/// What came of the cache, whose size is kept.
static void finishCache(const Output &out) {
  if (!out.cache)
    return;
  out.cache->prune();
  out.report.cacheHits = out.cache->getHits();
  out.report.cacheMisses = out.cache->getMisses();
  if (std::string problem = out.cache->getProblem(); !problem.empty())
    out.report.notes.push_back("code is not kept for other compilations: " +
                               problem);
}

static Status writePackage(const Output &out, GeneratedCode code) {
  PhaseTimer timer(out.phases, Phase::Package);
  package::PackageInputs inputs{out.module, out.model.weights,
                                out.model.metadata, std::move(code.variants)};
  inputs.host = code.host ? &*code.host : nullptr;
  inputs.embedWeights = out.options.import.readWeights;
  inputs.options = describeOptions(out.options, out.machines, out.model.plugins,
                                   out.tunings);
  inputs.decisions = out.report.decisions;
  inputs.threads = out.getJobs();
  inputs.memoryBudget = out.plannedBudget;
  uint64_t weightBytes = 0;
  Status status =
      package::writePackage(inputs, out.options.output, weightBytes);
  out.report.weightBytes = weightBytes;
  return status;
}

static std::optional<Refusal> writeProgram(const Output &out) {
  Messages messages(ModuleOp(out.module).getContext(), out.options.model);
  std::optional<Refusal> refusal;
  FailureOr<GeneratedCode> code = failure();
  if (out.last > Phase::Plan) {
    code = generateCode(out);
    if (failed(code))
      refusal = messages.takeRefusal(Code::Unsupported, out.module, "codegen");
  } else if (out.options.stopAfter.empty()) {
    refusal = writeText(out.module, out.options, out.getGenerator(), messages);
  }
  finishCache(out);
  llvm::append_range(out.report.notes, messages.notes);
  // Code generation has its decisions, too.
  out.report.decisions = describeDecisions(out.module);
  if (refusal || out.last < Phase::Package)
    return refusal;
  Status status = writePackage(out, std::move(*code));
  return status.ok() ? std::nullopt : std::optional(makeRefusal(status));
}

// --- The whole ---

std::string tcc::getCacheFolder() {
  SmallString<128> folder;
  if (!llvm::sys::path::cache_directory(folder))
    return "";
  llvm::sys::path::append(folder, "tcc", "code");
  return std::string(folder);
}

/// A folder that cannot be used is a note where it was not asked for. Nor is it
/// made then if no code is.
static std::optional<Refusal>
openCache(const CompileOptions &options, Phase last,
          std::unique_ptr<codegen::CodeCache> &cache, CompileReport &report) {
  bool makesCode = last >= Phase::Codegen;
  if (options.cacheFolder.empty() || !(makesCode || options.requiresCache))
    return std::nullopt;
  auto opened = codegen::CodeCache::open(options.cacheFolder);
  std::string problem;
  if (!opened)
    problem = llvm::toString(opened.takeError());
  else if (!codegen::isCompilerKnown())
    problem = "the compiler's own file cannot be read";
  if (problem.empty()) {
    cache = std::move(*opened);
    return std::nullopt;
  }
  if (options.requiresCache)
    return makeRefusal(Code::Io, "--cache-dir: " + problem);
  report.notes.push_back("code is not kept for other compilations: " + problem);
  return std::nullopt;
}

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
  std::unique_ptr<codegen::CodeCache> cache;
  if (std::optional<Refusal> refusal = openCache(options, *last, cache, report))
    return refusal;
  auto variantOrRefusal = readVariant(options, *machines.target);
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
  if (*last <= Phase::Recognize) {
    report.decisions = describeDecisions(*model.module);
    return std::nullopt;
  }

  BuildResult built = chooseProgram(model, variant, options.recipeFile, *last);
  llvm::append_range(report.notes, built.notes);
  phases.add(built.phases);
  report.parameters = std::move(built.parameters);
  report.recomputes = std::move(built.recomputed.entries);
  if (auto *refusal = std::get_if<Refusal>(&built.outcome)) {
    if (built.refused)
      report.decisions = describeDecisions(*built.refused);
    return std::move(*refusal);
  }
  PlannedProgram &program = *built.getProgram();
  report.microBatch = program.variant.samples.value_or(0);
  if (*last >= Phase::Plan)
    describePlan(program, report);
  if (options.comparesPrecision && *last >= Phase::Simplify)
    comparePrecision(model, program.variant, report);
  int64_t budget = variant.budget ? variant.budget->getPlanned() : 0;
  return writeProgram({*program.module, model, options, machines, budget,
                       variant.tunings.get(), *last, cache.get(), phases,
                       report});
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

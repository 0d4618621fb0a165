#include "tcc/compiler.h"

#include "compiler/codegen/cpu/ObjectEmitter.h"
#include "compiler/codegen/cuda/DeviceCode.h"
#include "compiler/passes/exec/RecomputeValues.h"
#include "compiler/passes/graph/Differentiate.h"
#include "compiler/pipeline/Batch.h"
#include "compiler/pipeline/Budget.h"
#include "compiler/pipeline/GenerateCode.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/Provenance.h"
#include "compiler/pipeline/Register.h"
#include "compiler/pipeline/Shadow.h"
#include "compiler/pipeline/Summary.h"
#include "compiler/pipeline/Weights.h"
#include "compiler/train/BuildSteps.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/GraphOps.h"
#include "frontends/Frontend.h"
#include "runtime/package/Names.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>
#include <thread>

using namespace mlir;
using namespace tcc;
using runtime::Code;
using runtime::Status;

namespace {

/// One compilation: the state that its phases share.
class Compilation {
public:
  /// `samples` of one pass, where the recipe leaves them to the budget.
  explicit Compilation(const CompileOptions &options,
                       std::optional<int64_t> samples = std::nullopt);

  CompileReport run();

private:
  /// A phase by name; false ends the compilation.
  struct Phase {
    const char *name;
    bool (Compilation::*run)();
  };
  static const Phase kPhases[];
  friend const std::vector<std::string> &tcc::getPhaseNames();

  bool resolveTargets();
  bool readRecipe();
  bool runPhases();
  bool import();
  bool replaceWeights();
  bool recognize() { return runPasses(addRecognition, Code::Internal); }
  bool differentiate();
  bool buildTraining(bool inChunks);
  PrecisionRules getPrecision() const;
  bool simplify() {
    if (options.comparesPrecision)
      reportShadow(*model.module, model.weights, options.target, getPrecision(),
                   report);
    auto addPasses = [this](OpPassManager &pm) {
      addSimplification(pm, options.target, getPrecision());
    };
    return runPasses(addPasses, Code::Internal);
  }
  // Fusion and the target refuse ops that have no kernel.
  bool fuse() {
    auto add = [&](OpPassManager &pm) { addFusion(pm, options.target); };
    return runPasses(add, Code::Unsupported);
  }
  bool lower() {
    auto addPasses = [this](OpPassManager &pm) {
      addLowering(pm, options.target);
    };
    return runPasses(addPasses, Code::Internal);
  }
  bool readBudget();
  bool chooseBatch();
  BatchTrial tryBatch(int64_t samples);
  bool recompute();
  bool planInChunks();
  bool fitBudget();
  bool plan();
  bool generateCode();
  bool writePackage();

  /// `failureCode` is what a refusal of these passes means to the user.
  bool runPasses(llvm::function_ref<void(OpPassManager &)> addPasses,
                 Code failureCode);
  std::optional<Artifact> getArtifactAfter(llvm::StringRef phase) const;
  bool writeModule();
  bool writeText(llvm::StringRef text);
  bool fail(Code code, std::string problem);
  bool fail(const Status &status);
  bool fail(const Problems &problems);
  bool hasPrepare();
  int getThreads() const {
    return options.threads > 0 ? options.threads : cores;
  }

  const CompileOptions &options;
  CompileReport report;
  MLIRContext context;
  Machines machines;
  std::optional<train::Recipe> recipe;
  std::optional<Budget> budget;
  std::optional<int64_t> samples;
  int64_t leastBytes = 0; ///< of a plan with a budget, about
  RecomputeResult recomputed;
  Model model;
  /// Before steps were built, where logits can be computed in chunks.
  OwningOpRef<ModuleOp> untrained;
  GeneratedCode code;
  int cores, jobs;
};

} // namespace

const Compilation::Phase Compilation::kPhases[] = {
    {"import", &Compilation::import},
    {"recognize", &Compilation::recognize},
    {"differentiate", &Compilation::differentiate},
    {"simplify", &Compilation::simplify},
    {"fuse", &Compilation::fuse},
    {"lower", &Compilation::lower},
    {"plan", &Compilation::plan},
    {"codegen", &Compilation::generateCode},
    {"package", &Compilation::writePackage},
};

const std::vector<std::string> &tcc::getPhaseNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Compilation::Phase &phase : Compilation::kPhases)
      result.push_back(phase.name);
    return result;
  }();
  return names;
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllTccDialects(registry);
  cpu::registerCodeEmission(registry);
  cuda::registerDeviceCode(registry);
  return registry;
}

Compilation::Compilation(const CompileOptions &options,
                         std::optional<int64_t> samples)
    : options(options), context(makeRegistry()), samples(samples) {
  // Threads of code generation must not load dialects.
  context.loadAllAvailableDialects();
  cores = std::max(1u, std::thread::hardware_concurrency());
  jobs = options.jobs > 0 ? options.jobs : cores;
}

bool Compilation::fail(Code code, std::string problem) {
  report.exitCode = int(code);
  report.problems.push_back(std::move(problem));
  return false;
}

bool Compilation::fail(const Status &status) {
  return fail(status.code(), std::string(status.message()));
}

bool Compilation::fail(const Problems &problems) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  problems.print(stream);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    report.problems.push_back(line.str());
  report.exitCode =
      problems.empty() ? int(Code::Internal) : problems.getExitCode();
  return false;
}

// --- Phases ---

bool Compilation::resolveTargets() {
  std::string problem = resolveMachines(options, machines);
  return problem.empty() || fail(Code::Usage, problem);
}

bool Compilation::readRecipe() {
  if (options.recipeFile.empty())
    return true;
  Problems problems;
  recipe = train::readRecipeFile(options.recipeFile, problems);
  if (!recipe)
    return fail(problems);
  if (options.target == Target::Cpu && recipe->compute == Precision::TF32)
    return fail(Code::Unsupported,
                options.recipeFile + ": precision.compute = 'tf32' needs "
                                     "--target=cuda: no CPU has such products");
  return true;
}

bool Compilation::import() {
  Problems problems(options.model);
  ImportOptions importOptions = options.import;
  if (recipe) {
    importOptions.batch = recipe->batch.micro.value_or(1);
    importOptions.trains = true;
  }
  FailureOr<Model> imported =
      importModel(options.model, importOptions, &context, problems);
  if (failed(imported))
    return fail(problems);
  model = std::move(*imported);
  llvm::append_range(report.notes, model.notes);
  model.module->walk([&](Operation *op) {
    report.ops += isa<graph::GraphDialect>(op->getDialect());
  });
  return replaceWeights();
}

bool Compilation::replaceWeights() {
  if (options.weightsFile.empty())
    return true;
  Status status = tcc::replaceWeights(model, options.weightsFile);
  return status.ok() || fail(status);
}

/// Ops without a derivative are among the problems already.
bool Compilation::buildTraining(bool inChunks) {
  if (recipe->compute == Precision::F64 &&
      !runPasses(addWidening, Code::Internal))
    return false;
  Problems problems(options.model);
  auto steps = train::buildSteps(*model.module, model.weights, *recipe,
                                 inChunks, problems);
  if (succeeded(steps)) {
    report.parameters = std::move(steps->lines);
    if (!steps->hasChunks)
      untrained = {};
    return true;
  }
  if (!problems.empty())
    return fail(problems);
  report.exitCode = int(Code::Unsupported);
  return false;
}

/// A module that trains in f64 is of it already.
PrecisionRules Compilation::getPrecision() const {
  if (!recipe)
    return {options.precision, {}};
  PrecisionRules rules;
  if (recipe->compute != Precision::F64)
    rules.type = recipe->compute;
  for (const train::Pattern &pattern : recipe->keepF32)
    rules.keepF32.push_back(pattern.text);
  return rules;
}

bool Compilation::differentiate() {
  if (!recipe && options.gradientOf.empty())
    return true;
  auto addAttention = [this](OpPassManager &pm) {
    addAttentionForGradients(pm, options.target, getPrecision());
  };
  if (!runPasses(addAttention, Code::Internal))
    return false;
  if (recipe) {
    if (budget)
      untrained = model.module->clone();
    return buildTraining(/*inChunks=*/false);
  }
  auto addPasses = [this](OpPassManager &pm) {
    addDifferentiation(pm, options);
  };
  for (const std::string &problem : findGradientProblems(
           *model.module, options.gradientOf, options.gradientWrt))
    fail(Code::Usage, options.model + ": " + problem);
  return report.problems.empty() && runPasses(addPasses, Code::Unsupported);
}

bool Compilation::readBudget() {
  std::string text = options.memoryBudget;
  if (text.empty() && recipe)
    text = recipe->memoryBudget;
  std::string problem = tcc::readBudget(text, options.reserve, budget);
  return problem.empty() || fail(Code::Usage, problem);
}

/// The samples of a pass, where the recipe leaves them to the budget.
bool Compilation::chooseBatch() {
  if (!recipe || recipe->batch.micro != train::BatchRecipe::kAuto)
    return true;
  if (!budget)
    return fail(Code::Usage, options.recipeFile +
                                 ": batch.micro = 'auto' needs memory.budget "
                                 "or --memory-budget");
  if (!samples) {
    BatchChoice choice =
        findLargestBatch(getBatches(recipe->batch.global), budget->bytes,
                         [this](int64_t samples) { return tryBatch(samples); });
    if (!choice.samples)
      return false;
    samples = choice.samples;
    report.exitCode = 0;
    report.problems = {};
    report.notes.push_back(options.recipeFile + ": batch.micro is " +
                           choice.text);
  }
  recipe->batch.takeMicro(*samples);
  report.microBatch = *samples;
  return true;
}

/// Plans for so many samples; what is wrong, but for too little memory, is said
/// in the report.
BatchTrial Compilation::tryBatch(int64_t samples) {
  CompileOptions trial = options;
  trial.stopAfter = "plan";
  trial.comparesPrecision = false;
  Compilation compilation(trial, samples);
  CompileReport found = compilation.run();
  BatchTrial outcome{BatchTrial::Fits, compilation.leastBytes};
  if (found.exitCode == 0)
    return outcome;
  report.exitCode = found.exitCode;
  report.problems = std::move(found.problems);
  bool isTooLarge = found.exitCode == int(Code::OutOfMemory);
  outcome.result = isTooLarge ? BatchTrial::TooLarge : BatchTrial::Fails;
  if (!isTooLarge)
    report.problems.push_back(
        options.recipeFile + ": tried with " + std::to_string(samples) +
        " samples; batch.micro = 'auto' needs inputs whose first dimension is "
        "symbolic and not given by --dim");
  return outcome;
}

/// Leaves the arena what the budget has beside all else, as it is without one.
bool Compilation::recompute() {
  OwningOpRef<ModuleOp> copy = model.module->clone();
  PassManager pm(&context);
  addPlacement(pm);
  if (failed(pm.run(*copy)))
    return fail(Code::Unsupported, options.model + ": cannot be planned");
  int64_t fixed =
      budget->reserved + getMemoryPlan(*copy, getThreads()).getFixed();
  FailureOr<RecomputeResult> result =
      recomputeValues(*model.module, budget->bytes - fixed);
  if (failed(result))
    return fail(Code::Internal, options.model + ": cannot be recomputed");
  recomputed = std::move(*result);
  leastBytes = fixed + recomputed.getLeastBytes();
  if (const EntryRecompute *refused = recomputed.getRefused())
    return fail(Code::OutOfMemory,
                options.model + ": " +
                    describeRefusal(*refused, budget->bytes, fixed));
  return runPasses(addRescheduling, Code::Internal);
}

/// The same steps again, with the logits in chunks.
bool Compilation::planInChunks() {
  auto addPasses = [this](OpPassManager &pm) {
    addSimplification(pm, options.target, getPrecision());
  };
  return buildTraining(/*inChunks=*/true) &&
         runPasses(addPasses, Code::Internal) && fuse() && lower() &&
         runPasses(addScheduling, Code::Unsupported) && recompute();
}

/// Of the program with whole logits and that with chunks takes the faster one
/// that fits, or the refusal that asks for less.
bool Compilation::fitBudget() {
  bool fits = (recipe && !recipe->recomputes()) || recompute();
  if (!fits && report.exitCode != int(Code::OutOfMemory))
    return false;
  RecomputeResult ofWhole = recomputed;
  report.recomputedShare = ofWhole.getShareOver(ofWhole);
  if (!untrained || (fits && report.recomputedShare == 0))
    return fits;
  OwningOpRef<ModuleOp> whole = std::move(model.module);
  CompileReport reportOfWhole = report;
  int64_t leastOfWhole = leastBytes;
  model.module = std::move(untrained);
  report.exitCode = 0;
  report.problems.clear();
  bool fitsInChunks = planInChunks();
  if (!fitsInChunks && report.exitCode != int(Code::OutOfMemory))
    return false;
  leastBytes = std::min(leastBytes, leastOfWhole);
  report.recomputedShare = recomputed.getShareOver(ofWhole);
  bool isBetter = fitsInChunks ? !fits || report.recomputedShare <
                                              reportOfWhole.recomputedShare
                               : !fits && recomputed.getRefused()->neededBytes <
                                              ofWhole.getRefused()->neededBytes;
  if (isBetter)
    return fitsInChunks;
  model.module = std::move(whole);
  report = std::move(reportOfWhole);
  return fits;
}

bool Compilation::plan() {
  if (!runPasses(addScheduling, Code::Unsupported) ||
      (budget && !fitBudget()) || !runPasses(addPlacement, Code::Unsupported))
    return false;
  report.memory = getMemoryPlan(*model.module, getThreads());
  int64_t needed = report.memory.getTotal() + (budget ? budget->reserved : 0);
  if (budget && needed > budget->bytes)
    return fail(Code::OutOfMemory,
                options.model + ": needs " + std::to_string(needed) +
                    " bytes, which is more than the memory budget");
  summarize(*model.module, report);
  report.arenas = getArenaUses(*model.module);
  return true;
}

namespace {

/// Remembers which pass failed, as a pass may fail without a word.
struct FailedPass : PassInstrumentation {
  explicit FailedPass(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getName().str();
  }
  std::string &name;
};

} // namespace

bool Compilation::runPasses(llvm::function_ref<void(OpPassManager &)> addPasses,
                            Code failureCode) {
  PassManager pm(&context);
  std::string failed;
  pm.addInstrumentation(std::make_unique<FailedPass>(failed));
  addPasses(pm);
  if (succeeded(pm.run(*model.module)))
    return true;
  report.exitCode = int(failureCode);
  if (report.problems.empty())
    fail(Code::Internal, options.model + ": internal error in " + failed);
  if (report.exitCode == int(Code::Internal))
    llvm::raw_string_ostream(report.reproducer) << *model.module;
  return false;
}

bool Compilation::hasPrepare() {
  const char *name = format::nameOf(format::EntryKind::prepare);
  return model.module->lookupSymbol<exec::EntryOp>(name) != nullptr;
}

bool Compilation::generateCode() {
  bool computesConstants = hasPrepare() && options.import.readWeights;
  CodeGenerator generator(*model.module, options, machines, jobs);
  FailureOr<GeneratedCode> generated = generator.generate(computesConstants);
  if (failed(generated))
    return false;
  code = std::move(*generated);
  report.notes.insert(report.notes.end(), code.notes.begin(), code.notes.end());
  return true;
}

bool Compilation::writePackage() {
  package::PackageInputs inputs{*model.module, model.weights, model.metadata,
                                std::move(code.variants)};
  inputs.host = code.host ? &*code.host : nullptr;
  inputs.embedWeights = options.import.readWeights;
  inputs.options = describeOptions(options, machines.cpus);
  inputs.decisions = describeDecisions(*model.module);
  inputs.threads = jobs;
  uint64_t weightBytes = 0;
  Status status = package::writePackage(inputs, options.output, weightBytes);
  report.weightBytes = weightBytes;
  return status.ok() || fail(status);
}

// --- Output ---

std::optional<Artifact>
Compilation::getArtifactAfter(llvm::StringRef phase) const {
  if (phase == "simplify")
    return Artifact::Graph;
  if (phase == "fuse")
    return Artifact::Fused;
  if (phase == "plan" && options.artifact != Artifact::Package)
    return options.artifact;
  return std::nullopt;
}

bool Compilation::writeModule() {
  std::string text;
  bool isModule = options.artifact == Artifact::Graph ||
                  options.artifact == Artifact::Fused ||
                  options.artifact == Artifact::Exec;
  if (!isModule) {
    CodeGenerator generator(*model.module, options, machines, jobs);
    FailureOr<std::string> printed = generator.print(options.artifact);
    if (failed(printed))
      return false;
    text = std::move(*printed);
  } else {
    llvm::raw_string_ostream stream(text);
    model.module->print(stream, OpPrintingFlags().enableDebugInfo(false));
  }
  return writeText(text);
}

bool Compilation::writeText(llvm::StringRef text) {
  if (options.output == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return true;
  }
  llvm::Error error =
      llvm::writeToOutput(options.output, [&](llvm::raw_ostream &stream) {
        stream << text;
        return llvm::Error::success();
      });
  if (error)
    return fail(Code::Io,
                options.output + ": " + llvm::toString(std::move(error)));
  return true;
}

// --- The whole ---

using Clock = std::chrono::steady_clock;

static double getSecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The model's name of the node at `loc`, or nothing.
static std::string getNodeName(Location loc) {
  std::string name;
  loc->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name;
}

/// Runs phases until one fails or is the last one asked for.
bool Compilation::runPhases() {
  for (const Phase &phase : kPhases) {
    Clock::time_point start = Clock::now();
    bool ok = (this->*phase.run)();
    report.phases.emplace_back(phase.name, getSecondsSince(start));
    if (!ok || options.stopAfter == phase.name)
      return ok;
    if (options.stopAfter.empty() &&
        getArtifactAfter(phase.name) == options.artifact)
      return writeModule();
  }
  return true;
}

CompileReport Compilation::run() {
  Clock::time_point start = Clock::now();
  // What passes and code generation refuse, they say about an op.
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      report.notes.push_back(options.model + ": " + diagnostic.str());
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    std::string node = getNodeName(diagnostic.getLocation());
    std::string prefix = node.empty() ? "" : "node '" + node + "': ";
    report.problems.push_back(options.model + ": " + prefix + diagnostic.str());
    return success();
  });
  bool ok = resolveTargets() && readRecipe() && readBudget() && chooseBatch() &&
            runPhases();
  if (model.module)
    report.decisions = describeDecisions(*model.module);
  if (!ok && report.exitCode == 0)
    report.exitCode =
        int(report.problems.empty() ? Code::Internal : Code::Unsupported);
  report.seconds = getSecondsSince(start);
  return std::move(report);
}

CompileReport tcc::compile(const CompileOptions &options) {
  return Compilation(options).run();
}

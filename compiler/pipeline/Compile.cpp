#include "tcc/compiler.h"

#include "compiler/codegen/cpu/ObjectEmitter.h"
#include "compiler/decisions/Decisions.h"
#include "compiler/package/PackageBuilder.h"
#include "compiler/pipeline/GenerateCode.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/Register.h"
#include "compiler/pipeline/Weights.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/GraphOps.h"
#include "frontends/Frontend.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>
#include <thread>

using namespace mlir;
using namespace tcc;

namespace {

enum ExitCode { kUsage = 2, kUnsupported = 4, kIo = 5, kInternal = 70 };

/// One compilation: the state that its phases share.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options);

  CompileReport run();

private:
  /// A phase by name; false ends the compilation.
  struct Phase {
    const char *name;
    bool (Compilation::*run)();
  };
  static const Phase kPhases[];
  friend const std::vector<std::string> &tcc::getPhaseNames();

  bool readOptions();
  bool import();
  bool replaceWeights();
  bool simplify() { return runPasses(addSimplification, kInternal); }
  // Fusion and the target refuse ops that have no kernel.
  bool fuse() { return runPasses(addFusion, kUnsupported); }
  bool lower() { return runPasses(addLowering, kInternal); }
  bool plan() { return runPasses(addPlanning, kUnsupported) && summarize(); }
  bool generateCode();
  bool writePackage();

  /// `failureCode` is what a refusal of these passes means to the user.
  bool runPasses(void (*addPasses)(OpPassManager &), ExitCode failureCode);
  bool summarize();
  std::optional<Artifact> getArtifactAfter(llvm::StringRef phase) const;
  bool writeModule();
  bool writeText(llvm::StringRef text);
  bool fail(int exitCode, std::string problem);
  bool hasPrepare();
  std::string describeOptions() const;
  std::string describeDecisions();

  const CompileOptions &options;
  CompileReport report;
  MLIRContext context;
  ImportOptions importOptions;
  std::vector<cpu::Cpu> cpus;
  Model model;
  std::vector<package::CompiledVariant> variants;
  std::optional<package::CompiledVariant> hostVariant;
  int jobs;
};

} // namespace

const Compilation::Phase Compilation::kPhases[] = {
    {"import", &Compilation::import},
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
  return registry;
}

Compilation::Compilation(const CompileOptions &options)
    : options(options), context(makeRegistry()) {
  // Threads of code generation must not load dialects.
  context.loadAllAvailableDialects();
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  jobs = options.jobs > 0 ? options.jobs : cores;
}

bool Compilation::fail(int exitCode, std::string problem) {
  report.exitCode = exitCode;
  report.problems.push_back(std::move(problem));
  return false;
}

// --- Phases
// -------------------------------------------------------------------

bool Compilation::readOptions() {
  for (const std::string &name : options.cpus) {
    std::string error;
    std::optional<cpu::Cpu> cpu = cpu::resolveCpu(name, error);
    if (!cpu)
      return fail(kUsage, "--cpu: " + error);
    cpus.push_back(*cpu);
  }
  for (const std::string &text : options.dims) {
    std::optional<DimBinding> dim = parseDimBinding(text);
    if (!dim)
      return fail(kUsage, "--dim: expected NAME=N or NAME=MIN..MAX, found '" +
                              text + "'");
    importOptions.dims.push_back(*dim);
  }
  for (const std::string &text : options.inputShapes) {
    std::optional<InputShape> shape = parseInputShape(text);
    if (!shape)
      return fail(kUsage, "--input-shape: expected NAME=1x3x224x224, found '" +
                              text + "'");
    importOptions.inputShapes.push_back(*shape);
  }
  auto addPairs = [&](const char *flag, const std::vector<std::string> &texts,
                      auto add) {
    for (const std::string &text : texts) {
      auto [name, value] = llvm::StringRef(text).split('=');
      if (name.empty() || value.empty())
        return fail(kUsage, std::string(flag) +
                                ": expected NAME=VALUE, found '" + text + "'");
      add(name.str(), value.str());
    }
    return true;
  };
  importOptions.outputs = options.outputs;
  importOptions.readWeights = options.embedWeights;
  return addPairs("--input-value", options.inputValues,
                  [&](std::string name, std::string value) {
                    importOptions.inputValues.push_back({name, value});
                  }) &&
         addPairs("--state", options.states,
                  [&](std::string output, std::string input) {
                    importOptions.states.push_back({output, input});
                  });
}

bool Compilation::import() {
  Problems problems(options.model);
  FailureOr<Model> imported =
      importModel(options.model, importOptions, &context, problems);
  if (failed(imported)) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    problems.print(stream);
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef line : lines)
      report.problems.push_back(line.str());
    report.exitCode = problems.empty() ? kInternal : problems.getExitCode();
    return false;
  }
  model = std::move(*imported);
  report.notes = model.notes;
  model.module->walk([&](Operation *op) {
    report.ops += isa<graph::GraphDialect>(op->getDialect());
  });
  return replaceWeights();
}

bool Compilation::replaceWeights() {
  if (options.weightsFile.empty())
    return true;
  runtime::Status status =
      tcc::replaceWeights(model.weights, options.weightsFile);
  return status.ok() || fail(int(status.code()), std::string(status.message()));
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

bool Compilation::runPasses(void (*addPasses)(OpPassManager &),
                            ExitCode failureCode) {
  PassManager pm(&context);
  std::string failed;
  pm.addInstrumentation(std::make_unique<FailedPass>(failed));
  addPasses(pm);
  if (succeeded(pm.run(*model.module)))
    return true;
  report.exitCode = failureCode;
  if (report.problems.empty())
    fail(kInternal, options.model + ": internal error in " + failed);
  if (report.exitCode == kInternal)
    llvm::raw_string_ostream(report.reproducer) << *model.module;
  return false;
}

/// The figures of the plan.
bool Compilation::summarize() {
  llvm::SmallVector<int64_t> maxima;
  for (graph::SymbolAttr symbol : graph::getSymbols(*model.module))
    maxima.push_back(symbol.getMax());
  auto kernels = model.module->getOps<exec::KernelOp>();
  report.kernels = std::distance(kernels.begin(), kernels.end());
  for (exec::EntryOp entry : model.module->getOps<exec::EntryOp>()) {
    if (entry.getSymName() != "main")
      continue;
    report.arenaBytes = entry.getScratchBytes().value_or(0);
    report.arenaBoundBytes = entry.getScratchBound().value_or(0);
    llvm::SmallVector<int64_t> slots = maxima;
    slots.resize(entry.getSlots(), 1);
    entry.walk([&](exec::LaunchOp launch) {
      if (auto flops = launch.getFlops())
        report.flops += graph::evaluate(flops->getResult(0), slots);
      if (auto bytes = launch.getBytes())
        report.bytes += graph::evaluate(bytes->getResult(0), slots);
    });
  }
  return true;
}

bool Compilation::hasPrepare() {
  return llvm::any_of(
      model.module->getOps<exec::EntryOp>(),
      [](exec::EntryOp entry) { return entry.getSymName() == "prepare"; });
}

bool Compilation::generateCode() {
  std::string error;
  std::optional<cpu::Cpu> host = cpu::getHostCpu(error);
  auto runsHere = [&](const cpu::Cpu &cpu) {
    return host && llvm::all_of(cpu.features, [&](const std::string &feature) {
             return host->hasFeature(feature);
           });
  };
  bool needsHost = hasPrepare() && options.embedWeights;
  for (const cpu::Cpu &cpu : cpus) {
    FailureOr<cpu::Image> image = generateImage(*model.module, cpu, jobs);
    if (failed(image))
      return false;
    variants.push_back({cpu, std::move(*image)});
    if (needsHost && runsHere(cpu)) {
      hostVariant = variants.back();
      needsHost = false;
    }
  }
  if (!needsHost)
    return true;
  if (!host)
    return fail(kUnsupported, "constants cannot be computed here: " + error);
  FailureOr<cpu::Image> image = generateImage(*model.module, *host, jobs);
  if (failed(image))
    return false;
  hostVariant = package::CompiledVariant{*host, std::move(*image)};
  return true;
}

bool Compilation::writePackage() {
  package::PackageInputs inputs{*model.module, model.weights, model.metadata,
                                std::move(variants)};
  inputs.host = hostVariant ? &*hostVariant : nullptr;
  inputs.embedWeights = options.embedWeights;
  inputs.options = describeOptions();
  inputs.decisions = describeDecisions();
  inputs.threads = jobs;
  uint64_t weightBytes = 0;
  runtime::Status status =
      package::writePackage(inputs, options.output, weightBytes);
  report.weightBytes = weightBytes;
  if (status.ok())
    return true;
  return fail(int(status.code()), std::string(status.message()));
}

// --- Output
// -------------------------------------------------------------------

std::optional<Artifact>
Compilation::getArtifactAfter(llvm::StringRef phase) const {
  if (phase == "simplify")
    return Artifact::Graph;
  if (phase == "fuse")
    return Artifact::Fused;
  if (phase == "plan" && options.artifact == Artifact::Exec)
    return Artifact::Exec;
  if (phase == "plan" && options.artifact == Artifact::Kernels)
    return Artifact::Kernels;
  if (phase == "plan")
    return Artifact::Assembly;
  return std::nullopt;
}

bool Compilation::writeModule() {
  std::string text;
  if (options.artifact == Artifact::Kernels ||
      options.artifact == Artifact::Assembly) {
    auto print =
        options.artifact == Artifact::Kernels ? printLoops : printAssembly;
    FailureOr<std::string> printed = print(*model.module, cpus.front());
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
    return fail(kIo, options.output + ": " + llvm::toString(std::move(error)));
  return true;
}

std::string Compilation::describeOptions() const {
  auto list = [](const std::vector<std::string> &texts) {
    return llvm::json::Value(llvm::json::Array(texts));
  };
  llvm::json::Array cpuNames;
  for (const cpu::Cpu &cpu : cpus)
    cpuNames.push_back(cpu.name);
  llvm::json::Object object{{"producer", "tcc " TCC_VERSION},
                            {"cpu", std::move(cpuNames)},
                            {"dim", list(options.dims)},
                            {"input_shape", list(options.inputShapes)},
                            {"input_value", list(options.inputValues)},
                            {"output", list(options.outputs)},
                            {"state", list(options.states)}};
  return llvm::formatv("{0}", llvm::json::Value(std::move(object))).str();
}

std::string Compilation::describeDecisions() {
  llvm::json::Array decisions;
  for (const Decision &decision : getDecisions(*model.module)) {
    llvm::json::Object numbers;
    for (const auto &[name, value] : decision.numbers)
      numbers[name] = value;
    decisions.push_back(llvm::json::Object{{"pass", decision.pass},
                                           {"node", decision.node},
                                           {"decision", decision.decision},
                                           {"reason", decision.reason},
                                           {"numbers", std::move(numbers)}});
  }
  return llvm::formatv("{0}", llvm::json::Value(std::move(decisions))).str();
}

// --- The whole
// ----------------------------------------------------------------

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

CompileReport Compilation::run() {
  auto start = std::chrono::steady_clock::now();
  // What passes and code generation refuse, they say about an op.
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    std::string node = getNodeName(diagnostic.getLocation());
    std::string prefix = node.empty() ? "" : "node '" + node + "': ";
    report.problems.push_back(options.model + ": " + prefix + diagnostic.str());
    return success();
  });
  bool ok = readOptions();
  for (const Phase &phase : kPhases) {
    ok = ok && (this->*phase.run)();
    if (!ok || options.stopAfter == phase.name)
      break;
    if (getArtifactAfter(phase.name) == options.artifact) {
      ok = writeModule();
      break;
    }
  }
  if (model.module)
    report.decisions = describeDecisions();
  if (!ok && report.exitCode == 0)
    report.exitCode = report.problems.empty() ? kInternal : kUnsupported;
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return std::move(report);
}

CompileReport tcc::compile(const CompileOptions &options) {
  return Compilation(options).run();
}

#include "tools/tcc/Options.h"
#include "tools/cli/CommandLine.h"
#include "tools/cli/ModelFlags.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>

using namespace tcc;
using tools::ToolOptions;

namespace {

/// The flags as given, before they are told apart.
struct Texts {
  std::string weights = "embed";
  std::string emit = "package";
  std::string emulation;
  std::string precision = "f32";
  std::optional<std::string> cacheFolder; ///< as it was asked for
  bool check = false;
};

} // namespace

static const std::map<std::string, Artifact> kArtifacts = {
    {"graph", Artifact::Graph},    {"fused", Artifact::Fused},
    {"exec", Artifact::Exec},      {"kernels", Artifact::Kernels},
    {"asm", Artifact::Assembly},   {"ptx", Artifact::Ptx},
    {"package", Artifact::Package}};

static const std::map<std::string, Emulation> kEmulations = {
    {"", Emulation::None},
    {"plain", Emulation::Plain},
    {"race", Emulation::Race}};

template <typename T>
static std::vector<std::string> getKeys(const std::map<std::string, T> &map) {
  std::vector<std::string> keys;
  for (const auto &[key, value] : map)
    keys.push_back(key);
  return keys;
}

static const char kExitCodes[] =
    "Exit codes: 0 ok, 1 a checked plugin is wrong, 2 usage, 3 bad bytes in a "
    "file,\n4 unsupported op or feature, 5 input or output, 7 out of memory, "
    "8 CPU feature\nmissing, 70 internal error";

/// A flag that may be given several times, each with one value for `values`.
template <typename T>
static void addList(CLI::App &app, const char *flag,
                    std::optional<T> parse(std::string_view),
                    std::vector<T> &values, std::string help) {
  auto check = [=](const std::string &text) {
    return parse(text) ? "" : "expected " + help + ", found '" + text + "'";
  };
  auto add = [=, &values](const std::vector<std::string> &texts) {
    for (const std::string &text : texts)
      values.push_back(*parse(text));
  };
  app.add_option_function<std::vector<std::string>>(flag, add, help)
      ->check(check)
      ->take_all()
      ->allow_extra_args(false);
}

static void addImportOptions(CLI::App &app, ImportOptions &options) {
  addList(
      app, "--dim", tools::parseDimBinding, options.dims,
      "NAME=N, NAME=MIN..MAX, NAME=MIN..MAX:STEP or NAME=N,N,...: a symbolic "
      "dimension");
  addList(app, "--input-shape", tools::parseInputShape, options.inputShapes,
          "NAME=1x3x224x224");
  addList(app, "--input-value", tools::parseInputValue, options.inputValues,
          "NAME=V: fix an input at compile time");
  addList(app, "--input-length", tools::parseInputLength, options.inputLengths,
          "NAME=N: how many elements a sequence or an optional has, inputs "
          "NAME[0], NAME[1]...; NAME=none: an optional that is absent");
  addList(app, "--bound", tools::parseSizeBound, options.bounds,
          "NAME=N: the most that a size which each run computes may be");
  addList(app, "--state", tools::parseStatePair, options.states,
          "OUT=IN: an output that is the next input");
  app.add_option("--plugin", options.plugins,
                 "a library that defines operators (tcc/op.h)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--output", options.outputs,
                 "values to return, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false);
}

/// What is made of the model.
static void addProgramOptions(CLI::App &app, CompileOptions &compile,
                              Texts &texts) {
  CLI::Option *precision = app.add_option(
      "--precision", texts.precision,
      "f64 for all; bf16, f16 or tf32 for operands of products, not sums");
  precision->check(CLI::IsMember(getPrecisionNames()))->capture_default_str();
  CLI::Option *gradientOf = app.add_option(
      "--grad-of", compile.gradientOf,
      "also return the gradients of the sum of this output's elements");
  CLI::Option *gradientWrt =
      app.add_option("--wrt", compile.gradientWrt,
                     "inputs that they are with respect to, comma-separated");
  gradientWrt->delimiter(',')->allow_extra_args(false)->needs(gradientOf);
  gradientOf->needs(gradientWrt);
  app.add_option("--train", compile.recipeFile,
                 "a recipe (.toml): train the model")
      ->excludes(precision)
      ->excludes(gradientOf);
}

/// By what kernels are measured, and what was measured of them.
static void addTuningOptions(CLI::App &app, CompileOptions &compile) {
  app.add_option("--candidates", compile.candidates,
                 "plans of each kernel that takes long, of which tcc-run tune "
                 "finds the fastest")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option(
      "--tune-cache", compile.tuneCache,
      "what tcc-run tune wrote: kernels have the fastest plans alone");
}

static void addMemoryOptions(CLI::App &app, CompileOptions &compile) {
  app.add_option("--memory-budget", compile.memoryBudget,
                 "bytes that the program needs at most, as 22GiB; values are "
                 "computed again to keep to it");
  app.add_option("--reserve", compile.reserve,
                 "bytes of the budget for what is not planned, as a CUDA "
                 "context");
  app.add_option("--threads", compile.threads,
                 "threads that it will run on, whose scratch counts (default: "
                 "this machine's cores)")
      ->check(CLI::Range(1, 1024));
}

/// What it runs on.
static void addTargetOptions(CLI::App &app, CompileOptions &compile,
                             Texts &texts) {
  app.add_option("--target", compile.target, "what to generate code for")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--cpu", compile.cpus,
                 "CPUs, comma-separated (default: native, or x86-64-v3 with "
                 "--target=cuda, for what computes constants)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--arch", compile.archs,
                 "GPUs with --target=cuda, comma-separated; ptx: the driver "
                 "compiles; none: with --emulate (default: sm_80,sm_90,sm_100)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--emulate{plain}", texts.emulation,
               "add the GPU's kernels for this CPU, to be run with "
               "--device=emulated; =race: with checks for races")
      ->check(CLI::IsMember({"plain", "race"}));
}

static void addOptions(CLI::App &app, ToolOptions &options, Texts &texts) {
  CompileOptions &compile = options.compile;
  CLI::Option *model =
      app.add_option("MODEL", compile.model, "the model (.onnx, .pt2, .pt)");
  app.add_option("--check-plugin", options.checkedPlugin,
                 "run the examples of a library's operators; no model")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->excludes(model);
  app.callback([&] {
    if (compile.model.empty() && options.checkedPlugin.empty())
      throw CLI::RequiredError("MODEL");
  });
  app.add_option("-o", compile.output, "file to write (default: MODEL's name)");
  addTargetOptions(app, compile, texts);
  addImportOptions(app, compile.import);
  addProgramOptions(app, compile, texts);
  addMemoryOptions(app, compile);
  addTuningOptions(app, compile);
  app.add_option("--weights", texts.weights,
                 "embed, none, or a safetensors file with other values")
      ->capture_default_str();
  CLI::Option *emit = app.add_option("--emit", texts.emit, "what to write")
                          ->check(CLI::IsMember(getKeys(kArtifacts)))
                          ->capture_default_str();
  app.add_option("--stop-after", compile.stopAfter,
                 "end after a phase; writes nothing")
      ->check(CLI::IsMember(getPhaseNames()))
      ->excludes(emit);
  app.add_flag("--check", texts.check, "list all problems; generate nothing")
      ->excludes(emit);
  app.add_option("--dump-decisions", options.dumpDecisions,
                 "JSON file for what was decided");
  app.add_option("--report", options.reportFile,
                 "page (.html) for that, the figures, and what low precision "
                 "costs each op on random inputs");
  app.add_option("-j", compile.jobs, "threads (default: all cores)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--cache-dir", texts.cacheFolder,
                 "folder of code that was compiled before, or none (default: "
                 "tcc/code in the user's cache)");
  app.add_flag("--json", options.json, "print one JSON object");
  CLI::Option *quiet =
      app.add_flag("-q,--quiet", options.quiet, "print errors only");
  app.add_flag("-v,--verbose", options.verbose, "say what is done")
      ->excludes(quiet);
  app.footer(kExitCodes);
}

/// The flags that depend on each other.
static void complete(CompileOptions &compile, const Texts &texts) {
  compile.artifact = kArtifacts.at(texts.emit);
  compile.emulation = kEmulations.at(texts.emulation);
  compile.precision = *findPrecision(texts.precision);
  compile.import.readWeights = texts.weights != "none";
  compile.cacheFolder = texts.cacheFolder.value_or(getCacheFolder());
  compile.requiresCache = texts.cacheFolder.has_value();
  if (texts.cacheFolder == "none")
    compile.cacheFolder.clear();
  if (compile.import.readWeights && texts.weights != "embed")
    compile.weightsFile = texts.weights;
  // The target's refusals are among the problems.
  if (texts.check && compile.stopAfter.empty())
    compile.stopAfter = "plan";
  if (!compile.output.empty())
    return;
  bool isText = compile.artifact != Artifact::Package;
  std::filesystem::path model(compile.model);
  compile.output = isText ? "-" : model.stem().string() + ".tcc";
}

std::optional<int> tools::parseOptions(int argc, char **argv,
                                       ToolOptions &options) {
  CLI::App app("Compiles a model to a package: tcc model.onnx", "tcc");
  app.set_version_flag("--version", TCC_VERSION);
  Texts texts;
  addOptions(app, options, texts);
  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return code;
  complete(options.compile, texts);
  options.compile.comparesPrecision = !options.reportFile.empty();
  bool isText = options.compile.artifact != Artifact::Package;
  if (options.compile.output == "-" && (options.json || !isText)) {
    std::cerr << "tcc: error: "
              << (isText ? "with --json, --emit" : "a package")
              << " needs -o FILE\n";
    return kUsageError;
  }
  return std::nullopt;
}

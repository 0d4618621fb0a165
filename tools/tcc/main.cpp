//===- tcc: compiles models -----------------------------------------------===//

#include "tcc/compiler.h"
#include "tools/cli/CommandLine.h"
#include "tools/cli/ModelFlags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

using namespace tcc;

namespace {

struct ToolOptions {
  CompileOptions compile;
  std::string weights = "embed";
  std::string emit = "package";
  std::string target = "cpu";
  std::string dumpDecisions;
  bool check = false, json = false, quiet = false, verbose = false;
};

} // namespace

static constexpr int kIoError = 5;
static constexpr int kInternalError = 70;

static const std::map<std::string, Artifact> kArtifacts = {
    {"graph", Artifact::Graph},  {"fused", Artifact::Fused},
    {"exec", Artifact::Exec},    {"kernels", Artifact::Kernels},
    {"asm", Artifact::Assembly}, {"package", Artifact::Package}};

static std::vector<std::string> getKeys() {
  std::vector<std::string> keys;
  for (const auto &[key, artifact] : kArtifacts)
    keys.push_back(key);
  return keys;
}

static const char kExitCodes[] =
    "Exit codes: 0 ok, 2 usage, 3 bad bytes in a file, 4 unsupported op or "
    "feature,\n5 input or output, 7 out of memory, 8 CPU feature missing, 70 "
    "internal error";

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
  addList(app, "--dim", tools::parseDimBinding, options.dims,
          "NAME=N or NAME=MIN..MAX: a symbolic dimension");
  addList(app, "--input-shape", tools::parseInputShape, options.inputShapes,
          "NAME=1x3x224x224");
  addList(app, "--input-value", tools::parseInputValue, options.inputValues,
          "NAME=V: fix an input at compile time");
  addList(app, "--state", tools::parseStatePair, options.states,
          "OUT=IN: an output that is the next input");
  app.add_option("--output", options.outputs,
                 "values to return, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false);
}

static void addOptions(CLI::App &app, ToolOptions &options) {
  CompileOptions &compile = options.compile;
  app.add_option("MODEL", compile.model, "the model (.onnx)")->required();
  app.add_option("-o", compile.output, "file to write (default: MODEL's name)");
  app.add_option("--target", options.target, "what to generate code for")
      ->check(CLI::IsMember({"cpu"}))
      ->capture_default_str();
  app.add_option("--cpu", compile.cpus, "CPUs, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  addImportOptions(app, compile.import);
  app.add_option("--weights", options.weights,
                 "embed, none, or a safetensors file with other values")
      ->capture_default_str();
  app.add_option("--emit", options.emit, "what to write")
      ->check(CLI::IsMember(getKeys()))
      ->capture_default_str();
  app.add_option("--stop-after", compile.stopAfter, "end after a phase")
      ->check(CLI::IsMember(getPhaseNames()));
  app.add_flag("--check", options.check, "list all problems; generate nothing");
  app.add_option("--dump-decisions", options.dumpDecisions,
                 "JSON file for what was decided");
  app.add_option("-j", compile.jobs, "threads (default: all cores)")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", options.json, "print one JSON object");
  CLI::Option *quiet =
      app.add_flag("-q,--quiet", options.quiet, "print errors only");
  app.add_flag("-v,--verbose", options.verbose, "say what is done")
      ->excludes(quiet);
  app.footer(kExitCodes);
}

/// The flags that depend on each other.
static void complete(ToolOptions &options) {
  CompileOptions &compile = options.compile;
  compile.artifact = kArtifacts.at(options.emit);
  compile.import.readWeights = options.weights != "none";
  if (compile.import.readWeights && options.weights != "embed")
    compile.weightsFile = options.weights;
  // The target's refusals are among the problems.
  if (options.check && compile.stopAfter.empty())
    compile.stopAfter = "plan";
  if (!compile.output.empty())
    return;
  bool isText = compile.artifact != Artifact::Package;
  std::filesystem::path model(compile.model);
  compile.output = isText ? "-" : model.stem().string() + ".tcc";
}

static void printJson(const CompileReport &report) {
  nlohmann::ordered_json object = {
      {"schema_version", 1},
      {"ops", report.ops},
      {"kernels", report.kernels},
      {"library_calls", report.libraryCalls},
      {"arena_bytes", report.arenaBytes},
      {"arena_bound_bytes", report.arenaBoundBytes},
      {"weight_bytes", report.weightBytes},
      {"flops", report.flops},
      {"bytes", report.bytes},
      {"seconds", report.seconds}};
  std::cout << object.dump() << '\n';
}

static void printSummary(const ToolOptions &options,
                         const CompileReport &report) {
  double gap = report.arenaBoundBytes
                   ? 100.0 *
                         double(report.arenaBytes - report.arenaBoundBytes) /
                         double(report.arenaBoundBytes)
                   : 0.0;
  std::printf(
      "%s: %lld ops, %lld kernels, %lld library calls, arena %lld bytes "
      "(bound %lld, gap %.1f %%), weights %lld bytes, %.2f s\n",
      options.compile.output.c_str(), (long long)report.ops,
      (long long)report.kernels, (long long)report.libraryCalls,
      (long long)report.arenaBytes, (long long)report.arenaBoundBytes, gap,
      (long long)report.weightBytes, report.seconds);
}

/// Writes under a temporary name and renames: all of the file, or nothing.
static bool writeFile(const std::string &path, const std::string &text) {
  std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0)
    return true;
  std::cerr << "tcc: " << path << ": cannot be written\n";
  std::remove(temporary.c_str());
  return false;
}

static void printMessages(const ToolOptions &options,
                          const CompileReport &report) {
  for (const std::string &problem : report.problems)
    std::cerr << "tcc: " << problem << '\n';
  if (!options.quiet)
    for (const std::string &note : report.notes)
      std::cerr << "tcc: note: " << note << '\n';
  if (report.exitCode != kInternalError)
    return;
  if (report.problems.empty())
    std::cerr << "tcc: internal error\n";
  std::string path = options.compile.output + ".reproducer.mlir";
  if (!report.reproducer.empty() && writeFile(path, report.reproducer))
    std::cerr << "tcc: note: the module is in " << path
              << "; please report this\n";
}

int main(int argc, char **argv) {
  CLI::App app("Compiles a model to a package: tcc model.onnx", "tcc");
  app.set_version_flag("--version", TCC_VERSION);
  ToolOptions options;
  addOptions(app, options);
  if (std::optional<int> code = tools::parseCommandLine(app, argc, argv))
    return *code;
  complete(options);

  CompileReport report = compile(options.compile);
  printMessages(options, report);
  if (!options.dumpDecisions.empty() &&
      !writeFile(options.dumpDecisions, report.decisions + "\n"))
    return kIoError;
  if (report.exitCode != 0)
    return report.exitCode;
  bool isPackage = options.compile.artifact == Artifact::Package &&
                   options.compile.stopAfter.empty();
  if (options.json)
    printJson(report);
  else if (isPackage && !options.quiet)
    printSummary(options, report);
  return 0;
}

//===- tcc-run: runs packages ---------------------------------------------===//

#include "runtime/base/Status.h"
#include "tools/cli/CommandLine.h"
#include "tools/tcc-run/Options.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace tcc::tools;

static void addRunning(CLI::App &command, RunningOptions &options) {
  command.add_option("PACKAGE", options.package, "the package to run")
      ->required();
  command
      .add_option("--threads", options.threads,
                  "threads (default: as many as the process may use)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--device", options.device, "where to run: cpu");
  command.add_option("--weights", options.weights,
                     "safetensors file with weights that replace the model's");
  command.add_flag("--json", options.json, "print one JSON object");
  CLI::Option *quiet =
      command.add_flag("-q,--quiet", options.quiet, "print errors only");
  command.add_flag("-v,--verbose", options.verbose, "say what is done")
      ->excludes(quiet);
  command.add_flag("--symbols", options.symbols,
                   "name kernels: /tmp/perf-PID.map for perf, code for gdb");
}

static void addInputs(CLI::App &command, InputOptions &options) {
  command
      .add_option("--input", options.inputs,
                  "NAME=FILE: read an input from .npy, .npz or .pb")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--inputs-dir", options.inputsDir,
                     "read input_<i>.npy or .pb of a folder");
  command
      .add_option("--dim", options.dims, "NAME=N: bind a symbolic dimension")
      ->take_all()
      ->allow_extra_args(false);
  command
      .add_flag("--random-inputs{0}", options.randomSeed,
                "make the inputs that are not given; =SEED, default 0")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

static CLI::App &addRun(CLI::App &app, RunOptions &options) {
  CLI::App &command = *app.add_subcommand("run", "run a package once");
  addRunning(command, options.running);
  addInputs(command, options.inputs);
  command.add_option("--output-dir", options.outputDir,
                     "write output_<i>.npy to a folder");
  command.add_option("--expect-dir", options.expectDir,
                     "compare with output_<i>.npy or .pb of a folder");
  command.add_option("--rtol", options.rtol, "relative tolerance")
      ->capture_default_str();
  command
      .add_option("--atol", options.atol,
                  "absolute tolerance, as a fraction of the largest value")
      ->capture_default_str();
  return command;
}

static CLI::App &addBench(CLI::App &app, BenchOptions &options) {
  CLI::App &command = *app.add_subcommand("bench", "measure the time of runs");
  addRunning(command, options.running);
  addInputs(command, options.inputs);
  command
      .add_option("--iterations", options.iterations,
                  "runs (default: as many as fit the duration)")
      ->check(CLI::PositiveNumber);
  command.add_option("--warmup", options.warmupMs, "milliseconds before")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--duration", options.seconds, "seconds of measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--profile", options.profile, "print a table of the nodes");
  return command;
}

static int runTool(int argc, char **argv) {
  CLI::App app("Runs packages that tcc compiled", "tcc-run");
  app.set_version_flag("--version", TCC_VERSION);
  app.require_subcommand(1);
  RunOptions run;
  BenchOptions bench;
  RunningOptions info;
  bool doctorJson = false;
  CLI::App &runApp = addRun(app, run);
  CLI::App &benchApp = addBench(app, bench);
  CLI::App &infoApp = *app.add_subcommand("info", "say what a package holds");
  infoApp.add_option("PACKAGE", info.package, "the package")->required();
  infoApp.add_flag("--json", info.json, "print one JSON object");
  CLI::App &doctorApp =
      *app.add_subcommand("doctor", "say what this machine can run");
  doctorApp.add_flag("--json", doctorJson, "print one JSON object");

  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  if (runApp.parsed())
    return runCommand(run);
  if (benchApp.parsed())
    return benchCommand(bench);
  if (infoApp.parsed())
    return infoCommand(info);
  return doctorCommand(doctorJson);
}

int main(int argc, char **argv) {
  try {
    return runTool(argc, argv);
  } catch (const std::bad_alloc &) {
    std::cerr << "tcc-run: error: out of memory\n";
    return static_cast<int>(tcc::runtime::Code::OutOfMemory);
  } catch (const std::exception &error) {
    std::cerr << "tcc-run: error: " << error.what() << '\n';
    return static_cast<int>(tcc::runtime::Code::Internal);
  }
}

//===- tcc-run: runs packages ---------------------------------------------===//

#include "runtime/base/Status.h"
#include "tools/cli/CommandLine.h"
#include "tools/tcc-run/Flags.h"
#include "tools/tcc-run/Ranks.h"
#include "tools/tcc-run/RunFlags.h"
#include "tools/tcc-run/trace/MergeTraces.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <unistd.h>

using namespace tcc::tools;

static const char kExitCodes[] =
    "Exit codes: 0 ok, 1 a comparison failed, 2 usage, also a wrong name, "
    "shape, type or\nindex, 3 bad bytes in a file, 4 unsupported feature, 5 "
    "input or output, 6 a loss or\ngradient that is not finite, 7 out of "
    "memory, 8 device or CPU feature missing, 9\nanother rank failed, 70 "
    "internal error, 130 or 143 train stopped by SIGINT or SIGTERM";

/// What compares with the reference evaluator has the compiler in it: a program
/// of its own, beside this one.
static int execCompare(char **argv) {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string path = self.parent_path() / "tcc-compare";
  execv(path.c_str(), argv);
  std::cerr << "tcc-run: error: cannot run '" << path
            << "': " << std::strerror(errno) << '\n';
  return static_cast<int>(tcc::runtime::Code::Io);
}

static CLI::App &addDataCommand(CLI::App &app, DataCommandOptions &options) {
  CLI::App &command = *app.add_subcommand("data", "look at data, not train");
  command
      .add_option("ACTION", options.action,
                  "info: say what there is; check: read all of it; index: "
                  "write beside each shard where its samples are; sizes: find "
                  "those for tcc --dim that pad samples least")
      ->required()
      ->check(CLI::IsMember({"info", "check", "index", "sizes"}));
  command.add_option("DATA", options.data, "as train --data has them")
      ->required();
  command.add_flag("--json", options.json, "print one JSON object");
  command.add_option("--input", options.input,
                     "of sizes: what samples have numbers for");
  command.add_option("--count", options.count, "of sizes: how many, at most")
      ->check(CLI::Range(1, 65535));
  command
      .add_option("--multiple", options.multiple,
                  "of sizes: each is a multiple of it")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option("--numbers", options.numbers,
                  "of sizes: numbers of a batch, for batches of about as many")
      ->check(CLI::Range(1, 1 << 30));
  return command;
}

/// Whether ranks are to be begun: a process that is one begins none.
static bool launches(const DataOptions &options) {
  return options.ranks > 1 && !isLaunched();
}

static CLI::App &addRun(CLI::App &app, RunOptions &options) {
  CLI::App &command = *app.add_subcommand("run", "run a package once");
  addRunning(command, options.running);
  addInputs(command, options.inputs);
  command.add_option("--output-dir", options.outputDir,
                     "write output_<i>.npy to a folder");
  command.add_option("--expect-dir", options.expectDir,
                     "compare with output_<i>.npy or .pb of a folder");
  addTolerance(command, options.tolerance);
  return command;
}

static CLI::App &addBench(CLI::App &app, BenchOptions &options) {
  CLI::App &command = *app.add_subcommand("bench", "measure the time of runs");
  addRunning(command, options.running);
  addInputs(command, options.inputs);
  command
      .add_option("--iterations", options.iterations,
                  "runs (default: as many as fit the duration)")
      ->check(makeCountCheck());
  command.add_option("--warmup", options.warmupMs, "milliseconds before")
      ->check(makeNonNegativeCheck())
      ->capture_default_str();
  command.add_option("--duration", options.seconds, "seconds of measurement")
      ->check(makePositiveCheck())
      ->capture_default_str();
  command
      .add_option("--data", options.data,
                  "measure updates of a training package on data, as train "
                  "takes them")
      ->type_name(kDataType);
  command
      .add_flag("--profile", options.profile,
                "print what runs took: by operator, module and kernel")
      ->excludes("--data");
  command
      .add_option("--trace", options.traceFile,
                  "write when lanes did what, as trace events (JSON)")
      ->excludes("--data");
  return command;
}

static CLI::App &addTune(CLI::App &app, TuneOptions &options) {
  CLI::App &command = *app.add_subcommand(
      "tune", "measure the ways of a GPU's libraries, or the plans of a CPU's "
              "kernels (tcc --candidates), and keep the fastest");
  addRunning(command, options.running);
  command.add_option("OTHERS", options.others,
                     "packages of the same model for batches of other sizes: "
                     "which trains fastest?");
  command
      .add_option("--data", options.data,
                  "time updates of them on data, as train takes them, not on "
                  "random batches")
      ->type_name(kDataType)
      ->needs("OTHERS");
  addInputs(command, options.inputs);
  return command;
}

static void addSaving(CLI::App &command, TrainOptions &options) {
  command
      .add_option("--checkpoint-every", options.checkpointEvery,
                  "updates between checkpoints (default: one at the end)")
      ->check(makeCountCheck())
      ->needs("--checkpoint-dir");
  command
      .add_flag("--sync-checkpoints", options.syncCheckpoints,
                "make steps wait until a checkpoint is written, and keep no "
                "copy of the variables for it")
      ->needs("--checkpoint-dir");
  command
      .add_option("--max-time", options.maxSeconds,
                  "end with a checkpoint after the update that is under way "
                  "then")
      ->transform(makeTimeCheck())
      ->needs("--checkpoint-dir");
  command
      .add_option("--keep-last", options.retention.keepLast,
                  "remove all but N checkpoints, the newest (default: none)")
      ->check(makeCountCheck())
      ->needs("--checkpoint-dir");
  command
      .add_option("--keep-every", options.retention.keepEvery,
                  "and keep those of each N updates")
      ->check(makeCountCheck())
      ->needs("--keep-last");
  command
      .add_option("--keep-best", options.retention.keepBest,
                  "METRIC: save what evaluates best by it, as eval.best, and "
                  "keep that")
      ->needs("--checkpoint-dir");
}

/// What a run writes of its updates. Returns the option for TensorBoard's.
static CLI::Option *addLogs(CLI::App &command, TrainOptions &options) {
  command
      .add_option("--log-dir", options.logDir,
                  "write metrics.jsonl to a folder")
      ->type_name(kFolderType);
  CLI::Option *events =
      command
          .add_option("--tensorboard", options.tensorBoardDir,
                      "write what metrics.jsonl has to a folder for "
                      "TensorBoard, as events")
          ->type_name(kFolderType);
  command
      .add_option("--tensorboard-histograms", options.histogramsEvery,
                  "and histograms and norms of parameters after each K updates")
      ->check(makeCountCheck())
      ->needs(events);
  return events;
}

static CLI::App &addTrain(CLI::App &app, TrainOptions &options) {
  CLI::App &command =
      *app.add_subcommand("train", "train a package compiled with --train");
  addRunFolder(command, options);
  addRunning(command, options.running);
  addData(command, options.data);
  command
      .add_option("--steps", options.steps, "updates in all (default: recipe)")
      ->check(makeCountCheck());
  command.add_option("--epochs", options.epochs, "passes over the data in all")
      ->check(makeCountCheck())
      ->excludes("--steps");
  command.add_flag("--no-shuffle", options.noShuffle,
                   "take samples in their order");
  command.add_option("--seed", options.seed, "of the order and of dropout");
  command
      .add_option("--set", options.settings, "change a setting of the recipe")
      ->type_name(kSettingType)
      ->take_all()
      ->allow_extra_args(false);
  addSaving(command, options);
  command
      .add_flag("--resume", options.resume, "go on from the newest checkpoint")
      ->needs("--checkpoint-dir")
      ->excludes("--init");
  command
      .add_flag("--resume-if-any", options.resumesIfAny,
                "as --resume, or from the start if there is none yet")
      ->needs("--checkpoint-dir")
      ->excludes("--init")
      ->excludes("--resume");
  CLI::Option *events = addLogs(command, options);
  CLI::Option *profiled = command.add_flag(
      "--profile", options.profile,
      "print what updates took: by part, operator, module and kernel");
  CLI::Option *diagnosed = command.add_flag(
      "--diagnose", options.diagnoses,
      "say what limits the run, by which figures, and what would help");
  CLI::Option *traced = command.add_option(
      "--trace", options.traceFile,
      "write what lanes and threads did, and when, as trace events (JSON)");
  CLI::Option *exported =
      addExportTarget(command, "--export", options.exported);
  command
      .add_flag("--find-lr", options.findsRate,
                "keep nothing: try learning rates in 100 or --steps updates, "
                "draw --log-dir's find-lr.svg")
      ->excludes(exported)
      ->excludes(profiled)
      ->excludes(diagnosed)
      ->excludes(traced)
      ->excludes(events)
      ->excludes("--epochs")
      ->excludes("--checkpoint-every");
  return command;
}

/// Returns the command `trace merge`.
static CLI::App &addTrace(CLI::App &app, MergeOptions &options) {
  CLI::App &command =
      *app.add_subcommand("trace", "do something with traces of train --trace");
  command.require_subcommand(1);
  CLI::App &merge = *command.add_subcommand(
      "merge", "make one trace of those of several ranks, with one clock");
  merge
      .add_option("FILE", options.files,
                  "what each rank wrote: FILE.json, FILE.rank-1.json and so on")
      ->required();
  merge.add_option("-o,--output", options.output, "the trace of all")
      ->required();
  return merge;
}

static CLI::App &addExport(CLI::App &app, ExportOptions &options) {
  CLI::App &command = *app.add_subcommand(
      "export", "write the parameters of a checkpoint to a file");
  addRunning(command, options.running);
  command
      .add_option("--checkpoint-dir", options.checkpointDir,
                  "folder of checkpoints: DIR/step-N")
      ->required()
      ->type_name(kFolderType);
  addCheckpoint(command, options.checkpoint, options.ema);
  addExportTarget(command, "-o,--output", options.exported)->required();
  return command;
}

static CLI::App &addReport(CLI::App &app, std::string &folder,
                           std::string &page) {
  CLI::App &command = *app.add_subcommand(
      "report", "write a page of a run: how it went, and what limits it");
  command.add_option("DIR", folder, "the folder of train --run")
      ->required()
      ->type_name(kFolderType);
  command.add_option("-o,--output", page,
                     "the page (default: DIR/report.html)");
  return command;
}

static void addDoctor(CLI::App &app, std::string &folder, bool &json) {
  CLI::App &command =
      *app.add_subcommand("doctor", "say what this machine can run, and what "
                                    "would make it faster or safer");
  command
      .add_option("DIR", folder,
                  "where checkpoints or data are to be: 32 MiB are written "
                  "there, and removed")
      ->capture_default_str();
  command.add_flag("--json", json, "print one JSON object");
}

static int runTool(int argc, char **argv) {
  CLI::App app("Runs packages that tcc compiled", "tcc-run");
  app.set_version_flag("--version", TCC_VERSION);
  app.require_subcommand(1);
  app.footer(kExitCodes); // of its commands, too
  RunOptions run;
  BenchOptions bench;
  TrainOptions train;
  train.commandLine.assign(argv, argv + argc);
  EvalOptions eval;
  ExportOptions exported;
  TuneOptions tune;
  RunningOptions info;
  CLI::App &runApp = addRun(app, run);
  CLI::App &benchApp = addBench(app, bench);
  CLI::App &trainApp = addTrain(app, train);
  CLI::App &evalApp =
      *app.add_subcommand("eval", "measure a trained model on data");
  addRunning(evalApp, eval.running);
  addData(evalApp, eval.data);
  // Both say which parameters are measured.
  evalApp.get_option("--init")->excludes("--checkpoint-dir");
  addCheckpoint(evalApp, eval.checkpoint, eval.ema);
  CLI::App &exportApp = addExport(app, exported);
  CLI::App &tuneApp = addTune(app, tune);
  CLI::App &infoApp = *app.add_subcommand("info", "say what a package holds");
  infoApp.add_option("PACKAGE", info.package, "the package")->required();
  infoApp.add_flag("--json", info.json, "print one JSON object");
  std::string folder;
  bool checkpointsJson = false;
  CLI::App &checkpointsApp = *app.add_subcommand(
      "checkpoints", "list the checkpoints of a folder, and read all of each");
  checkpointsApp.add_option("DIR", folder, "the folder, or that of a run")
      ->required();
  checkpointsApp.add_flag("--json", checkpointsJson, "print one JSON object");
  std::string runFolder, page;
  CLI::App &reportApp = addReport(app, runFolder, page);
  DataCommandOptions data;
  CLI::App &dataApp = addDataCommand(app, data);
  std::string doctorFolder = ".";
  bool doctorJson = false;
  addDoctor(app, doctorFolder, doctorJson);
  MergeOptions merged;
  CLI::App &mergeApp = addTrace(app, merged);
  app.add_subcommand("compare", "find the kernel that departs from the "
                                "compiler's reference evaluator");

  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  if (runApp.parsed())
    return runCommand(run);
  if (benchApp.parsed())
    return benchCommand(bench);
  if (trainApp.parsed())
    return launches(train.data) ? launchRanks(train.data.ranks, argv)
                                : trainCommand(train);
  if (evalApp.parsed())
    return launches(eval.data) ? launchRanks(eval.data.ranks, argv)
                               : evalCommand(eval);
  if (exportApp.parsed())
    return exportCommand(exported);
  if (tuneApp.parsed())
    return tuneCommand(tune);
  if (infoApp.parsed())
    return infoCommand(info);
  if (checkpointsApp.parsed())
    return checkpointsCommand(folder, checkpointsJson);
  if (mergeApp.parsed())
    return mergeCommand(merged);
  if (reportApp.parsed())
    return reportCommand(runFolder, page);
  if (dataApp.parsed())
    return dataCommand(data);
  return doctorCommand(doctorFolder, doctorJson);
}

int main(int argc, char **argv) {
  if (argc > 1 && argv[1] == std::string_view("compare"))
    return execCompare(argv + 1);
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

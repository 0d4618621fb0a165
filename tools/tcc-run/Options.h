//===- Options.h - What the command line asked for --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_OPTIONS_H
#define TCC_TOOLS_TCCRUN_OPTIONS_H

#include "runtime/train/CheckpointFolder.h"
#include "tools/tcc-run/RunRecord.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tcc::tools {

/// Flags of every command that runs a package.
struct RunningOptions {
  std::string package;
  int threads = 0;     ///< 0: as many as the process may use
  std::string device;  ///< empty: what the package is compiled for
  int localRank = 0;   ///< of this machine: the device's number if it has none
  std::string weights; ///< safetensors; empty: the package's own
  std::string tuneCache;
  bool json = false;
  bool quiet = false;
  bool silent = false; ///< quiet is what the user asked for, of any rank
  bool verbose = false;
  bool symbols = false; ///< write the names of kernels for perf and gdb
};

struct InputOptions {
  std::vector<std::string> inputs; ///< NAME=FILE
  std::string inputsDir;
  std::vector<std::string> dims; ///< NAME=N
  std::string randomSeed;        ///< empty: no random inputs
  /// The variant of the sizes that the package was compiled for; nothing: the
  /// first that takes the inputs that are given.
  std::optional<uint16_t> variant = std::nullopt;
};

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-4; ///< of the largest value
};

struct RunOptions {
  RunningOptions running;
  InputOptions inputs;
  std::string outputDir;
  std::string expectDir;
  Tolerance tolerance;
};

struct BenchOptions {
  RunningOptions running;
  InputOptions inputs;
  int64_t iterations = 0; ///< 0: as many as fit the duration
  double warmupMs = 300;
  double seconds = 3;
  bool profile = false;
  std::string traceFile; ///< empty: none
  std::string data;      ///< that updates are measured on; empty: runs are
};

/// What `train` and `eval` share.
struct DataOptions {
  std::string data; ///< see SampleSource.h
  std::string init; ///< safetensors with parameters; empty: the package's
  std::string checkpointDir;
  int ranks = 1; ///< processes to begin on this machine
};

/// Where parameters are written to.
struct ExportTarget {
  std::string file; ///< safetensors, or a model as `onnx`; empty: none
  std::string onnx; ///< the ONNX model to write them into; empty: none
};

struct TrainOptions {
  std::vector<std::string> commandLine;
  std::string runFolder; ///< empty: none
  /// What its run.json is to have.
  RunRecord run;
  RunningOptions running;
  DataOptions data;
  int64_t steps = 0, epochs = 0; ///< 0: as the recipe says
  bool noShuffle = false;
  std::optional<int64_t> seed;
  std::vector<std::string> settings; ///< KEY=VALUE
  int64_t checkpointEvery = 0;       ///< 0: at the end only
  runtime::Retention retention;
  bool syncCheckpoints = false; ///< steps wait for them
  int64_t maxSeconds = 0;       ///< 0: as long as it takes
  bool resume = false, resumesIfAny = false;
  std::string logDir;
  std::string tensorBoardDir;  ///< empty: none
  int64_t histogramsEvery = 0; ///< updates; 0: never
  ExportTarget exported;
  bool profile = false, diagnoses = false;
  std::string traceFile;  ///< of all updates; empty: none
  bool findsRate = false; ///< only try rates

  /// Whether anything of what is learned outlives the run.
  bool keepsAnything() const {
    return !data.checkpointDir.empty() || !exported.file.empty();
  }
};

struct TuneOptions {
  RunningOptions running; ///< whose tune cache is written
  InputOptions inputs;
  /// Packages of the same model for batches of other sizes.
  std::vector<std::string> others;
  std::string data; ///< that their updates are measured on; empty: random

  std::vector<std::string> getPackages() const {
    std::vector<std::string> packages = {running.package};
    packages.insert(packages.end(), others.begin(), others.end());
    return packages;
  }
};

struct EvalOptions {
  RunningOptions running;
  DataOptions data;
  runtime::CheckpointChoice checkpoint;
  bool ema = false; ///< running means in place of parameters
};

struct ExportOptions {
  RunningOptions running;
  std::string checkpointDir;
  runtime::CheckpointChoice checkpoint;
  bool ema = false; ///< running means in place of parameters
  ExportTarget exported;
};

/// Options of the command `data`.
struct DataCommandOptions {
  std::string action; ///< info, check, index or sizes
  std::string data;   ///< as `--data` has it
  bool json = false;
  // Options of the action `sizes`.
  std::string input; ///< that has samples of several lengths
  int count = 0;     ///< of sizes, at most
  int multiple = 1;
  int numbers = 0; ///< of a batch, with what pads its samples; 0: not said
};

/// Each runs one command and returns its exit code.
int runCommand(const RunOptions &options);
int benchCommand(const BenchOptions &options);
int trainCommand(const TrainOptions &options);
int evalCommand(const EvalOptions &options);
/// Writes the parameters of a checkpoint to a file.
int exportCommand(const ExportOptions &options);
int tuneCommand(const TuneOptions &options);
int infoCommand(const RunningOptions &options);
/// Lists the checkpoints of a folder, which may be a run's, and reads all of
/// each.
int checkpointsCommand(const std::string &folder, bool json);
/// Writes the page of the run in a folder to `output`, or beside the run.
int reportCommand(const std::string &folder, const std::string &output);
/// Says what data have, finds damaged samples, or writes indices of shards.
int dataCommand(const DataCommandOptions &options);
/// Says what this machine can run, and what would make it faster or safer for
/// runs that keep their files in a folder.
int doctorCommand(const std::string &folder, bool json);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_OPTIONS_H

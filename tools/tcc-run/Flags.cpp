#include "tools/tcc-run/Flags.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

using namespace tcc;
using namespace tcc::tools;

void tools::addRunning(CLI::App &command, RunningOptions &options) {
  command.add_option("PACKAGE", options.package, "the package to run")
      ->type_name(kFileType)
      ->required();
  command
      .add_option("--threads", options.threads,
                  "threads (default: as many as the process may use)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--device", options.device,
                     "cpu, cuda[:N] or emulated (default: the package's)");
  command
      .add_option("--weights", options.weights,
                  "safetensors file with weights that replace the model's")
      ->type_name(kFileType);
  command
      .add_option("--tune-cache", options.tuneCache,
                  "the fastest plans of kernels and ways of libraries, as "
                  "tune writes them (tune's default: MODEL.tune)")
      ->type_name(kFileType);
  command.add_flag("--json", options.json, "print one JSON object");
  CLI::Option *quiet =
      command.add_flag("-q,--quiet", options.quiet, "print errors only");
  command.add_flag("-v,--verbose", options.verbose, "say what is done")
      ->excludes(quiet);
  command.add_flag("--symbols", options.symbols,
                   "name kernels: /tmp/perf-PID.map for perf, code for gdb");
}

void tools::addInputs(CLI::App &command, InputOptions &options) {
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
      .add_option("--variant", options.variant,
                  "N: the place of its sizes in the lists of tcc --dim, from 0 "
                  "on; default: the first that takes the given inputs")
      ->check(CLI::Range(0, 65535));
  command
      .add_flag("--random-inputs{0}", options.randomSeed,
                "make the inputs that are not given; =SEED, default 0")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void tools::addData(CLI::App &command, DataOptions &options) {
  command
      .add_option("--data", options.data,
                  "npz:FILE, npy:FOLDER or safetensors:FILE: an array for each "
                  "input and the target, samples first; of a language model "
                  "also tokens:FILE,... (llm.c, or u16) and text:FILE,...: "
                  "windows of them; of images webdataset:FILE,... (tar "
                  "shards) and images:FOLDER (a folder for each class); "
                  "NAME.toml: a [data] table, with transforms; default: "
                  "[data] of the recipe")
      ->type_name(kDataType);
  command
      .add_option(
          "--init", options.init,
          "safetensors file, one of torch.save (.pth, .bin), or a .index.json "
          "of several, with parameters to begin with")
      ->type_name(kFileType);
  command
      .add_option("--checkpoint-dir", options.checkpointDir,
                  "folder of checkpoints: DIR/step-N")
      ->type_name(kFolderType);
  command
      .add_option(kRanksFlag, options.ranks,
                  "processes on this machine that share the batches")
      ->check(CLI::Range(1, 1024));
}

/// Nothing for what is no choice.
static std::optional<runtime::CheckpointChoice>
readChoice(std::string_view text) {
  using Choice = runtime::CheckpointChoice;
  if (text == "newest")
    return Choice{Choice::Kind::newest};
  if (text == "best")
    return Choice{Choice::Kind::best};
  Choice choice = {Choice::Kind::step};
  const char *end = text.data() + text.size();
  auto [rest, failure] = std::from_chars(text.data(), end, choice.step);
  bool isStep = failure == std::errc() && rest == end && choice.step >= 0;
  return isStep ? std::optional(choice) : std::nullopt;
}

void tools::addCheckpoint(CLI::App &command, runtime::CheckpointChoice &choice,
                          bool &ema) {
  command
      .add_option_function<std::string>(
          "--checkpoint",
          [&choice](const std::string &text) {
            auto chosen = readChoice(text);
            if (!chosen)
              throw CLI::ValidationError(
                  "--checkpoint",
                  "'" + text + "' must be newest, best or a number of updates");
            choice = *chosen;
          },
          "newest, best (by the run's evaluations) or N: which one of the "
          "folder (default: newest)")
      ->needs("--checkpoint-dir");
  command
      .add_flag("--ema", ema,
                "take the running means of parameters, which params.ema made")
      ->needs("--checkpoint-dir");
}

CLI::Option *tools::addExportTarget(CLI::App &command, const char *flag,
                                    ExportTarget &target) {
  CLI::Option *file =
      command
          .add_option(flag, target.file,
                      "write the parameters to a safetensors file, or into a "
                      "model: --onnx")
          ->type_name(kFileType);
  command
      .add_option("--onnx", target.onnx,
                  "the ONNX model that the package was made from: the file "
                  "written is that model with the trained parameters")
      ->needs(file)
      ->type_name(kFileType);
  return file;
}

void tools::addTolerance(CLI::App &command, Tolerance &options) {
  command.add_option("--rtol", options.rtol, "relative tolerance")
      ->capture_default_str();
  command
      .add_option("--atol", options.atol,
                  "absolute tolerance, as a fraction of the largest value")
      ->capture_default_str();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// `isValid` may be asked of any number; `type` stands in the help.
template <typename T>
static CLI::Validator makeCheck(const char *expected, const char *type,
                                bool (*isValid)(T value)) {
  auto check = [=](const std::string &text) -> std::string {
    T value{};
    const char *end = text.data() + text.size();
    auto [rest, failure] = std::from_chars(text.data(), end, value);
    if (failure == std::errc() && rest == end && isValid(value))
      return "";
    return "'" + text + "' must be " + expected;
  };
  return CLI::Validator(check, type);
}

CLI::Validator tools::makeCountCheck() {
  return makeCheck<int64_t>("a whole number, at least 1", "at least 1",
                            [](int64_t value) { return value >= 1; });
}

CLI::Validator tools::makePositiveCheck() {
  return makeCheck<double>("a number above 0", "above 0", [](double value) {
    return value > 0 && std::isfinite(value);
  });
}

CLI::Validator tools::makeNonNegativeCheck() {
  return makeCheck<double>(
      "a number, at least 0", "at least 0",
      [](double value) { return value >= 0 && std::isfinite(value); });
}

/// Seconds of what is written as 1d2h3m4s; 0 for anything else.
static int64_t readTime(std::string_view text) {
  constexpr std::pair<char, int64_t> kUnits[] = {
      {'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
  int64_t seconds = 0;
  for (auto [unit, size] : kUnits) {
    int64_t count = 0, part = 0;
    const char *end = text.data() + text.size();
    auto [rest, failure] = std::from_chars(text.data(), end, count);
    if (failure != std::errc() || rest == end || *rest != unit)
      continue;
    if (count < 0 || __builtin_mul_overflow(count, size, &part) ||
        __builtin_add_overflow(seconds, part, &seconds))
      return 0;
    text.remove_prefix(rest + 1 - text.data());
  }
  return text.empty() ? seconds : 0;
}

CLI::Validator tools::makeTimeCheck() {
  auto check = [](std::string &text) -> std::string {
    int64_t seconds = readTime(text);
    if (seconds == 0)
      return "'" + text + "' must be a time as 23h50m";
    text = std::to_string(seconds);
    return "";
  };
  return CLI::Validator(check, "as 23h50m");
}

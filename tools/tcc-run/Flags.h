//===- Flags.h - Flags of the commands that run packages --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_FLAGS_H
#define TCC_TOOLS_TCCRUN_FLAGS_H

#include "tools/tcc-run/Options.h"

namespace CLI {
class App;
class Option;
class Validator;
} // namespace CLI

namespace tcc::tools {

// What values are, as the help calls them.
inline constexpr char kFileType[] = "FILE", kFolderType[] = "DIR";
inline constexpr char kDataType[] = "SPEC", kSettingType[] = "KEY=VALUE";

inline constexpr char kRanksFlag[] = "--ranks";

void addRunning(CLI::App &command, RunningOptions &options);
void addInputs(CLI::App &command, InputOptions &options);
void addData(CLI::App &command, DataOptions &options);
void addCheckpoint(CLI::App &command, runtime::CheckpointChoice &choice,
                   bool &ema);
/// Returns the option for the file, which `flag` names.
CLI::Option *addExportTarget(CLI::App &command, const char *flag,
                             ExportTarget &target);
void addTolerance(CLI::App &command, Tolerance &options);

/// Checks of numbers.
CLI::Validator makeCountCheck();
CLI::Validator makePositiveCheck();
CLI::Validator makeNonNegativeCheck();
/// Checks times as 23h50m: days, hours, minutes and seconds, each at most once,
/// and makes each a number of seconds.
CLI::Validator makeTimeCheck();

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_FLAGS_H

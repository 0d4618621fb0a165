//===- RunFlags.h - The flags of a run in a folder --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_RUNFLAGS_H
#define TCC_TOOLS_TCCRUN_RUNFLAGS_H

#include "tools/tcc-run/Options.h"

namespace CLI {
class App;
}

namespace tcc::tools {

/// Adds --run to a command that has no flags yet: of those that it gets after
/// this, --resume and --resume-if-any give the ones that the command line lacks
/// the values that are recorded in the folder, and --checkpoint-dir and
/// --log-dir are in the folder where nothing says otherwise. `options.run` gets
/// what is to be recorded.
void addRunFolder(CLI::App &command, TrainOptions &options);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RUNFLAGS_H

//===- Session.h - A package opened and bound for a command -----*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_SESSION_H
#define TCC_TOOLS_TCCRUN_SESSION_H

#include "runtime/executor/Context.h"
#include "runtime/package/Tensor.h"
#include "runtime/train/Session.h"
#include "tools/tcc-run/Options.h"

#include <map>

namespace tcc::tools {

/// A context with the inputs that the flags name; owns the tensors.
struct Session {
  /// The session of a training package, as it is before training; else null.
  std::unique_ptr<runtime::TrainingSession> training;
  std::unique_ptr<runtime::Context> context;
  std::map<size_t, runtime::Tensor> inputs; ///< by position
};

/// The package, its code for this CPU, its weights or those of the flags.
runtime::Result<std::shared_ptr<const runtime::Executable>>
loadExecutable(const RunningOptions &running);

runtime::Result<Session> openSession(const RunningOptions &running,
                                     const InputOptions &inputs);
runtime::Result<Session>
openSession(std::shared_ptr<const runtime::Executable> executable, int threads,
            const InputOptions &inputs);

/// Prints a failure to stderr and returns its exit code; 0 if there is none.
int report(const runtime::Status &status);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_SESSION_H

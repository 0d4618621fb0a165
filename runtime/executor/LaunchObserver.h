//===- LaunchObserver.h - Sees the launches of a walk -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_LAUNCHOBSERVER_H
#define TCC_RUNTIME_EXECUTOR_LAUNCHOBSERVER_H

#include "runtime/base/Status.h"
#include "runtime/package/Program_generated.h"

#include <span>

namespace tcc::runtime {

/// Called for each launch of a walk, in order, on the thread that walks, which
/// waits for all that came before: who asks for times alone uses a Trace. An
/// error ends the walk.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  /// `buffers` are those of the launch: inputs, outputs, then that of faults.
  virtual Status before(const format::Launch &launch,
                        std::span<void *const> buffers) = 0;
  /// Once the kernel has run without a fault.
  virtual Status after(const format::Launch &launch,
                       std::span<void *const> buffers) = 0;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_LAUNCHOBSERVER_H

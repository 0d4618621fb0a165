//===- Machine.h - Where facts of a machine come from -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_MACHINE_H
#define TCC_TOOLS_TCCRUN_DOCTOR_MACHINE_H

#include "runtime/devices/cuda/Driver.h"
#include "tools/tcc-run/doctor/DiskSpeed.h"
#include "tools/tcc-run/doctor/Nvml.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tcc::tools::doctor {

/// No limit of a process.
inline constexpr uint64_t kUnlimited = UINT64_MAX;

struct Limit {
  uint64_t soft, hard; ///< kUnlimited: none
};

/// Bytes of a file system.
struct Space {
  uint64_t total;
  uint64_t free; ///< for this user
};

struct ClockState {
  bool isSynchronized;
  int64_t maxErrorMicroseconds; ///< as the kernel believes
};

/// One of NVIDIA's libraries, as the runtime opens it.
struct LibraryVersion {
  std::string name; ///< "13.4.0"
  int major;
};

/// What no file says; each may be called at any time, by one thread.
struct Calls {
  /// The limit RLIMIT_... `resource`, by getrlimit.
  std::function<runtime::Result<Limit>(int resource)> limit;
  /// CPUs that this process may run on.
  std::function<runtime::Result<std::vector<int>>()> affinity;
  std::function<runtime::Result<Space>(const std::string &path)> space;
  /// The magic number of the file system, by statfs.
  std::function<runtime::Result<uint64_t>(const std::string &path)> fileSystem;
  std::function<runtime::Result<DiskSpeed>(const std::string &folder)>
      diskSpeed;
  std::function<runtime::Result<ClockState>()> clock;
  std::function<bool()> isRoot;
  /// A variable of the environment; nothing if it is not set.
  std::function<std::optional<std::string>(const char *name)> environment;
  /// Whether CPU and system have a feature, by LLVM's name for it.
  std::function<bool(std::string_view name)> hasCpuFeature;
  /// The level of the x86-64 psABI.
  std::function<int()> cpuLevel;
  std::function<runtime::Result<const runtime::cuda::Driver *>()> cudaDriver;
  std::function<runtime::Result<const Nvml *>()> nvml;
  /// Whether a plugin of the runtime exports a symbol.
  std::function<runtime::Status(const char *plugin, const char *symbol)> plugin;
  std::function<runtime::Result<LibraryVersion>()> cublasLt, cudnn, nccl;
};

/// The calls of this system.
Calls systemCalls();

struct Machine {
  std::string root;         ///< where proc and sys are; empty: the system's
  std::string folder = "."; ///< for checkpoints and data
  Calls calls;

  /// The text of a small file below the root; Code::Io if there is none.
  runtime::Result<std::string> read(const std::string &path) const;
  /// The whole number that the file has; Code::BadData if it has another text.
  runtime::Result<int64_t> readInteger(const std::string &path) const;
  /// The choice in brackets; Code::BadData if there is none.
  runtime::Result<std::string> readChosen(const std::string &path) const;
  /// The numbers of a list like "0-3,8"; Code::BadData if it is none.
  runtime::Result<std::vector<int>> readList(const std::string &path) const;
  bool exists(const std::string &path) const;
  /// Names in a folder, sorted; none if there is no such folder.
  std::vector<std::string> list(const std::string &path) const;

  /// CPUs that the process may keep busy at once: those of its mask, and of its
  /// quota.
  runtime::Result<int> countCpus() const;
  /// A shell line that only root may run.
  std::string asRoot(const std::string &command) const;
  /// The shell line that writes a value into a file of proc or sys.
  std::string writeTo(const std::string &path, const std::string &value) const;
};

/// Code::BadData: the file has this text, expected something else.
runtime::Status unexpected(const std::string &path, std::string_view text,
                           std::string_view expected);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_MACHINE_H

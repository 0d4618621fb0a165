//===- DiskSpeed.h - How fast a folder takes and gives bytes ----*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_DISKSPEED_H
#define TCC_TOOLS_TCCRUN_DOCTOR_DISKSPEED_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>

namespace tcc::tools::doctor {

/// What one file did, in bytes a second.
struct DiskSpeed {
  double written; ///< until the disk had them
  double read;
  uint64_t bytes; ///< that were written, and read
  bool isDirect;  ///< past the page cache
};

/// Writes and reads at most 32 MiB, for about a second. The file has no name,
/// or loses it before it has bytes: nothing is left, whatever happens. Code::Io
/// if the folder does not take it.
runtime::Result<DiskSpeed> measureDisk(const std::string &folder);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_DISKSPEED_H

//===- Groups.h - Limits of control groups ----------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_GROUPS_H
#define TCC_TOOLS_TCCRUN_DOCTOR_GROUPS_H

#include "tools/tcc-run/doctor/Machine.h"

namespace tcc::tools::doctor {

/// A number that a control group allows all its processes together.
struct GroupLimit {
  std::string group; ///< its folder, below the machine's root
  uint64_t most;
};

/// A limit's controller, and its file in the hierarchies of either version.
struct LimitFile {
  const char *controller; ///< "memory"
  const char *unified;    ///< "memory.max"
  const char *separate;   ///< "memory.limit_in_bytes", of version 1
};

/// The smallest limit of this process' group and those around it; nothing if
/// none has one. Code::BadData where a file has what is no limit.
runtime::Result<std::optional<GroupLimit>> findLimit(const Machine &machine,
                                                     const LimitFile &file);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_GROUPS_H

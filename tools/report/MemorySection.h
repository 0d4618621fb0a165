//===- MemorySection.h - What lies in arenas, on a page ---------*- C++ -*-===//
#ifndef TCC_TOOLS_REPORT_MEMORYSECTION_H
#define TCC_TOOLS_REPORT_MEMORYSECTION_H

#include "tcc/memory_use.h"
#include "tools/report/Page.h"

namespace tcc::tools {

/// Adds the bytes in use of the entry point that needs most, command by command
/// and module by module; what is there at its peak; and all entry points.
void addArenas(Section &section, const std::vector<ArenaUse> &arenas);

/// The group of each path of a module ("layers.0.conv"): its begin, as long as
/// leaves a few groups. A path that is empty is of no group.
std::vector<std::string> groupModules(const std::vector<std::string> &paths);

} // namespace tcc::tools

#endif // TCC_TOOLS_REPORT_MEMORYSECTION_H

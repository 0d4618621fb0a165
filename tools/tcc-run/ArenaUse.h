//===- ArenaUse.h - What a package has in its arenas ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_ARENAUSE_H
#define TCC_TOOLS_TCCRUN_ARENAUSE_H

#include "runtime/package/Program_generated.h"
#include "tcc/memory_use.h"

namespace tcc::tools {

/// When the commands of an entry point use its arena. A buffer that a loop or a
/// branch uses is counted as used throughout it, one that another lane uses
/// until lane 0 has waited for that.
ArenaUse getArenaUse(const format::Entry &entry);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_ARENAUSE_H

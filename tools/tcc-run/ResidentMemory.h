//===- ResidentMemory.h - What a process has in memory ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_RESIDENTMEMORY_H
#define TCC_TOOLS_TCCRUN_RESIDENTMEMORY_H

#include <cstdint>
#include <optional>

namespace tcc::tools {

/// Bytes of this process that are in the machine's memory now (its resident
/// set), with what it maps of files; nothing where the system does not say.
std::optional<uint64_t> readResidentBytes();

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RESIDENTMEMORY_H

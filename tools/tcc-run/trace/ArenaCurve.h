//===- ArenaCurve.h - Bytes that are live at commands -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_ARENACURVE_H
#define TCC_TOOLS_TCCRUN_TRACE_ARENACURVE_H

#include "runtime/package/Program_generated.h"

#include <cstdint>
#include <unordered_map>

namespace tcc::tools {

/// How many bytes of its arena an entry point uses when a command begins, by
/// the command's number, of those that are not inside others.
using ArenaCurve = std::unordered_map<uint32_t, int64_t>;

ArenaCurve makeArenaCurve(const format::Entry &entry);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_ARENACURVE_H

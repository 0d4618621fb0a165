//===- MemoryUse.h - Says where the bytes go --------------------*- C++ -*-===//
//
// As JSON, of which text and pages are made. `tcc` asks its plan, `tcc-run` the
// package.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_CLI_MEMORYUSE_H
#define TCC_TOOLS_CLI_MEMORYUSE_H

#include "tcc/memory_use.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tcc::tools {

/// Bytes in use at each position.
std::vector<int64_t> getLiveBytes(const ArenaUse &arena);

/// {"arenas": of each its peak, the bytes in use over time and what is largest
/// at the peak; "curve": what smaller peaks cost; "fitted": what was taken of
/// that; "recomputed": what is computed again}. `decisions` is the JSON of the
/// compiler's decisions.
nlohmann::ordered_json describeMemory(const std::vector<ArenaUse> &arenas,
                                      const std::string &decisions);

/// The same as lines: of each arena what is largest at its peak.
std::string printMemory(const nlohmann::ordered_json &memory);

} // namespace tcc::tools

#endif // TCC_TOOLS_CLI_MEMORYUSE_H

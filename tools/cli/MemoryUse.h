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
/// What is in use at a position, largest first.
std::vector<const TensorUse *> listLive(const ArenaUse &arena,
                                        int64_t position);

/// What a budget cost the entry points of a package, by the JSON of its
/// decisions.
std::vector<EntryRecompute> readRecomputes(const std::string &decisions);

/// {"arenas": of each its peak, the bytes in use over time and what is largest
/// at the peak; "curve": what smaller peaks cost; "fitted": what was taken of
/// that; "recomputed": what is computed again}.
nlohmann::ordered_json
describeMemory(const std::vector<ArenaUse> &arenas,
               const std::vector<EntryRecompute> &recomputes);

/// The same as lines: of each arena what is largest at its peak.
std::string printMemory(const nlohmann::ordered_json &memory);

} // namespace tcc::tools

#endif // TCC_TOOLS_CLI_MEMORYUSE_H

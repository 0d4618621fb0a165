//===- ReadPlan.h - Reads a table [data] that was parsed --------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_READPLAN_H
#define TCC_RUNTIME_DATA_READPLAN_H

#include "runtime/data/DataPlan.h"
#include "runtime/data/Toml.h"

#include <filesystem>

namespace tcc::runtime {

/// What is wrong with a table, and in which line of its file.
struct PlanProblem {
  int line = 0;
  std::string message;
};

/// Reads the keys of [data] into a plan; paths are relative to `folder`. Stops
/// at the first problem.
std::optional<PlanProblem> readPlan(const toml::table &table,
                                    const std::filesystem::path &folder,
                                    DataPlan &plan);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_READPLAN_H

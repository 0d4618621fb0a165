//===- Budget.h - What a program needs in memory ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_BUDGET_H
#define TCC_COMPILER_PIPELINE_BUDGET_H

#include "tcc/compiler.h"

#include "dialects/exec/ExecOps.h"
#include "runtime/package/Names.h"
#include <optional>
#include <string>

namespace tcc {

/// The most bytes that a program may need, and how many of them are left for
/// what is not planned.
struct Budget {
  int64_t bytes = 0, reserved = 0;

  int64_t getPlanned() const { return bytes - reserved; }
};

/// Reads `text` and `reserve`, where they are not empty, as a budget; returns
/// what is wrong with them, or nothing.
std::string readBudget(const std::string &text, const std::string &reserve,
                       std::optional<Budget> &budget);

/// The bytes of a planned module in a process that runs it alone, or in each of
/// several ranks. What only `prepare` needs does not count.
MemoryPlan getMemoryPlan(mlir::ModuleOp module, int threads, bool hasRanks);
/// True if a process, alone or one of several ranks, runs the entry point while
/// it holds memory for the program (see format::isRun).
bool isRun(exec::EntryOp entry, bool hasRanks);

/// What learns from a batch in the module of a program that trains.
format::EntryKind getStep(mlir::ModuleOp module);
/// True if there are entry points that several ranks run.
bool mayHaveRanks(mlir::ModuleOp module);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_BUDGET_H

//===- Budget.h - What a program needs in memory ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_BUDGET_H
#define TCC_COMPILER_PIPELINE_BUDGET_H

#include "tcc/compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>

namespace tcc {

/// The most bytes that a program may need, and how many of them are left for
/// what is not planned.
struct Budget {
  int64_t bytes = 0, reserved = 0;
};

/// Reads `text` and `reserve`, where they are not empty, as a budget; returns
/// what is wrong with them, or nothing.
std::string readBudget(const std::string &text, const std::string &reserve,
                       std::optional<Budget> &budget);

/// The bytes of a planned module. What only `prepare` needs does not count.
MemoryPlan getMemoryPlan(mlir::ModuleOp module, int threads);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_BUDGET_H

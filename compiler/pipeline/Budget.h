//===- Budget.h - What a program needs in memory ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_BUDGET_H
#define TCC_COMPILER_PIPELINE_BUDGET_H

#include "tcc/compiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string_view>

namespace tcc {

/// Reads a number of bytes, "22GiB", "1.5GB" or "4096".
std::optional<int64_t> parseByteSize(std::string_view text);

/// The bytes of a planned module. What only `prepare` needs does not count.
MemoryPlan getMemoryPlan(mlir::ModuleOp module, int threads);

/// The least bytes of the largest arena that were counted for any choice of
/// what is computed again; 0 without a budget.
int64_t getLeastArena(mlir::ModuleOp module);

/// The microseconds of each entry point with all values kept.
llvm::StringMap<double> getKeptTimes(mlir::ModuleOp module);

/// What a budget adds to the time of an entry point, at most, over `kept`.
double getRecomputedShare(mlir::ModuleOp module,
                          const llvm::StringMap<double> &kept);

/// The bytes of the arena without which no entry point was found to fit; 0 if
/// all fit.
int64_t getNeededArena(mlir::ModuleOp module);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_BUDGET_H

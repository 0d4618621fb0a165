//===- RecomputeValues.h - Entry points within a budget ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTEVALUES_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTEVALUES_H

#include "tcc/memory_use.h"

#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tcc {

/// One row for each entry point but @prepare, which runs when nothing else
/// does.
struct RecomputeResult {
  std::vector<EntryRecompute> entries;

  /// The row that needs most of those without a choice that fits; null if all
  /// fit.
  const EntryRecompute *getRefused() const;
  /// The largest of the fewest bytes that the entries were counted with: no
  /// smaller arena holds all.
  int64_t getLeastBytes() const;
  /// The longest time of an entry over the one that it has in `kept` with all
  /// values kept, less 1; 0 without entries.
  double getShareOver(const RecomputeResult &kept) const;
};

/// Makes values of the scheduled `module` again until the arena of each entry
/// point has no more than `budget` bytes. Entry points that need more stay as
/// they are and are rows without a choice. Fails after an error at an op.
mlir::FailureOr<RecomputeResult> recomputeValues(mlir::ModuleOp module,
                                                 int64_t budget);

/// Says that `refused` does not fit into `budget` bytes, of which `fixed` are
/// no arena, and what would.
std::string describeRefusal(const EntryRecompute &refused, int64_t budget,
                            int64_t fixed);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTEVALUES_H

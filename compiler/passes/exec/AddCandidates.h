//===- AddCandidates.h - Kernels by other plans -----------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_ADDCANDIDATES_H
#define TCC_COMPILER_PASSES_EXEC_ADDCANDIDATES_H

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>

namespace tcc {

struct CandidateRequest {
  /// Plans of a kernel at most, its own among them. Kernels that take less than
  /// 1 % of the predicted time of every entry point keep theirs alone.
  int64_t plans = 1;
  /// The plan, as text, by which the kernel of that hash (exec::hashOf) was
  /// found to be the fastest; empty if nothing is known of it. Null: of none
  /// is.
  std::function<std::string(llvm::StringRef hash)> findFastest = {};
  /// No plan may need more scratch of a worker than its entry points have.
  bool keepsScratch = false;
};

/// Kernels of which the fastest plan was known and is theirs now, and of those
/// that got candidates.
struct CandidateCounts {
  int64_t known = 0, withCandidates = 0;
};

/// Gives kernels the plans that were found to be the fastest, if they are among
/// those that the target offers, and adds candidates. Kernels of `module` have
/// their own plans and launches already (tcc-select-kernels). Fails after an
/// error at an op.
mlir::FailureOr<CandidateCounts> addCandidates(mlir::ModuleOp module,
                                               const CandidateRequest &request);

/// A plan as text: one line, by which a tune cache names it.
std::string printPlan(mlir::DictionaryAttr plan);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_EXEC_ADDCANDIDATES_H

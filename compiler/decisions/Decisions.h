//===- Decisions.h - What the compiler chose, and why -----------*- C++ -*-===//
//
// Every choice a user may ask about (fused or not, folded, packed, recomputed)
// is recorded on the module, so that it is printed, dumped and packaged with
// the program it led to.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_DECISIONS_DECISIONS_H
#define TCC_COMPILER_DECISIONS_DECISIONS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <utility>
#include <vector>

namespace mlir::func {
class FuncOp;
}

namespace tcc {

/// One choice. `pass` is the name of the pass without its prefix, `node` the
/// model's name of the op decided on, `decision` one word or two ("folded",
/// "kept"), `reason` a clause, `numbers` what was weighed, with its unit in the
/// name ("bytes", "saved_us"), `entry` the entry point that it is about, if it
/// is about one.
struct Decision {
  std::string pass;
  std::string node;
  std::string decision;
  std::string reason;
  std::vector<std::pair<std::string, double>> numbers;
  std::string entry = {};
};

/// From now on no decisions about `module` and its clones are recorded: what is
/// compiled is the same.
void stopRecording(mlir::ModuleOp module);

/// Collects the decisions of one pass over a module and writes them to the
/// module attribute `graph.decisions` at the end of its life. Used by one
/// thread (module passes).
class DecisionLog {
public:
  DecisionLog(mlir::ModuleOp module, llvm::StringRef pass)
      : module(module), pass(pass) {}
  DecisionLog(const DecisionLog &) = delete;
  ~DecisionLog();

  void add(mlir::Operation *op, llvm::StringRef decision,
           llvm::StringRef reason,
           llvm::ArrayRef<std::pair<llvm::StringRef, double>> numbers = {},
           llvm::StringRef entry = {});

private:
  mlir::ModuleOp module;
  std::string pass;
  std::vector<Decision> decisions;
};

/// Calls `work` for each function of `module`, for several at once: it may
/// change its own function alone, and record decisions. These are written in
/// the order of the functions.
mlir::LogicalResult forEachFunction(
    mlir::ModuleOp module, llvm::StringRef pass,
    llvm::function_ref<mlir::LogicalResult(mlir::func::FuncOp, DecisionLog &)>
        work);

/// The decisions recorded on `module`, in the order they were taken.
std::vector<Decision> getDecisions(mlir::ModuleOp module);

} // namespace tcc

#endif // TCC_COMPILER_DECISIONS_DECISIONS_H

//===- LoopCut.h - Where the condition of a branch changes ------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_LOOPCUT_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_LOOPCUT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <optional>

namespace tcc::cpu {

/// A condition iv + offset < bound on the variable of a loop; the offset is the
/// sum of `added` less that of `subtracted`.
struct LoopCut {
  mlir::arith::CmpIOp condition;
  llvm::SmallVector<mlir::Value> added, subtracted;

  /// The condition of `branch`, which reads memory on both sides; nullopt if it
  /// is another one.
  static std::optional<LoopCut> find(mlir::scf::IfOp branch,
                                     mlir::scf::ForOp loop);
  /// The first value of the variable, within the bounds, for which the
  /// condition does not hold.
  mlir::Value emitPlace(mlir::OpBuilder &builder, mlir::scf::ForOp loop);
};

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_LOOPCUT_H

//===- Rows.h - Reductions by the threads of a block ------------*- C++ -*-===//
//
// All reductions of a row kernel reduce the same axes of one space
// (compiler/codegen/region/RowPlan.h); a row is what they reduce to one
// element. A team of threads works on a row:
//
//  - lanes: the last axis is reduced. A thread takes vectors of the row, one
//    every `team` vectors. Teams of up to a warp share a block; a larger team
//    is a block.
//  - columns: the last axis is kept. A thread takes a vector of columns, of
//    every `team`th row of elements; neighbouring threads take neighbouring
//    columns.
//  - panels: lanes whose rows are a panel's (RowPlan.h) share a block. Each
//    thread keeps the sums of its columns in registers.
//
// The order of combination is a function of the region's shapes alone: each
// thread its elements in order (one chain for each lane of its vectors), then
// the lanes as a tree (of lanes), then the threads of a warp as a tree and the
// warps in order, or the team in order (of columns), or the teams (of panels).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_ROWS_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_ROWS_H

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"
#include "compiler/codegen/region/RowPlan.h"

namespace tcc::cuda {

struct RowLaunch {
  codegen::RowPlan rows;
  int64_t lanes = 1; // of a vector
  int64_t team = 1;  // threads of a row, a power of two
  int64_t across =
      1; // vectors of columns of a block; teams of a block of lanes
  /// Vectors of a thread if their number is known and they stay in registers
  /// from one stage to the next; 0: a loop in each stage.
  int64_t resident = 0;

  RowLaunch(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);

  bool hasLanes() const { return rows.hasLanes(); }
  int64_t getThreads() const { return team * across; }
  /// Vectors, or rows of elements of columns, that a team walks over.
  mlir::AffineExpr getSteps() const;
  mlir::AffineExpr getBlocks() const;

private:
  bool hasManyColumns() const;
  void chooseLanes(graph::FusedOp region);
  void chooseResident(graph::FusedOp region);
  void chooseTeam(graph::FusedOp region,
                  llvm::ArrayRef<graph::SymbolAttr> symbols);
  void choosePanelTeam(graph::FusedOp region, int64_t vectors);
};

/// What a reduction has combined so far: its value and, of a reduction to an
/// index, the index.
struct Partial {
  Value value, index;
};

/// How the elements of a reduction are combined, on any thread.
class Combiner {
public:
  Combiner(KernelBuilder &b, mlir::Operation *op) : b(b), op(op) {}

  /// The partial of no element.
  Partial getNeutral();
  Partial getElement(Value element, Value index) {
    return {element, toIndex ? index : Value()};
  }
  Partial combine(Partial lhs, Partial rhs);
  Partial select(Value condition, Partial then, Partial otherwise);
  Partial shuffle(Partial partial, int64_t mask);
  /// As an element of the result.
  Value getResult(Partial partial, codegen::ElementEmitter &elements);

  mlir::Type getValueType();
  bool hasIndex() const { return bool(toIndex); }

private:
  Value isBetter(Partial x, Partial y);

  KernelBuilder &b;
  mlir::Operation *op;
  graph::ArgReduceOp toIndex = llvm::dyn_cast<graph::ArgReduceOp>(op);
};

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_ROWS_H

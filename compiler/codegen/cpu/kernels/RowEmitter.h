//===- RowEmitter.h - Emits the tasks of a row kernel -----------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_ROWEMITTER_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_ROWEMITTER_H

#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/region/RowPlan.h"

namespace tcc::cpu {

using codegen::RowPlan;
using codegen::RowValue;

/// What lane and column kernels share.
class RowEmitter {
public:
  RowEmitter(KernelFrame &frame, const RowPlan &plan);

protected:
  using Indices = llvm::SmallVector<Value>;

  Value size(mlir::OpBuilder &b, mlir::AffineExpr expression) {
    return frame.elements.size(b, loc, expression);
  }
  Indices sizes(mlir::OpBuilder &b, llvm::ArrayRef<mlir::AffineExpr> extents);
  /// Indices of the space from those of its kept and its reduced axes.
  Indices getSpaceIndices(ValueRange kept, ValueRange reduced) const;
  /// The row-major position in the reduced axes.
  Value getReducedPosition(mlir::OpBuilder &b, ValueRange reduced);
  Buffer getScratch(mlir::OpBuilder &b, int64_t offset, mlir::Type elementType);

  /// Lets values kept in earlier stages be read from `position` of the
  /// scratch, and keeps those of this stage there.
  void readKept(mlir::OpBuilder &b, unsigned stage, ValueRange at,
                Value position);
  void writeKept(mlir::OpBuilder &b, unsigned stage, ValueRange at,
                 Value position);
  /// A result may lie in the buffer of an input that another result reads: all
  /// elements at `at` are made before one is stored.
  void storeResults(mlir::OpBuilder &b, llvm::ArrayRef<unsigned> results,
                    ValueRange at);

  /// The better one of (value, index) and a new pair.
  std::pair<Value, Value> emitBetter(mlir::OpBuilder &b, graph::ArgReduceOp op,
                                     Value value, Value index, Value newValue,
                                     Value newIndex);
  /// A value that any element is at least as good as.
  Value emitWorst(mlir::OpBuilder &b, graph::ArgReduceOp op);

  llvm::SmallVector<mlir::Operation *> getReductions(unsigned stage) const;

  KernelFrame &frame;
  const RowPlan &plan;
  mlir::Location loc;
  llvm::SmallVector<Buffer> keptBuffers;
};

class LaneRowEmitter : RowEmitter {
public:
  LaneRowEmitter(KernelFrame &frame, const RowPlan &plan);
  void emitTask(mlir::OpBuilder &b, Value task);

private:
  /// A chunk of the last axis: `count` elements from `first`.
  struct Chunk {
    Indices reduced; // of the other axes
    Value first, count;
    bool isWhole;
  };
  using Accumulators = llvm::SmallVector<Value>;

  void emitRow(mlir::OpBuilder &b, Value row);
  void startPanel(mlir::OpBuilder &b);
  void addToPanel(mlir::OpBuilder &b, ValueRange at, Value position);
  void storePanel(mlir::OpBuilder &b, Value task);
  void emitStage(mlir::OpBuilder &b, unsigned stage);
  void emitLanes(mlir::OpBuilder &b);
  void emitScalars(mlir::OpBuilder &b, mlir::Operation *op, bool writes);
  Accumulators walkLanes(mlir::OpBuilder &b, Indices reduced,
                         Accumulators accumulators);
  Accumulators walkLastAxis(mlir::OpBuilder &b, Indices reduced,
                            Accumulators accumulators);
  Accumulators walkScalars(mlir::OpBuilder &b, mlir::Operation *op, bool writes,
                           Indices reduced, Accumulators accumulators);
  Accumulators emitChunk(mlir::OpBuilder &b, const Chunk &chunk,
                         Accumulators accumulators);
  Accumulators combineScalar(mlir::OpBuilder &b, mlir::Operation *op,
                             ValueRange reduced, Accumulators accumulators);
  void emitResults(mlir::OpBuilder &b);
  /// Loops over the reduced axes behind those of `outer`.
  using ReducedBody =
      llvm::function_ref<void(mlir::OpBuilder &, ValueRange reduced)>;
  void forReduced(mlir::OpBuilder &b, Indices outer, ReducedBody body);
  Value combineLanes(mlir::OpBuilder &b, graph::ReductionOpInterface op,
                     ValueRange lanes);

  Indices row;                                          // of the current row
  unsigned stage = 0;                                   // the current one
  llvm::SmallVector<graph::ReductionOpInterface> lanes; // its reductions
  llvm::DenseMap<mlir::Type, llvm::SmallVector<Buffer>> buffers;
  llvm::SmallVector<Buffer> temporaries; // kLanes elements for each of `lanes`
  llvm::SmallVector<Buffer> panelSums;   // an element a column
};

class ColumnRowEmitter : RowEmitter {
public:
  ColumnRowEmitter(KernelFrame &frame, const RowPlan &plan);
  void emitTask(mlir::OpBuilder &b, Value task);

private:
  /// `kept` are the kept indices of a group, or of a column without groups.
  using GroupBody = llvm::function_ref<void(mlir::OpBuilder &, ValueRange kept,
                                            Value firstColumn)>;
  /// `inGroup` is the index of a column in its group, none without groups.
  using ColumnBody = llvm::function_ref<void(mlir::OpBuilder &, ValueRange kept,
                                             ValueRange inGroup, Value column)>;

  void forGroups(mlir::OpBuilder &b, GroupBody body);
  /// One loop over the columns of all groups, which runs along memory.
  void forColumns(mlir::OpBuilder &b, ColumnBody body);
  void emitInit(mlir::OpBuilder &b, unsigned stage,
                llvm::ArrayRef<Buffer> buffers);
  void walk(mlir::OpBuilder &b, Indices reduced, unsigned stage);
  void emitElements(mlir::OpBuilder &b, ValueRange reduced, unsigned stage);
  void accumulate(mlir::OpBuilder &b, unsigned reduction, ValueRange at,
                  ValueRange reduced, Value column);
  /// Adds what was accumulated since the last time.
  void addToTotals(mlir::OpBuilder &b, unsigned stage);
  /// Gives all columns the total of their group.
  void spreadTotals(mlir::OpBuilder &b, unsigned stage);
  /// Lets results of earlier stages be read at the kept indices `at`.
  void readRows(mlir::OpBuilder &b, unsigned stage, ValueRange at,
                Value column);
  /// Computes those of a stage, and lets those of this and earlier ones be
  /// read.
  void writeRowValues(mlir::OpBuilder &b, unsigned stage);
  void readRowValues(mlir::OpBuilder &b, unsigned stage, ValueRange at,
                     Value column);

  Indices row; // of the current task
  Value firstColumn, lastColumn;
  llvm::SmallVector<Buffer> accumulators, accumulatorIndices;
  llvm::SmallVector<Buffer> groupTotals; // of a stage that is done: by column
  llvm::SmallVector<Buffer> rowBuffers;  // of plan.rowValues, by column
};

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_ROWEMITTER_H

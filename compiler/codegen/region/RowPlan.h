//===- RowPlan.h - The stages of a row kernel -------------------*- C++ -*-===//
//
// All reductions of a row kernel reduce the same axes of one space. A row is
// what they reduce to one element. Reductions that need results of others come
// in a later stage, that is another walk over the row; what all reductions of
// the region have been computed for is the last stage, that stores results.
//
// The order of combination is a function of the region's shapes alone, never of
// threads or tasks:
//  - lanes: the last axis is reduced. Its element j goes to lane j mod 64, the
//    other reduced axes follow one after the other; the lanes are combined as a
//    binary tree.
//  - columns: the last axis is kept. Elements are combined one after the other.
//  - groups of columns: the last axis is reduced but too short for lanes, the
//    one before it is kept, and others are reduced (a group norm with the
//    channels last). Both are walked as columns. Every 256 elements those of a
//    group are combined one after the other, and the parts one after the other.
//
// A kernel of lanes may also reduce the columns of panels, so many neighbouring
// rows each. A task walks over the rows of a panel, and in the last stage of
// each combines its elements with those of the rows before. Nothing else reads
// these sums.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_ROWPLAN_H
#define TCC_COMPILER_CODEGEN_REGION_ROWPLAN_H

#include "dialects/graph/GraphOps.h"

namespace tcc::codegen {

inline constexpr int64_t kLanes = 64;

/// A reduction of the space, and the stage that computes it.
struct Reduction {
  mlir::Operation *op;
  unsigned stage;
};

/// A value of the space that several stages read and that is costly: computed
/// in one stage, and read from scratch in later ones.
struct KeptValue {
  mlir::Value value;
  unsigned stage;
  int64_t offset; // in the worker's scratch, bytes
};

/// A value of rows that elements of the space are computed from, which column
/// kernels compute once, before the walk of a stage.
struct RowValue {
  mlir::Value value;
  unsigned stage;
  int64_t offset; // in the worker's scratch, bytes
};

class RowPlan {
public:
  /// A reduced last axis of fewer than `leastLanes` elements may be one of
  /// groups of columns.
  RowPlan(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols,
          int64_t leastLanes = 1);

  graph::Extents space;
  llvm::SmallVector<bool> isReduced; // one an axis of the space
  llvm::SmallVector<Reduction> reductions;
  unsigned stageCount = 0; // of reductions; the last stage comes after these
  llvm::SmallVector<KeptValue> kept;
  llvm::SmallVector<RowValue> rowValues; // in program order
  /// Positions of the results of the space's shape, and of a row's.
  llvm::SmallVector<unsigned> wholeResults, rowResults;
  int64_t scratchBytes = 0;

  /// Reductions of the columns of panels, and the results' positions that each
  /// has; empty if there are none.
  llvm::SmallVector<mlir::Operation *> panelReductions;
  llvm::SmallVector<llvm::SmallVector<unsigned, 1>> panelResults;

  bool hasLanes() const { return isReduced.back() && !hasGroups(); }
  bool hasGroups() const { return groupSize > 1; }
  bool hasPanels() const { return !panelReductions.empty(); }
  /// Extents of the axes before a panel's, and of a panel's rows.
  graph::Extents getPanelExtents() const;
  graph::Extents getPanelRowExtents() const;
  /// Extents of the kept axes, without the columns of a column kernel.
  graph::Extents getRowExtents() const;
  /// Extents of the reduced axes, without that of a group's columns.
  graph::Extents getReducedExtents() const;
  /// The columns of a column kernel; those of a group are neighbours.
  mlir::AffineExpr getColumns() const;
  mlir::AffineExpr getTasks() const;

  int64_t rowsPerTask = 1; // lanes
  int64_t columns = 0;     // columns of a task, in column kernels
  int64_t groupSize = 1;   // columns of a group, all of one task
  /// Where the accumulators of a column kernel's reductions, or of those of a
  /// panel, lie in the scratch.
  llvm::SmallVector<int64_t> accumulatorOffsets;

private:
  void findReductions(mlir::Block &body);
  void sortResults(mlir::Block &body);
  void chooseGroups(int64_t leastLanes);
  void chooseColumns(llvm::ArrayRef<graph::SymbolAttr> symbols);
  void chooseTasks(llvm::ArrayRef<graph::SymbolAttr> symbols);
  void keepCostlyValues(mlir::Block &body,
                        llvm::ArrayRef<graph::SymbolAttr> symbols);
  void findRowValues(mlir::Block &body);
  void placeAccumulators(llvm::ArrayRef<graph::SymbolAttr> symbols);
  bool isInSpace(mlir::Value value) const;
};

/// Whether a reduction (isOnePerRow) reduces the last axis of its operand.
bool reducesLastAxis(mlir::Operation *op);

/// Makes all reductions of `body`, but those of panels, reduce the same axes of
/// operands of the same extents, and its results have those extents, or those
/// of a row, or of a panel's columns.
mlir::LogicalResult alignReductions(mlir::Block &body);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_ROWPLAN_H

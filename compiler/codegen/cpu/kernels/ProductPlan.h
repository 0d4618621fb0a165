//===- ProductPlan.h - How a CPU computes a product of matrices -*- C++ -*-===//
//
// What graph::ProductView says of an op becomes one contraction: which loops
// are its batch, rows, columns and depth, how its tiles get each operand, and
// its blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_PRODUCTPLAN_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_PRODUCTPLAN_H

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/PaddedWindows.h"
#include "compiler/codegen/cpu/tile/PlaneConvolution.h"
#include "dialects/graph/Gathers.h"

namespace tcc::cpu {

/// Loops of a product by their numbers, outer ones first.
using Loops = llvm::SmallVector<unsigned>;

/// The axes [images, spatial..., channels] of an operand as windows slide over
/// it: positions are the loops of images and outputs, taps those of the window
/// and of the channels.
struct WindowLoops {
  Loops positions, taps;
  llvm::SmallVector<int64_t> strides, dilations, padLow; // of spatial axes
  int64_t channels = 0;                                  // of a group
};

/// Slices along an axis that a loop of the batch walks over, each at an index
/// of the gather's.
struct GatheredSlices {
  graph::GatherOp op;
  unsigned loop;
  mlir::AffineExpr stride; // from slice to slice of x
};

/// How tiles get one side of a product.
struct SidePlan {
  Value tensor;
  MatrixAccess access;
  std::optional<graph::LoopStrides> walk;
  std::optional<GatheredSlices> gathered; // beside what `walk` says
  std::optional<WindowLoops> windows;
};

class ProductPlan {
public:
  explicit ProductPlan(graph::FusedOp region);

  mlir::AffineExpr count(llvm::ArrayRef<unsigned> loops) const;
  /// Units of the depth.
  mlir::AffineExpr getUnits() const { return k.ceilDiv(packing.group); }
  mlir::AffineExpr getTasks() const;
  /// Tasks where it is computed by blocks.
  mlir::AffineExpr getBlockTasks() const;
  /// Their number, scratch and plan; an error if the attribute's is not
  /// possible.
  mlir::FailureOr<TaskPlan> describe() const;
  /// Whether the left side's windows are read in units, as they lie.
  bool hasUnits() const { return lhs.windows->channels % packing.group == 0; }
  /// Types of what tasks copy, null if that is nothing.
  mlir::Type getPackedLhs() const;
  mlir::Type getPackedRhs() const { return rhs.access.getPackedType(); }

  graph::ProductOpInterface op;
  graph::ProductView view;
  graph::Extents extents; // of all loops
  Loops batch, rows, columns, depth;
  mlir::AffineExpr m, n, k;
  /// Rows, or columns, are one position of the results: nothing tells their
  /// loops apart.
  bool rowsArePositions = false, columnsArePositions = false;
  Packing packing;
  SidePlan lhs, rhs;
  BlockChoice blocking;
  mlir::Type sum;
  /// Where it is computed by planes: see PlaneConvolution.h. Rows of results of
  /// a task; 0 where it is not. Units that tile registers can multiply are
  /// computed by blocks then.
  std::optional<PlaneWindow> planes;
  int64_t planeRows = 0;
  /// How tile registers read the left side's windows, if not as copies of each.
  std::optional<PaddedWindows> padded;

private:
  std::optional<PlaneWindow> matchPlanes() const;
  std::optional<PaddedWindows> matchPadded() const;
  int64_t choosePlanes(graph::FusedOp region);
  int64_t getBlockScratch() const;
  void numberLoops();
  void joinRows();
  void walkOver(const graph::ProductSide &side, SidePlan &plan) const;
  SidePlan makeSide(const graph::ProductSide &side,
                    llvm::ArrayRef<unsigned> lanes) const;
  std::optional<WindowLoops> matchWindows(const graph::ProductSide &side,
                                          llvm::ArrayRef<unsigned> lanes) const;
  std::optional<WindowLoops> matchWindows(const SidePlan &side) const;
  mlir::AffineExpr getStride(const SidePlan &side,
                             llvm::ArrayRef<unsigned> loops) const;
  void chooseAccess(SidePlan &side);
  bool holdsUnits(const SidePlan &side, Packing packing) const;
  Packing choosePacking() const;
  void setPacking(SidePlan &side);
  bool arePositions(llvm::ArrayRef<unsigned> loops,
                    graph::FusedOp region) const;
  bool isDeep() const;
  Blocking chooseBlocks(const ContractionSizes &sizes) const;
};

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_PRODUCTPLAN_H

//===- RegionFrame.h - A region while its kernel is emitted -----*- C++ -*-===//
//
// What kernels of all targets have in common: the buffers of a region's inputs
// and results, and the elements that are pulled from them.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_REGIONFRAME_H
#define TCC_COMPILER_CODEGEN_REGION_REGIONFRAME_H

#include "compiler/codegen/region/ElementEmitter.h"
#include "compiler/target/Target.h"

namespace tcc::codegen {

/// The op of `region` that decides its loops; null if there is none.
mlir::Operation *getAnchor(graph::FusedOp region);

/// The symbols that sizes in `op` are made of: those of the kernel that it
/// stands in, if that has its own, else the module's.
llvm::SmallVector<graph::SymbolAttr> getSizeSymbols(mlir::Operation *op);

/// The symbols in types and size expressions of the region, increasing.
llvm::SmallVector<unsigned> getUsedSymbols(graph::FusedOp region);

/// What is known of a kernel on every target; `region` is `fused`, simplified.
KernelInfo describeKernel(graph::FusedOp fused, graph::FusedOp region,
                          const Target &target);

/// The product of `extents` at the upper bounds of the symbols, as far as i64
/// can tell.
int64_t getMaxCount(llvm::ArrayRef<mlir::AffineExpr> extents,
                    llvm::ArrayRef<graph::SymbolAttr> symbols);

/// Rows that one task works on so that it does about kTaskGrain elements of
/// `rowSize` each.
inline constexpr int64_t kTaskGrain = 16384;
int64_t getRowsPerTask(int64_t rowSize);

/// The buffers of a kernel in the order of its launch.
struct RegionBuffers {
  llvm::SmallVector<Buffer> inputs, results;
  Buffer fault; // if the region checks indices
};

/// Takes a pointer for each buffer from `nextPointer`. Inputs that lie in a
/// result's buffer are read through that; LLVM is told that no others overlap.
RegionBuffers makeBuffers(graph::FusedOp fused, graph::FusedOp region,
                          llvm::function_ref<Value()> nextPointer);

struct RegionFrame {
  graph::FusedOp region; // simplified
  llvm::ArrayRef<graph::SymbolAttr> symbols;
  ElementEmitter &elements;
  llvm::SmallVector<Buffer> results; // one a result of the region
  mlir::Location loc;

  mlir::Block &getBody() { return region.getBody().front(); }
  /// What the region yields.
  mlir::OperandRange getYields() {
    return getBody().getTerminator()->getOperands();
  }
  Value size(mlir::OpBuilder &b, mlir::AffineExpr expression) {
    return elements.size(b, loc, expression);
  }
  llvm::SmallVector<Value> sizes(mlir::OpBuilder &b,
                                 llvm::ArrayRef<mlir::AffineExpr> expressions) {
    return llvm::map_to_vector(expressions,
                               [&](mlir::AffineExpr e) { return size(b, e); });
  }
};

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_REGIONFRAME_H

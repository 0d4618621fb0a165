//===- Windows.h - Convolution and pooling ----------------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_WINDOWS_H
#define TCC_FRONTENDS_WINDOWS_H

#include "frontends/Emitter.h"

namespace tcc {

/// Larger windows, strides, dilations and paddings are refused.
constexpr int64_t kMaxWindow = int64_t(1) << 30;

/// One entry per spatial axis in every array.
struct Window {
  llvm::SmallVector<int64_t> extents, strides, dilations, low, high;
  /// The padding that an average counts; without what ceil mode adds.
  llvm::SmallVector<int64_t> countLow, countHigh;
  bool countPadding = false;

  /// A dense window of stride 1 without padding.
  explicit Window(llvm::ArrayRef<int64_t> extents);

  int64_t getRank() const { return extents.size(); }
  /// Elements that the window spans.
  int64_t getReach(int64_t i) const {
    return (extents[i] - 1) * dilations[i] + 1;
  }
};

/// Ceil mode: padding at the end for a last window that is not full, unless it
/// would start beyond the input; false after failing.
bool padForCeil(Emitter &emitter, Window &window, int64_t i,
                mlir::AffineExpr extent);

mlir::Value emitPool(Emitter &emitter, graph::PoolKind kind, mlir::Value x,
                     const Window &window);
mlir::Value emitConv(Emitter &emitter, mlir::Value x, mlir::Value filter,
                     const Window &window, int64_t groups);
/// `extra` are elements at the end of each axis that no window reaches.
mlir::Value emitTransposedConv(Emitter &emitter, mlir::Value x,
                               mlir::Value filter, Window window,
                               llvm::ArrayRef<int64_t> extra, int64_t groups);
/// Adds a vector of one element a channel.
mlir::Value addBias(Emitter &emitter, mlir::Value x, mlir::Value bias);

} // namespace tcc

#endif // TCC_FRONTENDS_WINDOWS_H

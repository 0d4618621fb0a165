//===- Sampling.h - Elements at computed positions --------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_SAMPLING_H
#define TCC_FRONTENDS_ONNX_SAMPLING_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

enum class Interpolation { nearest, linear, cubic };
enum class Outside { zeros, border, reflection };

struct SampleOptions {
  Interpolation interpolation;
  Outside outside;
  bool alignsCorners;
};

/// The bounds of an axis as scalars: positions beyond low and high are outside.
struct Bounds {
  mlir::Value low, high, lastIndex;
};

/// One element along an axis, for each position: its weight is 1 if null.
struct Tap {
  mlir::Value index, weight,
      isInside; // i64; isInside is null where it always is
};

/// The elements along an axis of which samples at x are sums.
llvm::SmallVector<Tap> findTaps(Node &node, mlir::Value x,
                                const SampleOptions &options,
                                const Bounds &bounds);
/// The taps of several axes from those of each.
llvm::SmallVector<Tap> combine(Node &node, llvm::ArrayRef<Tap> outer,
                               llvm::ArrayRef<Tap> inner,
                               mlir::AffineExpr innerExtent);
/// The sum, or the largest, of the taps [batch, positions] of an image [batch,
/// channels, elements].
mlir::Value mergeTaps(Node &node, mlir::Value image, llvm::ArrayRef<Tap> taps,
                      bool isMax = false);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_SAMPLING_H

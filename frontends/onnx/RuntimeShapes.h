//===- RuntimeShapes.h - Shapes that a run computes -------------*- C++ -*-===//
//
// Each function imports a node one of whose shapes, axes or the like is known
// only at run time. The sizes that follow become symbols (ReadSizes.cpp). They
// are valid whatever the integers are, so that no kernel leaves its buffers:
// where the integers make no sense a check ends the run, and sizes are 0.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_ONNX_RUNTIMESHAPES_H
#define TCC_FRONTENDS_ONNX_RUNTIMESHAPES_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// An i64 scalar.
mlir::Value index(Node &node, int64_t value);
/// Fails the node where `condition` is known to be false; where only a run
/// knows it, that ends with the message. `otherwise` may name what tcc lacks.
void demand(Node &node, mlir::Value condition, const llvm::Twine &otherwise,
            bool isSupported = true);
/// The run ends where `axis`, an i64 scalar, is out of range.
void requireAxis(Node &node, mlir::Value axis, int64_t rank);
/// Whether `axis` is axis `own`, counted from the front or the back.
mlir::Value isAxis(Node &node, mlir::Value axis, int64_t own, int64_t rank);

void reshapeAtRunTime(Node &node);
void expandAtRunTime(Node &node);
void tileAtRunTime(Node &node);
void squeezeAtRunTime(Node &node);
void unsqueezeAtRunTime(Node &node);
void splitAtRunTime(Node &node, int64_t axis);
/// Input 0 in parts along an axis; `names` are for the sizes that a run
/// computes.
llvm::SmallVector<mlir::Value> cutAtRunTime(Node &node, int64_t axis,
                                            llvm::ArrayRef<SizeElement> parts,
                                            llvm::ArrayRef<std::string> names);
void sliceAtRunTime(Node &node);
void padAtRunTime(Node &node);
/// x in the extents of `shape`: element `low` of each axis is the first of x.
mlir::Value padToAtRunTime(Node &node, mlir::Value x,
                           llvm::ArrayRef<SizeElement> shape,
                           llvm::ArrayRef<mlir::Value> low, mlir::Value fill,
                           graph::PadMode mode = graph::PadMode::constant);
/// Each axis of x repeated as a whole.
mlir::Value tile(Node &node, mlir::Value x,
                 llvm::ArrayRef<mlir::AffineExpr> repeats);
void fillAtRunTime(Node &node, mlir::Value scalar);
void rangeAtRunTime(Node &node);

/// The most elements that x may have.
int64_t countElements(Node &node, mlir::Value x);
/// The elements of x, to be read at positions in row-major order; one more
/// where there may be none.
mlir::Value flatten(Node &node, mlir::Value x);

/// x in other extents, without elements, and an error in the run, where these
/// are of another number of elements.
mlir::Value reshapeChecked(Node &node, mlir::Value x,
                           llvm::MutableArrayRef<SizeElement> shape,
                           llvm::StringRef name);

/// x with each axis in two, [kept, reduced]: the extent is that of one of them,
/// as `axes`, a list of integers, says. The first member of each pair is among
/// `kept`, with its value.
struct SplitAxes {
  mlir::Value x;
  llvm::SmallVector<int64_t> reducedAxes;
  graph::Extents kept;
  llvm::SmallVector<mlir::Value> isReduced; ///< boolean scalars
};
SplitAxes splitAxesAtRunTime(Node &node, mlir::Value x, int64_t axesInput);
/// `x` without the axes of which `isDropped` is true, `count` in number, whose
/// extents are 1.
mlir::Value dropAxesAtRunTime(Node &node, mlir::Value x,
                              llvm::ArrayRef<mlir::Value> isDropped,
                              int64_t count);
/// x as [before, extent of the axis, behind]; the axis, one integer, is input
/// `i`.
mlir::Value joinAroundAxisAtRunTime(Node &node, mlir::Value x, int64_t i);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_RUNTIMESHAPES_H

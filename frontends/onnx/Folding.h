//===- Folding.h - Computing on known integers at import --------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_FOLDING_H
#define TCC_FRONTENDS_ONNX_FOLDING_H

#include "frontends/onnx/Node.h"

namespace tcc::onnx_import {

/// Computes one element from one element of each input.
using FoldElement = llvm::function_ref<Size(llvm::ArrayRef<mlir::AffineExpr>)>;

/// True if `type` has every value of `element`: known elements do not wrap, an
/// op that does stays in the module.
bool holds(mlir::Type type, mlir::AffineExpr element, const Sizes &sizes);

/// If the elements of all inputs are known, and those of the result then are,
/// sets result 0 to them, broadcast as numpy does.
bool foldElementwise(Node &node, mlir::Type resultType, FoldElement fold);
/// The same for a binary op that keeps the element type, and for a comparison.
bool foldBinary(Node &node, SizeOp op);
bool foldCompare(Node &node, SizeCompare kind);

/// If the elements of input 0 are known, result 0 has those at `positions`.
bool foldMovement(
    Node &node, llvm::ArrayRef<int64_t> shape,
    llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> position);

/// Row-major position of `indices`.
int64_t getPosition(llvm::ArrayRef<int64_t> indices,
                    llvm::ArrayRef<int64_t> shape);

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_FOLDING_H

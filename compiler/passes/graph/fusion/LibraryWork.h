//===- LibraryWork.h - Kernels that libraries have, too ---------*- C++ -*-===//
//
// What a kernel computes as libraries know it (LibraryWork of Program.fbs), of
// tensors whose sizes may be symbolic. Which kernels are of this form is asked
// while kernels are chosen, and again when one is described for the runtime;
// what libraries can do of it is runtime/package/LibraryRules.h's to say.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYWORK_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYWORK_H

#include "compiler/passes/graph/fusion/Epilogue.h"
#include "dialects/graph/Strides.h"

namespace tcc::fusion {

/// Element (i, j, ...) lies at offset + i * strides[0] + j * strides[1] + ...
/// of `tensor`, a row-major one.
struct WorkOperand {
  mlir::Value tensor;
  mlir::Type elementType; ///< the tensor's
  mlir::AffineExpr offset;
  graph::Extents extents, strides;
};

struct WorkStep {
  format::StepKind kind;
  double factor = 1;                       ///< of a scale
  std::optional<WorkOperand> operand = {}; ///< of a kind that has one
};

struct LibraryWork {
  format::WorkKind kind;
  WorkOperand lhs, rhs, result; ///< the result's tensor is the value
  llvm::SmallVector<WorkStep> steps;
  bool tf32 = false; ///< lhs and rhs, of f32, may be rounded so
  /// One entry a spatial axis; empty for a product.
  llvm::SmallVector<int64_t> padLow, padHigh, strides, dilations;
};

/// `results`, which are computed from a product by `anchor` and from values of
/// which `isInput` is true, if a library may do that in one call.
std::optional<LibraryWork>
describeLibraryWork(mlir::Operation *anchor,
                    llvm::ArrayRef<mlir::Value> results,
                    llvm::function_ref<bool(mlir::Value)> isInput);

/// Whether a library may do `work`.
bool isOfLibrary(const LibraryWork &work);

/// The matrix product that `results` are, by `anchor` and with what comes
/// behind it, whether or not a library may do it.
std::optional<LibraryWork>
describeProduct(mlir::Operation *anchor, llvm::ArrayRef<mlir::Value> results,
                llvm::function_ref<bool(mlir::Value)> isInput);

/// The convolution, or the gradient of a filter, that `result` is, likewise.
std::optional<LibraryWork>
describeConvolution(mlir::Operation *anchor, mlir::Value result,
                    llvm::function_ref<bool(mlir::Value)> isInput);

/// Adds to `work`, which has none, the steps of `epilogue`: its addends lie at
/// `addends`, what else its activation reads at `other`, and what that is of is
/// stored at `stored`, if it is.
void addSteps(LibraryWork &work, const Epilogue &epilogue,
              llvm::ArrayRef<WorkOperand> addends,
              const std::optional<WorkOperand> &other,
              const std::optional<WorkOperand> &stored);

/// A vector along the axis of the result that a step of `kind` has it along,
/// all of a tensor that may not be there yet.
WorkOperand makeVector(format::StepKind kind, const LibraryWork &work,
                       mlir::Value tensor, mlir::Type elementType);

/// Whether an op that multiplies f32 may round it to tf32.
bool isTf32Allowed(mlir::Operation *op);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYWORK_H

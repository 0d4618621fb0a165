//===- LibraryRules.h - What libraries can do -------------------*- C++ -*-===//
//
// One table of rows for each kind of work: which steps a library does behind
// it, in which order, and of which types, layouts and alignments. Fusion asks
// it for what is worth a kernel of its own, the runtime before it asks the
// library itself. A package may have work that no library does any more: its
// kernels run.
//
// Sources: cublasLt.h of CUDA 13.0 (epilogues and their pointers), cuDNN 9's
// developer guide (graphs with a convolution).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_LIBRARYRULES_H
#define TCC_RUNTIME_PACKAGE_LIBRARYRULES_H

#include "runtime/package/LibraryWork.h"

namespace tcc::runtime {

/// Along which axes of the result an operand of a step has elements.
enum class OperandForm : uint8_t {
  none,     ///< there is no operand
  elements, ///< along all axes: one for each element of the result
  rows,     ///< along the rows of a product: its axis 1
  columns   ///< along the columns of a product, axis 2, or channels, axis 1
};

struct StepTraits {
  OperandForm form;
  bool
      isFunction; ///< maps each value, with its operand's element if it has one
  bool isWritten; ///< the operand is a further result
  bool readsInPlace; ///< the operand may lie where the result does
};

/// `kind` is one of the enumerators.
const StepTraits &traitsOf(format::StepKind kind);

/// The axis of the result that a vector of that form lies along.
size_t axisOf(OperandForm form, format::WorkKind kind);

/// Whether `view` has elements along one axis alone, where they are adjacent.
bool isVectorAlong(const StridedView &view, size_t axis);

/// Whether a library does the step behind some work of `kind`.
bool hasStep(format::WorkKind kind, format::StepKind step);

/// Whether kinds are known, and ranks, extents, types, factors and operands as
/// Program.fbs says.
bool isWellFormed(const LibraryWork &work);

/// Elements from a row of a matrix [batch, rows, columns] to the next,
/// kUnknownSize if that is not known, where those of a row are adjacent and
/// rows do not overlap; nothing where they are or do. Else the same of its
/// columns.
std::optional<int64_t> leadingOf(const StridedView &matrix, bool isOfRows);

/// Whether rows of a product's result are adjacent elements; else columns are.
bool isResultOfRows(const LibraryWork &product);

/// Whether a library may be asked for well-formed `work`. A batch or a stride
/// between neighbours that is not known is taken for another one than 1; other
/// sizes that are not known, and alignments, do not speak against it.
bool isOfLibrary(const LibraryWork &work);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_LIBRARYRULES_H

//===- LibraryRules.h - What libraries can do -------------------*- C++ -*-===//
//
// One table of rows for each kind of work: which steps a library does behind
// it, in which order, and of which types, layouts and alignments. Fusion asks
// it for what is worth a kernel of its own, the check of a package for what is
// well-formed, the runtime before it asks the library itself.
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
  elements, ///< all
  rows,     ///< the one before the last, of a product
  columns   ///< the last of a product, the channels of an image
};

struct StepTraits {
  OperandForm form;
  bool isFunction;   ///< of the value so far alone, or of that and the operand
  bool isWritten;    ///< the operand is a further result
  bool readsInPlace; ///< the operand may lie where the result does
};

/// `kind` is one of the enumerators.
const StepTraits &traitsOf(format::StepKind kind);

/// The axis of the result that a vector of that form lies along.
size_t axisOf(OperandForm form, format::WorkKind kind);

/// Whether `view` has elements along one axis alone, where they are adjacent.
bool isVectorAlong(const StridedView &view, size_t axis);

/// Whether ranks, extents, types and operands are as Program.fbs says.
bool isWellFormed(const LibraryWork &work);

/// Whether a library may be asked for well-formed `work`. A batch or a stride
/// between neighbours that is not known is taken for another one than 1; other
/// sizes that are not known, and alignments, do not speak against it.
bool isOfLibrary(const LibraryWork &work);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_LIBRARYRULES_H

//===- Machine.h - How fast a target's machine is ---------------*- C++ -*-===//
#ifndef TCC_COMPILER_TARGET_MACHINE_H
#define TCC_COMPILER_TARGET_MACHINE_H

namespace tcc {

/// Figures of a machine, which a target gives: decisions depend on their
/// ratios. A microsecond's flops are of f32.
struct Machine {
  /// Memory that activations are in.
  double bytesPerMicrosecond = 0;
  /// Scalar bodies, vectorised by the compiler.
  double flopsPerMicrosecond = 0;
  /// The compiler's own kernels of matrix products.
  double contractionFlopsPerMicrosecond = 0;
  /// Matrix products of a library, or of units for them alone; used where the
  /// target has some.
  double libraryFlopsPerMicrosecond = 0;
  /// Starting a kernel.
  double launchMicroseconds = 0;
  /// How many times an element that is computed while an operand is packed
  /// costs what it would elsewhere.
  double packingFactor = 1;
  /// The same of elements whose rows are shorter than vectors.
  double shortRowFactor = 1;
  /// Rows (columns) of the result for which a packed operand is used again.
  double packedReuse = 0;
  /// Up to this many flops an element is cheaper to compute again than to
  /// load.
  double cheapFlops = 8;
  /// Tasks that keep all of the machine busy, or nearly.
  double leastTasks = 0;
};

} // namespace tcc

#endif // TCC_COMPILER_TARGET_MACHINE_H

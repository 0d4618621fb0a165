//===- Phases.h - The part of a training step that an op is of --*- C++ -*-===//
//
// A phase is the metadata of a FusedLoc around the location that an op has
// otherwise, so that it outlives whatever passes make of the op. Kernels of
// several ops are of the phase of the first one that their location has.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_GRAPH_PHASES_H
#define TCC_DIALECTS_GRAPH_PHASES_H

#include "mlir/IR/Location.h"
#include "runtime/package/Names.h"

namespace tcc {

/// The phase of the first op in `location` that has one; nothing if none has.
std::optional<format::Phase> getPhase(mlir::Location location);
/// The location of an op of the phase, whichever it was of before.
mlir::Location withPhase(mlir::Location location, format::Phase phase);
/// The location that `withPhase` was called for, or `location`.
mlir::Location withoutPhase(mlir::Location location);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_PHASES_H

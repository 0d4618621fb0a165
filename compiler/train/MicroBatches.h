//===- MicroBatches.h - Which batch a step takes ----------------*- C++ -*-===//
//
// All batches that ranks train on have one number each: the step's `first`,
// which counts what all ranks took before the update under way, plus a place.
// Rank r of W takes of an update's places 0, 1, ... those numbered r, r + W,
// r + 2 W, and so on, or the same in the order of a BatchTree. What depends on
// the number alone, as the order of samples and the masks of dropouts, depends
// on no world.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_MICROBATCHES_H
#define TCC_COMPILER_TRAIN_MICROBATCHES_H

#include "compiler/train/Variables.h"
#include "dialects/graph/ops/TensorEmitter.h"

namespace tcc::train {

/// Declares `first`, `place`, `rank` and `world`: the first rank of one.
void declareMicroBatches(VariableTable &table, mlir::Builder builder);

/// The number of the batch that `step` takes, an i64 scalar; emitted before all
/// else of the step. `leaves` are those of the BatchTree, if there is one.
mlir::Value emitBatchNumber(StepFunction &step, std::optional<int64_t> leaves);

/// The ranks go on to their next places; not where a step before stopped the
/// training: then a batch is none.
void emitNextPlace(StepFunction &step);

/// An update ends where `isSound`, i1: the batches of all ranks come before
/// what is next.
void emitNextUpdate(StepFunction &step, graph::Expr isSound);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_MICROBATCHES_H

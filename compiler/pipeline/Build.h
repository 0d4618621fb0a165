//===- Build.h - One program of a model -------------------------*- C++ -*-===//
//
// A program is a function of the model and a variant: `build` changes neither,
// and keeps nothing. What chooses among programs (Batch.h, Chunks.h) stands
// outside and calls it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PIPELINE_BUILD_H
#define TCC_COMPILER_PIPELINE_BUILD_H

#include "compiler/passes/exec/RecomputeValues.h"
#include "compiler/pipeline/Variant.h"
#include "frontends/Frontend.h"

namespace tcc {

/// What a variant became.
struct PlannedProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// As the last phase left it; planned, the bytes that it allocates in a
  /// process alone and, where there may be several ranks, in each of them.
  MemoryPlan memory;
  std::optional<MemoryPlan> memoryOfRanks;

  /// The most that a memory budget has to hold.
  int64_t getBudgeted() const {
    return std::max(memory.getBudgeted(),
                    memoryOfRanks ? memoryOfRanks->getBudgeted() : 0);
  }
  /// With a budget: the predicted time of the slowest entry point over that
  /// with all values kept, less 1.
  double recomputedShare = 0;
  Variant variant; ///< that it was built of: what a search found
};

struct BuildResult {
  std::variant<PlannedProgram, Refusal> outcome;

  // What was found on the way, whatever came of it.
  std::vector<std::string> notes;
  std::vector<std::string> parameters; ///< lines of what is trained
  PhaseTimes phases;
  /// Without a program: the module as the phase that refused left it.
  mlir::OwningOpRef<mlir::ModuleOp> refused;
  /// With a budget: what it costs the entry points, and the bytes that some
  /// plan needs at least, about; 0: not known.
  RecomputeResult recomputed;
  int64_t leastBytes = 0;
  bool hasChunks = false; ///< logits are wide and can be computed in chunks

  PlannedProgram *getProgram() { return std::get_if<PlannedProgram>(&outcome); }
  const Refusal *getRefusal() const { return std::get_if<Refusal>(&outcome); }
  /// It may be built for a larger budget.
  bool isTooLarge() const {
    return getRefusal() && getRefusal()->code == runtime::Code::OutOfMemory;
  }
};

/// Builds a program of `model`, which recognition has been over, by the phases
/// after that up to `last`, at most `plan`. The context of the model has no
/// other user meanwhile.
BuildResult build(const Model &model, const Variant &variant,
                  Phase last = Phase::Plan);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_BUILD_H

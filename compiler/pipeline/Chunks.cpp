#include "compiler/pipeline/Chunks.h"

#include <limits>

namespace tcc {

/// Values are computed again, or too many would be.
static bool isShortOfMemory(BuildResult &built) {
  if (PlannedProgram *program = built.getProgram())
    return program->recomputedShare > 0;
  return built.isTooLarge();
}

static int64_t getNeeded(const BuildResult &built) {
  const EntryRecompute *refused = built.recomputed.getRefused();
  return refused ? refused->neededBytes : std::numeric_limits<int64_t>::max();
}

static bool isBetter(BuildResult &chunks, BuildResult &whole) {
  PlannedProgram *program = chunks.getProgram(), *other = whole.getProgram();
  if (!program)
    return !other && getNeeded(chunks) < getNeeded(whole);
  return !other || program->recomputedShare < other->recomputedShare;
}

BuildResult buildFaster(const Model &model, const Variant &variant) {
  BuildResult whole = build(model, variant);
  bool recomputes = !whole.recomputed.entries.empty();
  if (!recomputes || !whole.hasChunks || !isShortOfMemory(whole))
    return whole;
  Variant inChunks = variant;
  inChunks.chunksLogits = true;
  BuildResult chunks = build(model, inChunks);
  if (chunks.getRefusal() && !chunks.isTooLarge())
    return chunks;
  if (PlannedProgram *program = chunks.getProgram())
    program->recomputedShare = chunks.recomputed.getShareOver(whole.recomputed);
  BuildResult &chosen = isBetter(chunks, whole) ? chunks : whole;
  PhaseTimes phases = whole.phases;
  phases.add(chunks.phases);
  chosen.phases = phases;
  chosen.leastBytes = std::min(whole.leastBytes, chunks.leastBytes);
  return std::move(chosen);
}

} // namespace tcc

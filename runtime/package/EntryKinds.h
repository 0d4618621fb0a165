//===- EntryKinds.h - Which entry points a process runs ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_ENTRYKINDS_H
#define TCC_RUNTIME_PACKAGE_ENTRYKINDS_H

#include "runtime/package/Names.h"

namespace tcc::format {

/// Whether ranks run it together, several of them alone.
inline bool isOfRanks(EntryKind kind) {
  return kind == EntryKind::reduce_step || kind == EntryKind::reduce_apply;
}

/// What a process runs for a step: one of several ranks runs another. With
/// Program.exact a process alone is one of ranks, too.
inline EntryKind entryOf(EntryKind step, bool hasRanks) {
  if (hasRanks && step == EntryKind::train_step)
    return EntryKind::reduce_step;
  if (hasRanks && step == EntryKind::apply)
    return EntryKind::reduce_apply;
  return step;
}

/// Whether a process, alone or one of several ranks, runs the entry point while
/// it holds memory for a program: `prepare` is over before.
inline bool isRun(EntryKind kind, bool hasRanks) {
  return kind != EntryKind::prepare && entryOf(kind, hasRanks) == kind &&
         (hasRanks || !isOfRanks(kind));
}

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_ENTRYKINDS_H

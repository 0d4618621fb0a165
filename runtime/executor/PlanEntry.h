//===- PlanEntry.h - What a device reserves for an entry --------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_PLANENTRY_H
#define TCC_RUNTIME_EXECUTOR_PLANENTRY_H

#include "runtime/devices/Device.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// The most that the commands of a verified entry ask of a device, of which one
/// of several ranks runs it or, where it `isAlone`, one process: then sums in
/// place are nothing, and lanes that have no more are none.
EntryPlan planEntry(const format::Entry &entry, bool isAlone = true);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_PLANENTRY_H

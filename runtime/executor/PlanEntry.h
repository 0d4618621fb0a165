//===- PlanEntry.h - What a device reserves for an entry --------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_PLANENTRY_H
#define TCC_RUNTIME_EXECUTOR_PLANENTRY_H

#include "runtime/devices/Device.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// The most that the commands of a verified entry ask of a device.
EntryPlan planEntry(const format::Entry &entry);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_PLANENTRY_H

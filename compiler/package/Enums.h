//===- Enums.h - Enums of the dialects as the package has them --*- C++ -*-===//
#ifndef TCC_COMPILER_PACKAGE_ENUMS_H
#define TCC_COMPILER_PACKAGE_ENUMS_H

#include "dialects/exec/ExecOps.h"
#include "runtime/base/Mirror.h"
#include "runtime/package/Program_generated.h"

namespace tcc::package {

static_assert(isMirror<exec::MemorySpace, format::MemorySpace>(
    {{exec::MemorySpace::host, format::MemorySpace::host},
     {exec::MemorySpace::pinned, format::MemorySpace::pinned},
     {exec::MemorySpace::device, format::MemorySpace::device}},
    exec::getMaxEnumValForMemorySpace(), format::MemorySpace::MAX));

static_assert(isMirror<exec::StorageClass, format::StorageClass>(
    {{exec::StorageClass::input, format::StorageClass::input},
     {exec::StorageClass::output, format::StorageClass::output},
     {exec::StorageClass::constant, format::StorageClass::constant},
     {exec::StorageClass::model, format::StorageClass::model},
     {exec::StorageClass::scratch, format::StorageClass::scratch},
     {exec::StorageClass::state, format::StorageClass::state},
     {exec::StorageClass::fault, format::StorageClass::fault},
     {exec::StorageClass::variable, format::StorageClass::variable}},
    exec::getMaxEnumValForStorageClass(), format::StorageClass::MAX));

inline format::MemorySpace toFormat(exec::MemorySpace space) {
  return static_cast<format::MemorySpace>(space);
}
inline format::StorageClass toFormat(exec::StorageClass storage) {
  return static_cast<format::StorageClass>(storage);
}

} // namespace tcc::package

#endif // TCC_COMPILER_PACKAGE_ENUMS_H

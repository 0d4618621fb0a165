//===- Toolkit.h - Finds NVIDIA's libraries ---------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_TOOLKIT_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_TOOLKIT_H

#include "runtime/base/Status.h"

#include <mutex>
#include <span>

namespace tcc::runtime::cuda {

/// An entry point of a library, and where its address goes.
struct EntryPoint {
  const char *symbol;
  void *place; ///< of a pointer to the function
};

/// Opens the first library of `names`, for good, and fills `entries` from it.
/// It is looked for in the folders of `places` (separated by colons; may be
/// null), under CUDA_HOME and CUDA_PATH, where the loader looks, and under the
/// toolkit's usual prefix; an error says where, or what it lacks.
Status loadLibrary(std::span<const char *const> names, const char *places,
                   std::span<const EntryPoint> entries);

/// The process' only `Table` of a library's entry points, which `load` fills
/// when it is first asked for; again where that failed. Any thread may call.
template <typename Table>
Result<const Table *> getTable(Status (*load)(Table &, const char *places),
                               const char *places) {
  static std::mutex mutex;
  static Table table;
  static bool isOpen = false;
  std::lock_guard lock(mutex);
  if (!isOpen)
    if (Status status = load(table, places); !status.ok())
      return status;
  isOpen = true;
  return &table;
}

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_TOOLKIT_H

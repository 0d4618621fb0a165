//===- BlasLibrary.h - Products by cuBLASLt ---------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_BLASLIBRARY_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_BLASLIBRARY_H

#include "runtime/devices/cuda/Library.h"
#include "runtime/devices/libraries/CublasLt.h"

namespace tcc::runtime::cuda {

/// cuBLASLt in the current context; `table` lives longer.
class BlasLibrary {
public:
  static Result<std::unique_ptr<BlasLibrary>> open(const CublasLt &table);
  ~BlasLibrary() { table.destroy(handle); }

  size_t version() const { return table.getVersion(); }
  /// As Library's.
  Result<std::unique_ptr<LibraryPlan>> plan(const LibraryWork &product,
                                            void *workspace, size_t bytes,
                                            size_t first = 0) const;

private:
  BlasLibrary(const CublasLt &table, BlasHandle handle)
      : table(table), handle(handle) {}

  const CublasLt &table;
  BlasHandle handle;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_BLASLIBRARY_H

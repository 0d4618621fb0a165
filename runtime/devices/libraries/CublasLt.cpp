#include "runtime/devices/libraries/CublasLt.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr const char *kNames[] = {"libcublasLt.so.13",
                                         "libcublasLt.so.12"};

/// Fills the table; returns the symbol that is missing, or null.
static const char *fill(CublasLt &table, void *library) {
  const struct {
    const char *symbol;
    void *place; ///< of the pointer in the table
  } rows[] = {
      {"cublasLtCreate", &table.create},
      {"cublasLtDestroy", &table.destroy},
      {"cublasLtGetVersion", &table.getVersion},
      {"cublasLtGetStatusString", &table.getStatusString},
      {"cublasLtMatmulDescCreate", &table.matmulDescCreate},
      {"cublasLtMatmulDescDestroy", &table.matmulDescDestroy},
      {"cublasLtMatmulDescSetAttribute", &table.matmulDescSetAttribute},
      {"cublasLtMatmulDescGetAttribute", &table.matmulDescGetAttribute},
      {"cublasLtMatrixLayoutCreate", &table.matrixLayoutCreate},
      {"cublasLtMatrixLayoutDestroy", &table.matrixLayoutDestroy},
      {"cublasLtMatrixLayoutSetAttribute", &table.matrixLayoutSetAttribute},
      {"cublasLtMatrixLayoutGetAttribute", &table.matrixLayoutGetAttribute},
      {"cublasLtMatmulPreferenceCreate", &table.matmulPreferenceCreate},
      {"cublasLtMatmulPreferenceDestroy", &table.matmulPreferenceDestroy},
      {"cublasLtMatmulPreferenceSetAttribute",
       &table.matmulPreferenceSetAttribute},
      {"cublasLtMatmulPreferenceGetAttribute",
       &table.matmulPreferenceGetAttribute},
      {"cublasLtMatmulAlgoGetHeuristic", &table.matmulAlgoGetHeuristic},
      {"cublasLtMatmul", &table.matmul},
  };
  for (const auto &row : rows) {
    void *address = dlsym(library, row.symbol);
    if (!address)
      return row.symbol;
    *static_cast<void **>(row.place) = address;
  }
  return nullptr;
}

static void *openFrom(const std::string &folder) {
  for (const char *name : kNames) {
    std::string path = folder.empty() ? name : concat(folder, "/", name);
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
  }
  return nullptr;
}

static void *openAny(const char *places) {
  for (std::string_view rest = places ? places : ""; !rest.empty();) {
    std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (void *library = folder.empty() ? nullptr : openFrom(folder))
      return library;
  }
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *prefix = std::getenv(variable))
      if (void *library = openFrom(concat(prefix, "/lib64")))
        return library;
  if (void *library = openFrom(""))
    return library;
  return openFrom("/usr/local/cuda/lib64");
}

Result<const CublasLt *> cuda::findCublasLt(const char *places) {
  static std::mutex mutex;
  static CublasLt table;
  static bool isOpen = false;
  std::lock_guard lock(mutex);
  if (isOpen)
    return &table;
  void *library = openAny(places);
  if (!library)
    return makeError(Code::Device, "there is no ", kNames[0], " or ", kNames[1],
                     " in TCC_CUDA_LIB, CUDA_HOME, CUDA_PATH, on the loader's "
                     "path and in /usr/local/cuda");
  if (const char *missing = fill(table, library))
    return makeError(Code::Device, "cuBLASLt is too old: it has no ", missing);
  isOpen = true;
  return &table;
}

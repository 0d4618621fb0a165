#include "runtime/devices/libraries/CublasLt.h"

#include "runtime/devices/libraries/Toolkit.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr const char *kNames[] = {"libcublasLt.so.13",
                                         "libcublasLt.so.12"};

static Status load(CublasLt &table, const char *places) {
  const EntryPoint entries[] = {
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
  return loadLibrary(kNames, places, entries);
}

Result<const CublasLt *> cuda::findCublasLt(const char *places) {
  return getTable(load, places);
}

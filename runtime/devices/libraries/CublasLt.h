//===- CublasLt.h - The API of cuBLASLt as a table --------------*- C++ -*-===//
//
// The entry points of libcublasLt that are called, declared here so that no
// header of CUDA is needed to build. The table is filled from the library of
// the machine, or simulated. Names and values are those of cublasLt.h.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_CUBLASLT_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_CUBLASLT_H

#include "runtime/devices/cuda/Driver.h"

namespace tcc::runtime::cuda {

using BlasError = int; ///< cublasStatus_t
inline constexpr BlasError kBlasSuccess = 0;
inline constexpr BlasError kBlasInvalidValue = 7;
inline constexpr BlasError kBlasNotSupported = 15;

using BlasHandle = struct BlasHandleObject *;
using ProductHandle = struct ProductObject *;       ///< cublasLtMatmulDesc_t
using LayoutHandle = struct LayoutObject *;         ///< cublasLtMatrixLayout_t
using PreferenceHandle = struct PreferenceObject *; ///< ...MatmulPreference_t

struct BlasAlgorithm { ///< cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct BlasHeuristic { ///< cublasLtMatmulHeuristicResult_t
  BlasAlgorithm algorithm;
  size_t workspaceBytes;
  BlasError state;
  float waves;
  int reserved[4];
};

/// cudaDataType_t
enum BlasType : int { kF32 = 0, kF64 = 1, kF16 = 2, kBF16 = 14 };
/// cublasComputeType_t
enum BlasCompute : int {
  kCompute32F = 68,
  kCompute64F = 70,
  kCompute32FFastTF32 = 77,
};
/// cublasOperation_t
enum BlasOperation : int { kPlain = 0, kTransposed = 1 };
/// CUBLASLT_EPILOGUE_..., combined by addition
enum BlasEpilogue : int {
  kEpilogueDefault = 1,
  kEpilogueRelu = 2,
  kEpilogueBias = 4,
  kEpilogueGelu = 32,
  kEpilogueGeluGradient = 64,
  kEpilogueSum = 128,     ///< ..._AUX: what gelu is of, stored or read
  kEpilogueSumsOfA = 256, ///< BGRADA: sums of op(A) over k, one a row of D
  kEpilogueSumsOfB = 512  ///< BGRADB: the same of op(B), one a column of D
};
/// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: parts are added in f32, in order.
inline constexpr uint32_t kReduceInComputeType = 2;

/// CUBLASLT_MATMUL_DESC_...
enum ProductAttribute : int {
  kProductCompute = 0,    // int32
  kProductTransposeA = 3, // int32
  kProductTransposeB = 4, // int32
  kProductEpilogue = 7,   // uint32
  kProductBias = 8,       // an address, also of sums over k
  kProductSum = 11,       // an address, of elements of the result's type
  kProductSumLeading = 12 // int64, elements
};
/// CUBLASLT_MATRIX_LAYOUT_...
enum LayoutAttribute : int {
  kLayoutType = 0,       // uint32
  kLayoutRows = 2,       // uint64
  kLayoutColumns = 3,    // uint64
  kLayoutLeading = 4,    // int64
  kLayoutBatch = 5,      // int32
  kLayoutBatchStride = 6 // int64, elements
};
/// CUBLASLT_MATMUL_PREF_...
enum PreferenceAttribute : int {
  kPreferredWorkspace = 1,  // uint64, bytes
  kPreferredReductions = 3, // uint32
  kAlignmentOfA = 5,        // uint32, bytes; those of B, C and D follow
};

/// Each member is the entry point cublasLtNAME.
struct CublasLt {
  BlasError (*create)(BlasHandle *handle);
  BlasError (*destroy)(BlasHandle handle);
  size_t (*getVersion)();
  const char *(*getStatusString)(BlasError error);
  BlasError (*matmulDescCreate)(ProductHandle *product, int compute,
                                int scaleType);
  BlasError (*matmulDescDestroy)(ProductHandle product);
  BlasError (*matmulDescSetAttribute)(ProductHandle product, int attribute,
                                      const void *value, size_t bytes);
  BlasError (*matmulDescGetAttribute)(ProductHandle product, int attribute,
                                      void *value, size_t bytes,
                                      size_t *written);
  BlasError (*matrixLayoutCreate)(LayoutHandle *layout, int type, uint64_t rows,
                                  uint64_t columns, int64_t leading);
  BlasError (*matrixLayoutDestroy)(LayoutHandle layout);
  BlasError (*matrixLayoutSetAttribute)(LayoutHandle layout, int attribute,
                                        const void *value, size_t bytes);
  BlasError (*matrixLayoutGetAttribute)(LayoutHandle layout, int attribute,
                                        void *value, size_t bytes,
                                        size_t *written);
  BlasError (*matmulPreferenceCreate)(PreferenceHandle *preference);
  BlasError (*matmulPreferenceDestroy)(PreferenceHandle preference);
  BlasError (*matmulPreferenceSetAttribute)(PreferenceHandle preference,
                                            int attribute, const void *value,
                                            size_t bytes);
  BlasError (*matmulPreferenceGetAttribute)(PreferenceHandle preference,
                                            int attribute, void *value,
                                            size_t bytes, size_t *written);
  BlasError (*matmulAlgoGetHeuristic)(BlasHandle handle, ProductHandle product,
                                      LayoutHandle a, LayoutHandle b,
                                      LayoutHandle c, LayoutHandle d,
                                      PreferenceHandle preference,
                                      int requested, BlasHeuristic *results,
                                      int *returned);
  BlasError (*matmul)(BlasHandle handle, ProductHandle product,
                      const void *alpha, const void *a, LayoutHandle layoutA,
                      const void *b, LayoutHandle layoutB, const void *beta,
                      const void *c, LayoutHandle layoutC, void *d,
                      LayoutHandle layoutD, const BlasAlgorithm *algorithm,
                      void *workspace, size_t workspaceBytes,
                      StreamHandle stream);
};

/// The library of this machine, opened once and never closed; `places` as of
/// loadLibrary.
Result<const CublasLt *> findCublasLt(const char *places);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_CUBLASLT_H

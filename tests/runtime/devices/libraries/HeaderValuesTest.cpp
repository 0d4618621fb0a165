// Cudnn.h, CublasLt.h and Nccl.h against the headers that they are declared
// after.

#include "runtime/devices/libraries/CublasLt.h"
#include "runtime/devices/libraries/Cudnn.h"
#include "runtime/devices/nccl/Nccl.h"
#include "gtest/gtest.h"

using namespace tcc::runtime::cuda;

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#define SAME(OURS, THEIRS) static_assert(int(OURS) == int(THEIRS))

TEST(HeaderValuesTest, AreThoseOfNccl) {
#if !__has_include(<nccl.h>)
  GTEST_SKIP() << "not available: nccl.h";
#else
  SAME(kNcclSuccess, ncclSuccess);
  SAME(kNcclSystemError, ncclSystemError);
  SAME(kNcclInvalidArgument, ncclInvalidArgument);
  SAME(kNcclInvalidUsage, ncclInvalidUsage);
  SAME(kNcclRemoteError, ncclRemoteError);
  SAME(kNcclInProgress, ncclInProgress);
  SAME(kNcclU8, ncclUint8);
  SAME(kNcclI32, ncclInt32);
  SAME(kNcclI64, ncclInt64);
  SAME(kNcclF32, ncclFloat32);
  SAME(kNcclF64, ncclFloat64);
  SAME(kNcclSum, ncclSum);
  static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
  static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
  static_assert(offsetof(NcclConfig, version) ==
                offsetof(ncclConfig_t, version));
  static_assert(offsetof(NcclConfig, blocking) ==
                offsetof(ncclConfig_t, blocking));
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(NcclConfig().magic, theirs.magic);
#endif
}

TEST(HeaderValuesTest, AreThoseOfCublasLt) {
#if !__has_include(<cublasLt.h>)
  GTEST_SKIP() << "not available: cublasLt.h";
#else
  SAME(kBlasSuccess, CUBLAS_STATUS_SUCCESS);
  SAME(kBlasInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
  SAME(kBlasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
  static_assert(sizeof(BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
  using Theirs = cublasLtMatmulHeuristicResult_t;
  static_assert(sizeof(BlasHeuristic) == sizeof(Theirs));
  static_assert(offsetof(BlasHeuristic, workspaceBytes) ==
                offsetof(Theirs, workspaceSize));
  static_assert(offsetof(BlasHeuristic, state) == offsetof(Theirs, state));
  static_assert(offsetof(BlasHeuristic, waves) == offsetof(Theirs, wavesCount));
  SAME(kF32, CUDA_R_32F);
  SAME(kF64, CUDA_R_64F);
  SAME(kF16, CUDA_R_16F);
  SAME(kBF16, CUDA_R_16BF);
  SAME(kCompute32F, CUBLAS_COMPUTE_32F);
  SAME(kCompute64F, CUBLAS_COMPUTE_64F);
  SAME(kCompute32FFastTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
  SAME(kPlain, CUBLAS_OP_N);
  SAME(kTransposed, CUBLAS_OP_T);
  SAME(kEpilogueDefault, CUBLASLT_EPILOGUE_DEFAULT);
  SAME(kEpilogueRelu, CUBLASLT_EPILOGUE_RELU);
  SAME(kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
  SAME(kEpilogueGelu, CUBLASLT_EPILOGUE_GELU);
  SAME(kEpilogueRelu + kEpilogueBias, CUBLASLT_EPILOGUE_RELU_BIAS);
  SAME(kEpilogueGelu + kEpilogueBias, CUBLASLT_EPILOGUE_GELU_BIAS);
  SAME(kEpilogueGelu + kEpilogueSum, CUBLASLT_EPILOGUE_GELU_AUX);
  SAME(kEpilogueGelu + kEpilogueBias + kEpilogueSum,
       CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  SAME(kEpilogueGeluGradient + kEpilogueSum, CUBLASLT_EPILOGUE_DGELU);
  SAME(kEpilogueSumsOfA, CUBLASLT_EPILOGUE_BGRADA);
  SAME(kEpilogueSumsOfB, CUBLASLT_EPILOGUE_BGRADB);
  SAME(kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  SAME(kProductCompute, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE);
  SAME(kProductTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
  SAME(kProductTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
  SAME(kProductEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  SAME(kProductBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  SAME(kProductSum, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
  SAME(kProductSumLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  SAME(kLayoutType, CUBLASLT_MATRIX_LAYOUT_TYPE);
  SAME(kLayoutRows, CUBLASLT_MATRIX_LAYOUT_ROWS);
  SAME(kLayoutColumns, CUBLASLT_MATRIX_LAYOUT_COLS);
  SAME(kLayoutLeading, CUBLASLT_MATRIX_LAYOUT_LD);
  SAME(kLayoutBatch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  SAME(kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  SAME(kPreferredWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  SAME(kPreferredReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  SAME(kAlignmentOfA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  SAME(kAlignmentOfA + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif
}

TEST(HeaderValuesTest, AreThoseOfCudnn) {
#if !__has_include(<cudnn.h>)
  GTEST_SKIP() << "not available: cudnn.h";
#elif CUDNN_VERSION < 90800
  GTEST_SKIP() << "not available: version 9.8 of cudnn.h";
#else
  SAME(kDnnSuccess, CUDNN_STATUS_SUCCESS);
  SAME(kDnnBadParameter, CUDNN_STATUS_BAD_PARAM);
  SAME(kDnnNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
  SAME(kDnnF32, CUDNN_DATA_FLOAT);
  SAME(kDnnF16, CUDNN_DATA_HALF);
  SAME(kDnnBF16, CUDNN_DATA_BFLOAT16);
  SAME(kDnnCrossCorrelation, CUDNN_CROSS_CORRELATION);
  SAME(kDnnPropagateNan, CUDNN_PROPAGATE_NAN);
  SAME(kDnnAdd, CUDNN_POINTWISE_ADD);
  SAME(kDnnRelu, CUDNN_POINTWISE_RELU_FWD);
  SAME(kDnnTanh, CUDNN_POINTWISE_TANH_FWD);
  SAME(kDnnSigmoid, CUDNN_POINTWISE_SIGMOID_FWD);
  SAME(kDnnGelu, CUDNN_POINTWISE_GELU_FWD);
  SAME(kDnnSwish, CUDNN_POINTWISE_SWISH_FWD);
  SAME(kDnnGeluTanh, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD);
  SAME(kDnnFallback, CUDNN_HEUR_MODE_FALLBACK);
  SAME(kDnnModeA, CUDNN_HEUR_MODE_A);
  SAME(kDnnTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  SAME(kDnnStrictNan, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
  SAME(kDnnPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  SAME(kDnnConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  SAME(kDnnEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  SAME(kDnnConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  SAME(kDnnHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  SAME(kDnnPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  SAME(kDnnConvolutionForward,
       CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  SAME(kDnnConvolutionFilterGradient,
       CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  SAME(kDnnPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  SAME(kDnnGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  SAME(kDnnVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  SAME(kDnnTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  SAME(kDnnDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  static_assert(sizeof(cudnnDataType_t) == sizeof(int) && sizeof(bool) == 1);
#endif
}

/// Of the attributes, and of the types that they have.
TEST(HeaderValuesTest, AreCudnnsAttributes) {
#if !__has_include(<cudnn.h>)
  GTEST_SKIP() << "not available: cudnn.h";
#elif CUDNN_VERSION < 90800
  GTEST_SKIP() << "not available: version 9.8 of cudnn.h";
#else
  SAME(kDnnTypeHandle, CUDNN_TYPE_HANDLE);
  SAME(kDnnTypeDataType, CUDNN_TYPE_DATA_TYPE);
  SAME(kDnnTypeBoolean, CUDNN_TYPE_BOOLEAN);
  SAME(kDnnTypeInt64, CUDNN_TYPE_INT64);
  SAME(kDnnTypeFloat, CUDNN_TYPE_FLOAT);
  SAME(kDnnTypePointer, CUDNN_TYPE_VOID_PTR);
  SAME(kDnnTypeConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
  SAME(kDnnTypeHeuristic, CUDNN_TYPE_HEUR_MODE);
  SAME(kDnnTypeNanPropagation, CUDNN_TYPE_NAN_PROPOGATION);
  SAME(kDnnTypeNote, CUDNN_TYPE_NUMERICAL_NOTE);
  SAME(kDnnTypePointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
  SAME(kDnnTypeDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  SAME(kDnnTypeChar, CUDNN_TYPE_CHAR);
  SAME(kDnnPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  SAME(kDnnPointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
  SAME(kDnnPointwiseNan, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION);
  SAME(kDnnConvolutionPrecision, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  SAME(kDnnConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
  SAME(kDnnDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  SAME(kDnnStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  SAME(kDnnPaddingAfter, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  SAME(kDnnPaddingBefore, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  SAME(kDnnSpatialAxes, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  SAME(kDnnHeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  SAME(kDnnHeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  SAME(kDnnHeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  SAME(kDnnHeuristicDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  SAME(kDnnConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
  SAME(kDnnPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  SAME(kDnnPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  SAME(kDnnPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  SAME(kDnnPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  SAME(kDnnForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
  SAME(kDnnForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
  SAME(kDnnForwardConvolution,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  SAME(kDnnForwardFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  SAME(kDnnForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  SAME(kDnnForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  SAME(kDnnGradientAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
  SAME(kDnnGradientBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
  SAME(kDnnGradientConvolution,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  SAME(kDnnGradientFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  SAME(kDnnGradientX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  SAME(kDnnGradientY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  SAME(kDnnOperationPointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  SAME(kDnnOperationX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  SAME(kDnnOperationB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  SAME(kDnnOperationY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  SAME(kDnnGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  SAME(kDnnGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  SAME(kDnnTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  SAME(kDnnTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  SAME(kDnnTensorExtents, CUDNN_ATTR_TENSOR_DIMENSIONS);
  SAME(kDnnTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  SAME(kDnnTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  SAME(kDnnTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  SAME(kDnnPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  SAME(kDnnPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  SAME(kDnnPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  SAME(kDnnEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  SAME(kDnnDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
}

//===- Cudnn.h - The graph API of cuDNN as a table --------------*- C++ -*-===//
//
// The entry points of libcudnn that are called, declared here so that no header
// of CUDA is needed to build. The table is filled from the library of the
// machine, or simulated. Names and values are those of cudnn_graph.h, version
// 9; a unit test compares them.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_CUDNN_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_CUDNN_H

#include "runtime/devices/cuda/Driver.h"

namespace tcc::runtime::cuda {

/// cudnnStatus_t, whose thousands are a category: of parameters that do not go
/// together, and of what is not supported.
using DnnError = int;
inline constexpr DnnError kDnnSuccess = 0;
inline constexpr DnnError kDnnBadParameter = 2000;
inline constexpr DnnError kDnnNotSupported = 3000;

using DnnHandle = struct DnnHandleObject *;
using DnnDescriptor = struct DnnDescriptorObject *;

/// cudnnDataType_t
enum DnnDataType : int { kDnnF32 = 0, kDnnF16 = 2, kDnnBF16 = 9 };
/// cudnnConvolutionMode_t: the filter is not mirrored.
inline constexpr int kDnnCrossCorrelation = 1;
/// cudnnNanPropagation_t
inline constexpr int kDnnPropagateNan = 1;
/// cudnnPointwiseMode_t, and a value that it has not.
enum DnnPointwise : int {
  kDnnNoMode = -1,
  kDnnAdd = 0,
  kDnnRelu = 100,
  kDnnTanh = 101,
  kDnnSigmoid = 102,
  kDnnGelu = 104,
  kDnnSwish = 106,
  kDnnGeluTanh = 107
};
/// cudnnBackendHeurMode_t
enum DnnHeuristic : int { kDnnFallback = 2, kDnnModeA = 3 };
/// cudnnBackendNumericalNote_t: those of engines that add in f32, in an order
/// that does not change.
enum DnnNote : int { kDnnTensorCore = 0, kDnnStrictNan = 9 };

/// cudnnBackendDescriptorType_t
enum DnnKind : int {
  kDnnPointwise = 0,
  kDnnConvolution = 1,
  kDnnEngine = 2,
  kDnnConfig = 3,
  kDnnHeuristics = 4,
  kDnnPlan = 5,
  kDnnConvolutionForward = 10,
  kDnnConvolutionFilterGradient = 11,
  kDnnPointwiseOperation = 13,
  kDnnGraph = 15,
  kDnnVariantPack = 16,
  kDnnTensor = 17,
  kDnnDeviceProperties = 38 // since 9.8
};

/// cudnnBackendAttributeType_t
enum DnnType : int {
  kDnnTypeHandle = 0,
  kDnnTypeDataType = 1,
  kDnnTypeBoolean = 2,
  kDnnTypeInt64 = 3,
  kDnnTypeFloat = 4,
  kDnnTypePointer = 6,
  kDnnTypeConvolutionMode = 7,
  kDnnTypeHeuristic = 8,
  kDnnTypeNanPropagation = 10,
  kDnnTypeNote = 11,
  kDnnTypePointwiseMode = 14,
  kDnnTypeDescriptor = 15,
  kDnnTypeChar = 24
};

/// cudnnBackendAttributeName_t
enum DnnAttribute : int {
  kDnnPointwiseMode = 0,
  kDnnPointwisePrecision = 1,
  kDnnPointwiseNan = 2,
  kDnnConvolutionPrecision = 100,
  kDnnConvolutionMode = 101,
  kDnnDilations = 102,
  kDnnStrides = 103,
  kDnnPaddingAfter = 104,
  kDnnPaddingBefore = 105,
  kDnnSpatialAxes = 106,
  kDnnHeuristicMode = 200,
  kDnnHeuristicGraph = 201,
  kDnnHeuristicResults = 202,
  kDnnHeuristicDevice = 204,
  kDnnConfigEngine = 300,
  kDnnPlanHandle = 400,
  kDnnPlanConfig = 401,
  kDnnPlanWorkspace = 402,
  kDnnPlanDevice = 407,
  kDnnForwardAlpha = 700,
  kDnnForwardBeta = 701,
  kDnnForwardConvolution = 702,
  kDnnForwardFilter = 703,
  kDnnForwardX = 704,
  kDnnForwardY = 705,
  kDnnGradientAlpha = 712,
  kDnnGradientBeta = 713,
  kDnnGradientConvolution = 714,
  kDnnGradientFilter = 715,
  kDnnGradientX = 716,
  kDnnGradientY = 717,
  kDnnOperationPointwise = 750,
  kDnnOperationX = 751,
  kDnnOperationB = 752,
  kDnnOperationY = 753,
  kDnnGraphHandle = 800,
  kDnnGraphOperations = 801,
  kDnnTensorAlignment = 900,
  kDnnTensorType = 901,
  kDnnTensorExtents = 902,
  kDnnTensorStrides = 903,
  kDnnTensorId = 906,
  kDnnTensorIsVirtual = 907,
  kDnnPackIds = 1000,
  kDnnPackPointers = 1001,
  kDnnPackWorkspace = 1003,
  kDnnEngineNotes = 1303,
  kDnnDeviceJson = 2702
};

/// Each member is the entry point cudnnNAME, or cudnnBackendNAME.
struct Cudnn {
  DnnError (*create)(DnnHandle *handle);
  DnnError (*destroy)(DnnHandle handle);
  DnnError (*setStream)(DnnHandle handle, StreamHandle stream);
  size_t (*getVersion)();
  const char *(*getErrorString)(DnnError error);
  DnnError (*createDescriptor)(int kind, DnnDescriptor *descriptor);
  DnnError (*destroyDescriptor)(DnnDescriptor descriptor);
  DnnError (*setAttribute)(DnnDescriptor descriptor, int attribute, int type,
                           int64_t count, const void *values);
  DnnError (*getAttribute)(DnnDescriptor descriptor, int attribute, int type,
                           int64_t room, int64_t *count, void *values);
  DnnError (*finalize)(DnnDescriptor descriptor);
  DnnError (*execute)(DnnHandle handle, DnnDescriptor plan,
                      DnnDescriptor variantPack);
};

/// The library of this machine, opened once and never closed; `places` as of
/// loadLibrary.
Result<const Cudnn *> findCudnn(const char *places);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_CUDNN_H
